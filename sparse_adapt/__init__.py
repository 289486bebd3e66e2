"""Teach a SPLADE model the words of a domain, see term by term that it learnt them, and index the result.

The flow: a corpus is read (`corpus`) and mined for words that deserve a token of their own (`terms`). Each gets a
token, an input row and an output row (`vocabulary`, in a model as `model` holds it). Stages then teach these rows:
`behaviour` has the model do what it did before, `warmup` learns from the corpus, `dictionary` from definitions,
`distill` from queries whose candidates a teacher has scored (`stages`, by the one loop in `training`, in the order that
a plan gives, `running`); `dynamic` learns the words that the model finds hardest, `joint` and `contrast` from `pairs`
of query and document, `triplets` and `labelled` from texts and what contradicts them (`triplets`, made by
`contradicting`); these, `behaviour` and `distill` take dense encoders as well. The adapted model turns texts into
sparse vectors (`encode`, on disk `vectors`), which are searched exactly (`search`), measured (`evaluate`), written for
an engine (`export`), and indexed and served, held against exact search (`engines`). `adapting` does all of it from
documents alone, `demo` on a bundled corpus; `cli` has a command for each step. The package `diagnostics` beside this
one reads any saved model at any point.

`READING_ORDER` is the order to read the modules in: each imports only from those before it.
"""

__version__ = "0.1.0"

READING_ORDER = (
    # what every module may need
    "errors",
    "config",
    "folders",
    "journal",
    "kept",
    "processes",
    "threads",
    "watching",
    "report",
    # texts: documents, queries, judgements, candidates; terms and what they mean
    "reading",
    "corpus",
    "terms",
    "glossary",
    "queries",
    "pairs",
    "triplets",
    "language",
    "definitions",
    # the model: token ids in, one weight for each token of the vocabulary out
    "batches",
    "compiled",
    "head",
    "idf",
    "function_words",
    "model",
    "vocabulary",
    "dense",
    # learning
    "losses",
    "everyday_texts",
    "meanings",
    "training",
    "stages",
    "running",
    # using what was learnt
    "encode",
    "search",
    "similarity",
    "teachers",
    "contradicting",
    "evaluate",
    "vectors",
    "coin",
    "export",
    "engines",
    # showing it
    "suite",
    "adapting",
    "demo",
    "cli",
)
