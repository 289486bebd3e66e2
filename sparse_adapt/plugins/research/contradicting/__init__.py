"""Sentences that contradict a sentence of the corpus, made by a generator that refills noun chunks."""
