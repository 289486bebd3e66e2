"""The words that a page of a run uses, for whoever sees the first of these pages."""

from sparse_adapt.report.sections import Facts, Section

WORDS = (
    ("token", "an entry of the model's vocabulary; a text is read as tokens"),
    ("term", "a word of the domain that was given a token of its own; before, it was read as several pieces"),
    ("weight", "how much a token counts in the vector of a text; 0 for most tokens"),
    (
        "score",
        "how well a document matches a query: the sum of query weight x document weight over shared tokens",
    ),
    ("expansion", "a token with weight in a text that doesn't say it"),
    ("to light a term", "to give it weight: texts that say the term should, and queries that mean it"),
    ("hidden query", "a query that means a term without saying it"),
    ("explicit query", "a query that says a term"),
    ("control query", "a query about other things, which should lose nothing"),
    (
        "everyday query",
        "words of general English, drawn as often as people use them; it means none of the terms",
    ),
    ("stray", "an everyday query, or another one that doesn't mean a term, that lights it all the same"),
    (
        "nDCG@10",
        "how good the first ten documents are: 1 for the best order, 0 where nothing relevant is among them",
    ),
    ("95 % interval", "where the true difference lies in 95 of 100 cases; one that holds 0 may be chance"),
)


def words_section() -> Section:
    """What each word means."""
    return Section("words", "Words of this page", [Facts(WORDS)])
