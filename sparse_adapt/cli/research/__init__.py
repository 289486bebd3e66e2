"""Commands for research beside the main path: invented words, contradictions, similar texts."""
