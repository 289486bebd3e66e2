"""Synthetic texts: queries, background texts, and the labeller that tells what a text means."""
