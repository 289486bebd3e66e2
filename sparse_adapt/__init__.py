"""Teach a SPLADE model the words of a domain, see term by term that it learnt them, and index the result.

A corpus is read (`collection`) and mined for words that deserve a token of their own (`terms`). Each word gets a
token, an input row and an output row (`model`). Stages teach these rows, one after the other (`stages`, by the one
loop in `training`): `behaviour` holds the model to what it did before, `warmup` learns from the corpus,
`dictionary` from definitions, `distill` from queries whose candidates a teacher has scored. Where a user has no
queries, texts are made up (`made_up`) and ranked (`teachers`). The adapted model encodes texts as sparse vectors,
which are searched exactly and measured (`retrieve`), written for a search engine and served there (`engines`).
`pipeline` does all of it from documents alone; `lab` holds research beside the main path; `suite` compares many models
over many collections; `cli` has a command for each step. The package `diagnostics` beside this one reads a saved model
at any point.

`READING_ORDER` lists the rooms in the order in which to read them: a room imports only from rooms before it.
"""

__version__ = "0.1.0"

READING_ORDER = (
    # what every room may need
    "errors",
    "settings",
    "files",
    "report",
    # texts: documents, queries, judgements, candidates; terms and what they mean
    "collection",
    "terms",
    # the model: token ids in, one weight for each token of the vocabulary out
    "model",
    # learning
    "made_up",
    "training",
    "stages",
    # using what was learnt
    "retrieve",
    "teachers",
    "pipeline",
    "engines",
    # research beside the main path, comparisons, and the command line
    "lab",
    "suite",
    "cli",
)
