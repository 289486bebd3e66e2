"""Settings of exact words that are easy to reckon with by hand."""

PLAIN = {
    "language": "en",
    "mean_words": 4.0,
    "mean_title_words": 2.0,
    "title": 1.0,
    "heaviest": None,
    "documents": 4,
    "share": 0.5,
    "scale": 2.0,
    "pieces": 2.0,
    "general": 0.0,
    "unknown": 2.0,
    "idf": {"pump": 0.25},
}
