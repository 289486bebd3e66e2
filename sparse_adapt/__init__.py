"""Put the words of a domain into a SPLADE model, see term by term what it makes of them, and index the result.

    import sparse_adapt as sa

    adapted = sa.adapt("my-corpus", "adapted", glossary="glossary.csv")
    print(adapted)
    model = sa.load("adapted/model")
    print(model.decode(model.encode_query("my question"), top_k=5))
    print(sa.search(model, "my-corpus", "my question"))
    sa.export("opensearch", model, "my-corpus", "for-opensearch")

Each command of the command line is a function of the same name: `sparse-adapt export opensearch` is `sa.export`. Five
are called otherwise: `words` is `sa.add_words`, `terms` is `sa.mine_terms`, `report` is `sa.write_report`, a stage such
as `warmup` is `sa.train("warmup", ...)`, and `diagnose` without a term is `sa.diagnose_model`.

`collection` reads a corpus, and `terms` finds the words in it that deserve a token of their own. `model` puts exact
words into vectors, for which nothing is trained, and gives a term a token, with an input row and an output row.
`stages` teach the model, one after the other, by the one loop in `training` and the loss terms of `objectives`:
`preserve` learns to do what the model did before, `warmup` learns from the corpus, `dictionary` from definitions,
`distill` and `rank` from queries whose candidates a teacher has scored. Where a user has no queries, `synthetic` cuts
some out of the documents and `teachers` score documents for each. The adapted model encodes texts as sparse vectors:
`retrieve` searches them exactly, measures the ranking, and says which texts activate a term.

`selection` decides which model is good enough. `pipeline` carries all of it out, from documents alone or from a run
file, and holds the demo; `adapt` there begins with exact words. `api` holds the functions of `import sparse_adapt`, and
`cli` has a command for each step. The package `diagnostics` beside this one reads a saved model at any point.

What somebody may leave out is a plug-in, which adds commands, stages, readers and more by way of the `registry`: in
`plugins`, `engines` writes vectors for a search engine and opens them there, `packs` moves what a model learnt while
its body stood still to other copies of it, `pages` shows runs and models, `files`, `llm` and `ray` read files, ask
language models and use clusters, and `research` holds the stages of papers. The core imports none of them.

`READING_ORDER` lists the folders in the order in which to read them: a folder imports only from folders before it.

`import sparse_adapt` gives the names in `__all__` (`api` holds them). Nothing heavy is loaded before the first of them
is used.
"""

__version__ = "0.1.0"

__all__ = [
    "Document",
    "Model",
    "SparseAdaptError",
    "adapt",
    "add_terms",
    "add_words",
    "calibrate",
    "candidates",
    "check",
    "check_export",
    "demo",
    "diagnose",
    "diagnose_model",
    "encode",
    "evaluate",
    "explain",
    "explore",
    "export",
    "index",
    "load",
    "mine_terms",
    "pack",
    "packs",
    "pairs",
    "push",
    "queries",
    "run",
    "search",
    "train",
    "unpack",
    "verify",
    "write_report",
]

TYPE_CHECKING = False  # as typing has it, which takes a while to load
if TYPE_CHECKING:
    from sparse_adapt.api.adapting import adapt
    from sparse_adapt.api.calibrating import calibrate
    from sparse_adapt.api.checking import check, verify
    from sparse_adapt.api.indexing import encode
    from sparse_adapt.api.insight import diagnose, diagnose_model, explain
    from sparse_adapt.api.measuring import evaluate
    from sparse_adapt.api.models import Model, load
    from sparse_adapt.api.preparing import candidates, pairs, queries
    from sparse_adapt.api.pushing import push
    from sparse_adapt.api.running import demo, run
    from sparse_adapt.api.searching import search
    from sparse_adapt.api.terms import mine_terms
    from sparse_adapt.api.training import train
    from sparse_adapt.api.words import add_words
    from sparse_adapt.collection.readers import Document
    from sparse_adapt.errors import SparseAdaptError
    from sparse_adapt.plugins.engines.exporting import check_export, export
    from sparse_adapt.plugins.engines.indexing import index
    from sparse_adapt.plugins.packs.adding import add_terms
    from sparse_adapt.plugins.packs.packing import pack, packs, unpack
    from sparse_adapt.plugins.pages.commands import explore, write_report

_PLACES = {
    "Document": "collection.readers",
    "Model": "api.models",
    "SparseAdaptError": "errors",
    "adapt": "api.adapting",
    "add_words": "api.words",
    "calibrate": "api.calibrating",
    "candidates": "api.preparing",
    "check": "api.checking",
    "demo": "api.running",
    "diagnose": "api.insight",
    "diagnose_model": "api.insight",
    "encode": "api.indexing",
    "evaluate": "api.measuring",
    "explain": "api.insight",
    "load": "api.models",
    "mine_terms": "api.terms",
    "pairs": "api.preparing",
    "push": "api.pushing",
    "queries": "api.preparing",
    "run": "api.running",
    "search": "api.searching",
    "train": "api.training",
    "verify": "api.checking",
}

READING_ORDER = (
    # what every folder may need
    "errors",
    "settings",
    "heap",
    "registry",
    "files",
    "report",
    # texts: documents, queries, judgements, candidates; terms and what they mean
    "collection",
    "terms",
    # the model: token ids in, one weight for each token of the vocabulary out
    "model",
    # learning
    "synthetic",
    "training",
    "objectives",
    "stages",
    # using what was learnt
    "retrieve",
    "selection",
    "teachers",
    "pipeline",
    # the functions of `import sparse_adapt`, and the command line
    "api",
    "cli",
    # what somebody may leave out: nothing before imports it
    "plugins",
)


def __getattr__(name: str) -> object:
    """A public name, whose module loads now."""
    from pkgutil import resolve_name

    place = f"{__name__}.{_PLACES[name]}:{name}" if name in _PLACES else _of_plugins().get(name, "")
    if not place:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = resolve_name(place)
    return value


def _of_plugins() -> dict[str, str]:
    """The functions of plug-ins' commands by name, each as `module:function`."""
    from sparse_adapt.registry import registry

    return {row.place.partition(":")[2]: row.place for row in registry().commands.values()}


def __dir__() -> list[str]:
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *__all__, *_of_plugins()})
