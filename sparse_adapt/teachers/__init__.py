"""What a student learns from without a label: word statistics (`bm25`), a dense model, and their sum."""
