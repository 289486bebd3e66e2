"""Texts that nobody wrote: made-up queries, everyday texts, and who tells what such a text means."""
