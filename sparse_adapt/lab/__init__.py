"""Research beside the main path: invented words, contradictions, similarity, and the demo."""
