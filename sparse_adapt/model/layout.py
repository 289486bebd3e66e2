"""A model's folder as sentence-transformers or OpenSearch lays it out: read, checked, written.

modules.json                         the modules: of a sparse model a transformer and SpladePooling, or one Router
router_config.json                   which modules a Router's two routes have
sentence_bert_config.json            beside the transformer: the longest text, and what the transformer gives
config_sentence_transformers.json    prompts, how many entries a text keeps, how scores are made
1_SpladePooling/config.json          pooling and activation
idf.json, query_token_weights.txt    in a folder without modules.json: queries are weighed by this table

A folder without modules.json has the usual form. What isn't understood is refused, so that no number is wrong. Modules
of a dense model are read in `model.sentence`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from sparse_adapt import __version__
from sparse_adapt.errors import ModelError
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.records import JsonObject
from sparse_adapt.model.folder import ModelSource
from sparse_adapt.model.forms import SIDES, USUAL, Form, Pooling
from sparse_adapt.model.head.pooling import Activation

MODULES_FILE = "modules.json"
ABOUT_FILE = "config_sentence_transformers.json"
ROUTER_FILE = "router_config.json"
LENGTH_FILE = "sentence_bert_config.json"
OTHER_LENGTH_FILES = "sentence_*_config.json"
OWN_MODULES = "sentence_transformers."
TRANSFORMERS = ("Transformer", "MLMTransformer")
POOLING, TABLE, ROUTER = "SpladePooling", "SparseStaticEmbedding", "Router"
TYPES = {
    TRANSFORMERS[0]: "sentence_transformers.base.modules.transformer.Transformer",
    POOLING: "sentence_transformers.sparse_encoder.modules.splade_pooling.SpladePooling",
    TABLE: "sentence_transformers.sparse_encoder.modules.sparse_static_embedding.SparseStaticEmbedding",
    ROUTER: "sentence_transformers.base.modules.router.Router",
}
ROUTES = ("query", "document")
TABLE_FILES = ("idf.json", "query_token_weights.txt")  # of OpenSearch
UNKNOWN_SETTINGS = ("query_length", "document_length", "query_expansion", "processing_kwargs")
LONGEST_NAME = 255  # bytes of a file's name
ADVICE = "choose a model of a transformer and SpladePooling"


@dataclass(frozen=True, slots=True)
class Modules:
    """What a folder says of its sparse model.

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


# -- of any model -----------------------------------------------------------------------------------


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """What a JSON file of a model holds. Raises ModelError where it can't be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise ModelError(f"{path}: can't be read ({reason}); fetch the model again") from error


def read_object(path: Path, *, optional: bool = False) -> JsonObject:
    """The JSON object that a file holds; none where an `optional` file is missing. Raises ModelError for the rest."""
    if optional and not path.is_file():
        return {}
    content = read_json(path)
    if not isinstance(content, dict):
        raise ModelError(f"{path}: no JSON object; fetch the model again")
    return content


def list_modules(folder: Path, source: ModelSource) -> list[Module]:
    """The modules of a folder, in their order; none where it lists none.

    Raises ModelError for modules of other code than sentence-transformers' own, and for places outside the folder.
    """
    path = folder / MODULES_FILE
    if not path.is_file():
        return []
    modules = read_json(path)
    if not isinstance(modules, list) or not all(
        isinstance(each, dict) and "type" in each for each in modules
    ):
        raise ModelError(f"{path}: damaged (no list of modules); fetch the model again")
    return [_module(folder, each["type"], each.get("path"), source) for each in modules]


def folders_read(folder: Path, source: ModelSource) -> list[Path]:
    """The folders that loading reads files of: the model's own, and those of its modules."""
    places = [module.place for module in list_modules(folder, source)]
    types = read_object(folder / ROUTER_FILE, optional=True).get("types")
    named = types.items() if isinstance(types, dict) else ()
    routed = [_module(folder, kind, name, source).place for name, kind in named]
    return list(dict.fromkeys([folder, *places, *routed]))


def is_dense(folder: Path) -> bool:
    """Whether a model folder is a dense sentence encoder's, by its modules."""
    return any(module.kind == "Pooling" for module in list_modules(folder, folder))


def transformer_in(folder: Path, source: ModelSource) -> Path:
    """The folder of the transformer, which may be one of the modules' own. Raises ModelError for pickled modules."""
    modules = list_modules(folder, source)
    for _, place in modules:
        if place != folder and any(place.glob("*.bin")) and not any(place.glob("*.safetensors")):
            raise ModelError(f"{source}: {place.name} holds pickled weights alone, and pickles are not read")
    own = [place for _, place in modules[:1] if (place / "config.json").is_file()]
    return folder if not own or (folder / "config.json").is_file() else own[0]


