"""Texts that nobody wrote: made-up queries, everyday texts, and the judge that tells what a text means."""
