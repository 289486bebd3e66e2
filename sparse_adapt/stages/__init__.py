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
OF_ADAPT = tuple(
    name for name in STAGES if name not in ("triplets", "labelled")
)  # `adapt` knows how to feed these
USUAL = ("extend", "warmup", "dictionary", "distill")  # of a run that names none
