"""Teach a SPLADE model the words of a domain."""

__version__ = "0.1.0"
