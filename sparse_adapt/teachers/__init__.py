"""Rankers whose scores a model learns from where nobody judged documents: BM25, a dense model, and their sum."""
