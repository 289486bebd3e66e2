"""Teach a SPLADE model the words of a domain, see term by term that it learnt them, and index the result.

A corpus is read (`collection`) and mined for words that deserve a token of their own (`terms`). Each word gets a
token, an input row and an output row (`model`). Stages teach these rows, one after the other (`stages`, by the one
loop in `training`): `behaviour` holds the model to what it did before, `warmup` learns from the corpus,
`dictionary` from definitions, `distill` and `imitate` from queries whose candidates a teacher has scored. Where a user
has no queries, texts are made up (`made_up`) and ranked (`teachers`). The adapted model encodes texts as sparse
vectors, which are searched exactly and measured (`retrieve`), written for a search engine and served there (`engines`).
`pipeline` does all of it from documents alone; `lab` holds research beside the main path; `suite` compares many models
over many collections; `pages` shows a run to people; `cli` has a command for each step. The package `diagnostics`
beside this one reads a saved model at any point.

`READING_ORDER` lists the rooms in the order in which to read them: a room imports only from rooms before it.

In Python, `import sparse_adapt as sa` gives the names in `__all__` (`api` holds them). Nothing heavy is loaded before
the first of them is used.
"""

__version__ = "0.1.0"

__all__ = [
    "Document",
    "Model",
    "SparseAdaptError",
    "adapt",
    "diagnose",
    "diagnose_model",
    "evaluate",
    "explain",
    "export",
    "load",
    "mine_terms",
    "search",
    "train",
]

TYPE_CHECKING = False  # as typing has it, which takes a while to load
if TYPE_CHECKING:
    from sparse_adapt.api.adapting import adapt
    from sparse_adapt.api.exporting import export
    from sparse_adapt.api.insight import diagnose, diagnose_model, explain
    from sparse_adapt.api.measuring import evaluate
    from sparse_adapt.api.models import Model, load
    from sparse_adapt.api.searching import search
    from sparse_adapt.api.terms import mine_terms
    from sparse_adapt.api.training import train
    from sparse_adapt.collection.readers import Document
    from sparse_adapt.errors import SparseAdaptError

_PLACES = {
    "Document": "collection.readers",
    "Model": "api.models",
    "SparseAdaptError": "errors",
    "adapt": "api.adapting",
    "diagnose": "api.insight",
    "diagnose_model": "api.insight",
    "evaluate": "api.measuring",
    "explain": "api.insight",
    "export": "api.exporting",
    "load": "api.models",
    "mine_terms": "api.terms",
    "search": "api.searching",
    "train": "api.training",
}

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
    # research beside the main path, comparisons, pages to look at, and the command line
    "lab",
    "suite",
    "pages",
    "explore",
    "api",
    "cli",
)


def __getattr__(name: str) -> object:
    """A public name, whose module loads now."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
