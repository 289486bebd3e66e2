"""Exact words: the words of a text as they are written, weighed by BM25, beside the weights of the model."""