def read_length(place: Path) -> tuple[int | None, JsonObject]:
    """The longest text in tokens, where a transformer's folder says it, and what it says beside."""
    named = (place / LENGTH_FILE, *sorted(place.glob(OTHER_LENGTH_FILES)))
    path = next((each for each in named if each.is_file()), named[0])
    stored = read_object(path, optional=True)
    longest = stored.get("max_seq_length")
    if longest is not None and (isinstance(longest, bool) or not isinstance(longest, int) or longest < 1):
        raise ModelError(f"{path}: max_seq_length is {longest!r}; fetch the model again")
    return longest, stored


def _module(folder: Path, kind: object, path: object, source: ModelSource) -> Module:
    """A module by its type, which is of sentence-transformers itself, and its path, which is inside the folder."""
    named, path = str(kind), path or ""
    if not named.startswith(OWN_MODULES):
        raise ModelError(
            f"{source}: its module {named} is no part of sentence-transformers; choose another model"
        )
    if not isinstance(path, str) or Path(path).is_absolute() or not all(map(_is_name, Path(path).parts)):
        shown = str(path)[:LONGEST_NAME]
        raise ModelError(
            f"{source}: names {shown!r}, which is no folder of this model; fetch the model again"
        )
    return Module(named.rsplit(".", 1)[-1], folder / path)


def _is_name(part: str) -> bool:
    """Whether a part of a path can name something inside a folder."""
    return part != ".." and "\0" not in part and len(part.encode("utf-8", "replace")) <= LONGEST_NAME


# -- of a sparse model: reading ---------------------------------------------------------------------


def read_modules(folder: Path, source: ModelSource) -> Modules:
    """What a folder says of its model. Raises ModelError, naming `source`, for a form that isn't understood."""
    if not (folder / MODULES_FILE).is_file():
        return Modules(folder, table=_table_beside(folder))
    documents, table, queries = list_modules(folder, source), None, list[Module]()
    if [module.kind for module in documents] == [ROUTER]:
        documents, table, queries = _routes(documents[0].place, source)
    elif beside := _table_beside(folder):
        raise ModelError(
            f"{source}: {MODULES_FILE} says that the model reads queries, but {beside.name} weighs them by a "
            "table; delete the one that is wrong"
        )
    about = read_object(folder / ABOUT_FILE, optional=True)
    of_queries = _of_model(queries, about, source) if queries else None
    return replace(_of_model(documents, about, source), table=table, queries=of_queries)


def _of_model(modules: list[Module], about: JsonObject, source: ModelSource) -> Modules:
    """What a transformer and a pooling say, with what is said about both sides. Raises ModelError for other modules."""
    kinds = [module.kind for module in modules]
    strange = [kind for kind in kinds if kind not in (*TRANSFORMERS, POOLING)]
    if strange or len(kinds) != 2 or kinds[0] not in TRANSFORMERS or kinds[1] != POOLING:
        named = strange[0] if strange else " + ".join(kinds) or "none"
        raise ModelError(f"{source}: its modules include {named}, which can't be adapted; {ADVICE}")
    transformer, pooling = modules
    form = _form(read_object(pooling.place / "config.json"), about, source)
    longest, stored = read_length(transformer.place)
    _check_transformer(stored, transformer.kind, source)
    return Modules(transformer.place, form, longest, bool(stored.get("do_lower_case")), by_library=True)


def _routes(folder: Path, source: ModelSource) -> tuple[list[Module], Path | None, list[Module]]:
    """The modules of a Router that documents go through, the table of queries, or the modules of their own model."""
    path = folder / ROUTER_FILE
    stored = read_object(path)
    types, structure, settings = (stored.get(key) or {} for key in ("types", "structure", "parameters"))
    if not all(isinstance(each, dict) for each in (types, structure, settings)):
        raise ModelError(f"{path}: not the routes of a model; fetch the model again")
    if set(structure) != set(ROUTES) or settings.get("route_mappings"):
        named = ", ".join(map(str, structure)) or "none"
        raise ModelError(f"{source}: its Router has the routes {named}, where query and document are needed")
    if not all(isinstance(structure[route], list) for route in ROUTES):
        raise ModelError(f"{path}: a route is no list of modules; fetch the model again")
    for name in (each for route in ROUTES for each in structure[route]):
        if not isinstance(name, str) or name not in types:
            raise ModelError(f"{path}: gives no type for {name!r}; fetch the model again")
    queries, documents = (
        [_module(folder, types[name], name, source) for name in structure[route]] for route in ROUTES
    )
    kinds = [module.kind for module in queries]
    if kinds == [TABLE]:
        return documents, queries[0].place, []
    if queries == documents:
        return documents, None, []
    if kinds and kinds[0] in TRANSFORMERS:
        return documents, None, queries
    named = next((kind for kind in kinds if kind != TABLE), " + ".join(kinds) or "nothing")
    raise ModelError(f"{source}: its queries go through {named}, which can't be adapted; {ADVICE}")


