"""The stages in their order. Each reads a model folder and writes its own; each can run alone."""

STAGES = (
    "extend",
    "behaviour",
    "warmup",
    "dictionary",
    "dynamic",
    "joint",
    "contrast",
    "triplets",
    "labelled",
    "distill",
)
OF_ADAPT = ("extend", "behaviour", "warmup", "dictionary", "distill")  # those that `adapt` knows how to feed
USUAL = ("extend", "warmup", "dictionary", "distill")  # of a run that names none
