"""The folder of a sparse model as sentence-transformers or OpenSearch lays it out: read and checked.

modules.json                         a transformer and SpladePooling; or one Router, with a route for each side
router_config.json                   which modules a Router's routes have
sentence_bert_config.json            beside the transformer: the longest text, and what the transformer gives
config_sentence_transformers.json    prompts, how many entries a text keeps, how scores are made
1_SpladePooling/config.json          pooling and activation
idf.json, query_token_weights.txt    in a folder without modules.json: queries are weighed by this table

A folder without modules.json has the usual form. What isn't understood is refused, so that no number is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from sparse_adapt.errors import ModelError
from sparse_adapt.model.folder import ModelSource
from sparse_adapt.model.forms import USUAL, Form, Pooling
from sparse_adapt.model.head.pooling import Activation
from sparse_adapt.model.stored import read_json, read_object

MODULES_FILE = "modules.json"
ABOUT_FILE = "config_sentence_transformers.json"
ROUTER_FILE = "router_config.json"
LENGTH_FILES = ("sentence_bert_config.json", "sentence_*_config.json")  # the second of old versions
TRANSFORMERS = ("Transformer", "MLMTransformer")
POOLING = "SpladePooling"
TABLE = "SparseStaticEmbedding"
ROUTER = "Router"
ROUTES = ("query", "document")
TABLE_FILES = ("idf.json", "query_token_weights.txt")  # of OpenSearch
UNKNOWN_SETTINGS = ("query_length", "document_length", "query_expansion", "processing_kwargs")
LONGEST_NAME = 255  # bytes of a file's name
ADVICE = "choose a model of a transformer and SpladePooling"


@dataclass(frozen=True, slots=True)
class Modules:
    """What a folder says of its model.

    place: the transformer that reads documents. longest: in tokens, where the folder says it. lowers: whether texts are
    put into lower case first. table: the folder or the file of the table that weighs queries, where there is one.
    queries: of the second model, where one reads queries alone.
    """

    place: Path
    form: Form = USUAL
    longest: int | None = None
    lowers: bool = False
    table: Path | None = None
    queries: "Modules | None" = None
    by_library: bool = False  # laid out by sentence-transformers, which reads as much as the tokenizer allows


class Module(NamedTuple):
    """The kind of a module, and its folder."""

    kind: str
    place: Path


@dataclass(frozen=True, slots=True)
class _Routes:
    """The modules that documents go through, and what queries go through instead."""

    documents: tuple[Module, ...]
    table: Path | None = None
    queries: tuple[Module, ...] = ()  # of a second model


def read_modules(folder: Path, source: ModelSource) -> Modules:
    """What a folder says of its model. Raises ModelError, naming `source`, for a form that isn't understood."""
    if not (folder / MODULES_FILE).is_file():
        return Modules(folder, table=_table_beside(folder))
    modules = _listed(folder, source)
    if [module.kind for module in modules] == [ROUTER]:
        routes = _routes(modules[0].place, source)
    else:
        routes = _Routes(modules)
        _refuse_table_beside(folder, source)
    about = _about(folder)
    queries = _model(routes.queries, about, source) if routes.queries else None
    return replace(_model(routes.documents, about, source), table=routes.table, queries=queries)


def _model(modules: tuple[Module, ...], about: Mapping[str, Any], source: ModelSource) -> Modules:
    """What the modules of one model say, with what is said about both sides."""
    transformer, pooling = _pair(modules, source)
    form = _form(read_object(pooling.place / "config.json"), about, source)
    return Modules(transformer.place, form, *_length(transformer, source), by_library=True)


# -- which modules ----------------------------------------------------------------------------------


def _listed(folder: Path, source: ModelSource) -> tuple[Module, ...]:
    modules = read_json(folder / MODULES_FILE)
    if not isinstance(modules, list) or not all(isinstance(each, dict) for each in modules):
        raise ModelError(f"{source}: {MODULES_FILE} is no list of modules; fetch the model again")
    return tuple(_module(folder, each.get("type"), each.get("path"), source) for each in modules)


def _module(folder: Path, kind: object, path: object, source: ModelSource) -> Module:
    """A module by its type, which is of sentence-transformers itself, and its path, which is inside the folder."""
    named = str(kind)
    if not named.startswith("sentence_transformers."):
        raise ModelError(f"{source}: its module {named} is no part of sentence-transformers; {ADVICE}")
    path = path or ""
    if not isinstance(path, str) or Path(path).is_absolute() or not all(map(_is_name, Path(path).parts)):
        shown = str(path)[:LONGEST_NAME]
        raise ModelError(
            f"{source}: names {shown!r}, which is no folder of this model; fetch the model again"
        )
    return Module(named.rsplit(".", 1)[-1], folder / path)


def _is_name(part: str) -> bool:
    """Whether a part of a path can name something inside a folder."""
    return part != ".." and "\0" not in part and len(part.encode("utf-8", "replace")) <= LONGEST_NAME


def _pair(modules: tuple[Module, ...], source: ModelSource) -> tuple[Module, Module]:
    """The transformer and the pooling that make weights. Raises ModelError for anything else."""
    kinds = [module.kind for module in modules]
    strange = [kind for kind in kinds if kind not in (*TRANSFORMERS, POOLING)]
    if strange or len(kinds) != 2 or kinds[0] not in TRANSFORMERS or kinds[1] != POOLING:
        named = strange[0] if strange else " + ".join(kinds) or "none"
        raise ModelError(f"{source}: its modules include {named}, which can't be adapted; {ADVICE}")
    return modules[0], modules[1]


