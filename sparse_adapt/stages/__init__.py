"""The stages in their order. Each reads a model folder and writes its own; each can run alone."""

STAGES = ("extend", "behaviour", "warmup", "dictionary", "distill")
USUAL = ("extend", "warmup", "dictionary", "distill")  # of a run that names none