def _table_beside(folder: Path) -> Path | None:
    """The table that lies in a plain folder, as OpenSearch's do."""
    return next((folder / name for name in TABLE_FILES if (folder / name).is_file()), None)


def _form(pooling: JsonObject, about: JsonObject, source: ModelSource) -> Form:
    by, activation = pooling.get("pooling_strategy", "max"), pooling.get("activation_function", "relu")
    for key, value, known in (
        ("pooling_strategy", by, get_args(Pooling)),
        ("activation_function", activation, get_args(Activation)),
    ):
        if value not in known:
            raise ModelError(
                f"{source}: {key} is {value!r}, where {' and '.join(known)} are understood; {ADVICE}"
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
    if default is not None and (not isinstance(default, str) or default not in (*prompts, *SIDES)):
        raise ModelError(f"{source}: its default prompt {default!r} is none of its prompts")
    if not any(prompts.values()) and default is None:
        return Form(by, activation, entries)
    return Form(by, activation, entries, {name: prompt or "" for name, prompt in prompts.items()}, default)


def _check_transformer(stored: JsonObject, kind: str, source: ModelSource) -> None:
    """Raise ModelError for a transformer that gives something else than logits, or is set in an unknown way."""
    for key in UNKNOWN_SETTINGS:
        if stored.get(key):
            raise ModelError(f"{source}: {key} is {stored[key]!r}, which isn't understood; {ADVICE}")
    gives = stored.get("transformer_task", "fill-mask" if kind == "MLMTransformer" else None)
    modality = stored.get("modality_config") or {}
    modality = modality.get("text") or {} if isinstance(modality, dict) else modality
    modality = modality.get("method_output_name", "logits") if isinstance(modality, dict) else modality
    if gives != "fill-mask" or modality != "logits":
        raise ModelError(f"{source}: its transformer gives no logits of masked words (fill-mask); {ADVICE}")


# -- of a sparse model: writing ---------------------------------------------------------------------


def write_modules(folder: Path, form: Form, size: int, query_route: Mapping[str, str]) -> None:
    """Write what `sentence_transformers.SparseEncoder` needs beside the files of transformers.

    size: of the vocabulary; query_route: the kind of each module that queries alone go through, by its folder; empty
    where there is none.
    """
    pooling = f"document_1_{POOLING}" if query_route else f"1_{POOLING}"
    document_route = {"": TRANSFORMERS[0], pooling: POOLING}
    write_module_list(folder, {"": TYPES[ROUTER]} if query_route else _types(document_route))
    limit = {} if form.entries is None else {"max_active_dims": form.entries}
    write_json(
        folder / ABOUT_FILE,
        {
            "model_type": "SparseEncoder",
            "prompts": {**dict.fromkeys(SIDES, ""), **form.prompts},
            "default_prompt_name": form.default_prompt,
            "similarity_fn_name": "dot",
            **limit,
            "__version__": {"sparse_adapt": __version__},
        },
    )
    write_route(folder, folder / pooling, form, size)
    if query_route:
        write_json(
            folder / ROUTER_FILE,
            {
                "types": _types({**query_route, **document_route}),
                "structure": {"query": list(query_route), "document": list(document_route)},
                "parameters": {"default_route": "document", "allow_empty_key": True, "route_mappings": {}},
            },
        )


def write_route(transformer: Path, pooling: Path, form: Form, size: int) -> None:
    """Write the settings of a transformer and of the pooling behind it, of a vocabulary of `size`."""
    write_json(
        transformer / LENGTH_FILE,
        {
            "transformer_task": "fill-mask",
            "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}},
            "module_output_name": "token_embeddings",
        },
    )
    pooling.mkdir(exist_ok=True)
    stored = {"pooling_strategy": form.pooling, "activation_function": form.activation}
    write_json(pooling / "config.json", {**stored, "embedding_dimension": size})


def write_module_list(folder: Path, types: Mapping[str, str]) -> None:
    """Write the list of a folder's modules: the type of each by its path."""
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": kind}
        for number, (path, kind) in enumerate(types.items())
    ]
    write_json(folder / MODULES_FILE, listed)


def _types(kinds: Mapping[str, str]) -> dict[str, str]:
    return {path: TYPES[kind] for path, kind in kinds.items()}