def _routes(folder: Path, source: ModelSource) -> _Routes:
    """The two routes of a Router."""
    told = read_object(folder / ROUTER_FILE)
    types, structure, settings = (told.get(key) or {} for key in ("types", "structure", "parameters"))
    if not all(isinstance(each, dict) for each in (types, structure, settings)):
        raise ModelError(f"{folder / ROUTER_FILE}: not the routes of a model; fetch the model again")
    if set(structure) != set(ROUTES) or settings.get("route_mappings"):
        named = ", ".join(map(str, structure)) or "none"
        raise ModelError(f"{source}: its Router has the routes {named}, where query and document are needed")
    if not all(isinstance(structure[route], list) for route in ROUTES):
        raise ModelError(f"{folder / ROUTER_FILE}: a route is no list of modules; fetch the model again")
    for name in (each for route in ROUTES for each in structure[route]):
        if not isinstance(name, str) or name not in types:
            raise ModelError(f"{folder / ROUTER_FILE}: gives no type for {name!r}; fetch the model again")
    queries, documents = (
        tuple(_module(folder, types[name], name, source) for name in structure[route]) for route in ROUTES
    )
    kinds = [module.kind for module in queries]
    if kinds == [TABLE]:
        return _Routes(documents, queries[0].place)
    if queries == documents:
        return _Routes(documents)
    if kinds and kinds[0] in TRANSFORMERS:
        return _Routes(documents, queries=queries)
    named = next((kind for kind in kinds if kind != TABLE), " + ".join(kinds) or "nothing")
    raise ModelError(f"{source}: its queries go through {named}, which can't be adapted; {ADVICE}")


def _table_beside(folder: Path) -> Path | None:
    """The table that lies in a plain folder, as OpenSearch's do."""
    return next((folder / name for name in TABLE_FILES if (folder / name).is_file()), None)


def _refuse_table_beside(folder: Path, source: ModelSource) -> None:
    table = _table_beside(folder)
    if table is not None:
        raise ModelError(
            f"{source}: {MODULES_FILE} says that the model reads queries, but {table.name} weighs them by a "
            "table; delete the one that is wrong"
        )


# -- what they say ----------------------------------------------------------------------------------


def _form(pooling: Mapping[str, Any], about: Mapping[str, Any], source: ModelSource) -> Form:
    by, activation = pooling.get("pooling_strategy", "max"), pooling.get("activation_function", "relu")
    for key, found, known in (
        ("pooling_strategy", by, get_args(Pooling)),
        ("activation_function", activation, get_args(Activation)),
    ):
        if found not in known:
            raise ModelError(
                f"{source}: {key} is {found!r}, where {' and '.join(known)} are understood; {ADVICE}"
            )
    entries = about.get("max_active_dims")
    if entries is not None and (isinstance(entries, bool) or not isinstance(entries, int) or entries < 1):
        raise ModelError(f"{source}: max_active_dims is {entries!r}, where a number of entries is needed")
    if about.get("similarity_fn_name") not in (None, "dot"):
        raise ModelError(
            f"{source}: its scores are {about['similarity_fn_name']!r}, where products alone are understood"
        )
    prompts, default = about.get("prompts") or {}, about.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(each, str | None) for each in prompts.values()):
        raise ModelError(f"{source}: its prompts are no words by their names; fetch the model again")
    if default is not None and (not isinstance(default, str) or default not in prompts):
        raise ModelError(f"{source}: its default prompt {default!r} is none of its prompts")
    if not any(prompts.values()):
        return Form(by, activation, entries)
    return Form(by, activation, entries, {name: prompt or "" for name, prompt in prompts.items()}, default)


def _length(transformer: Module, source: ModelSource) -> tuple[int | None, bool]:
    """The longest text in tokens, where it is said, and whether texts are put into lower case."""
    paths = [path for pattern in LENGTH_FILES for path in sorted(transformer.place.glob(pattern))]
    told = read_object(paths[0]) if paths else {}
    for key in UNKNOWN_SETTINGS:
        if told.get(key):
            raise ModelError(f"{source}: {key} is {told[key]!r}, which isn't understood; {ADVICE}")
    gives = told.get("transformer_task", "fill-mask" if transformer.kind == "MLMTransformer" else None)
    texts = told.get("modality_config") or {}
    texts = texts.get("text") or {} if isinstance(texts, dict) else texts
    given = texts.get("method_output_name", "logits") if isinstance(texts, dict) else texts
    if gives != "fill-mask" or given != "logits":
        raise ModelError(f"{source}: its transformer gives no logits of masked words (fill-mask); {ADVICE}")
    longest = told.get("max_seq_length")
    if longest is not None and (isinstance(longest, bool) or not isinstance(longest, int) or longest < 1):
        raise ModelError(f"{paths[0]}: max_seq_length is {longest!r}; fetch the model again")
    return longest, bool(told.get("do_lower_case"))


def _about(folder: Path) -> dict[str, Any]:
    return read_object(folder / ABOUT_FILE) if (folder / ABOUT_FILE).is_file() else {}
