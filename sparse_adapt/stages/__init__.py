"""The stages in their order. Each reads a model folder and writes its own; each can run alone."""

STAGES = ("extend", "warmup", "dictionary", "distill")
