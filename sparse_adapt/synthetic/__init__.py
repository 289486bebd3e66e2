"""Texts that nobody wrote: made-up queries, background texts, and the labeller that tells what a text means."""
