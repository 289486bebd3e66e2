"""The demo: a model adapted before the reader's eyes."""
