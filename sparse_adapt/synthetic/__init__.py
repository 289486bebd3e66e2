"""Texts that nobody wrote: made-up queries, everyday texts, and the labeller that tells what a text means."""
