"""The folder of a dense sentence encoder as sentence-transformers lays it out: read, checked, written.

modules.json                         a transformer, perhaps word weights, a pooling, perhaps a normalisation
sentence_bert_config.json            the longest text
config_sentence_transformers.json    prompts and the like, which stay as they are
1_Pooling/config.json                how token states become one vector
1_WordWeights/config.json            what each token counts in it, where not all count the same; 2_Pooling then
config.json, model.safetensors, ...  the transformer, as transformers reads it
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sparse_adapt import __version__
from sparse_adapt.errors import ModelError
from sparse_adapt.files.folders import write_json
from sparse_adapt.model.folder import ModelSource
from sparse_adapt.model.idf import Factors
from sparse_adapt.model.stored import read_json, read_object

MODULES_FILE = "modules.json"
LENGTH_FILE = "sentence_bert_config.json"
ABOUT_FILE = "config_sentence_transformers.json"
MODES = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}  # as older versions wrote them
KNOWN = ("Transformer", "Pooling", "Normalize")
WEIGHTS = "WordWeights"  # where there is one, between the first two

Mode = Literal["mean", "cls"]


@dataclass(frozen=True, slots=True)
class Layout:
    """How token states become a vector, and what the folder says beside it."""

    mode: Mode = "mean"
    normalised: bool = True
    longest: int | None = None  # tokens
    about: dict[str, Any] = field(default_factory=dict)


def is_dense(folder: Path) -> bool:
    """Whether a model folder is a dense sentence encoder's, by its modules."""
    return (folder / MODULES_FILE).is_file() and "Pooling" in dict(_modules(folder))


def read_layout(folder: Path, source: ModelSource) -> Layout:
    """The layout of a folder. Raises ModelError, naming `source`, for one that this project can't train."""
    if not (folder / MODULES_FILE).is_file():
        raise ModelError(f"{source}: holds no {MODULES_FILE}, so it is no dense model; check --model")
    modules = _modules(folder)
    kinds = [kind for kind, _ in modules]
    plain = kinds[:1] + kinds[2:] if kinds[1:2] == [WEIGHTS] else kinds
    if tuple(plain) not in (KNOWN, KNOWN[:2]):
        raise ModelError(
            f"{source}: its modules are {', '.join(kinds) or 'none'}; only {' + '.join(KNOWN[:2])}, with "
            f"{WEIGHTS} and {KNOWN[2]} or without, can be adapted"
        )
    about = read_object(folder / ABOUT_FILE) if (folder / ABOUT_FILE).is_file() else {}
    if about.get("default_prompt_name") is not None:
        raise ModelError(f"{source}: puts a prompt before every text, which can't be adapted; choose another")
    length = read_object(folder / LENGTH_FILE) if (folder / LENGTH_FILE).is_file() else {}
    longest = length.get("max_seq_length")
    if longest is not None and (not isinstance(longest, int) or longest < 1):
        raise ModelError(f"{folder / LENGTH_FILE}: max_seq_length is {longest!r}; fetch the model again")
    return Layout(
        _mode(dict(modules)["Pooling"] / "config.json", source), len(plain) == len(KNOWN), longest, about
    )


def read_word_weights(folder: Path, size: int) -> Factors | None:
    """What each token counts in a mean, where a model's folder says it: never negative, at most `size`."""
    place = dict(_modules(folder)).get(WEIGHTS)
    if place is None:
        return None
    path = place / "config.json"
    stored = read_json(path)
    try:
        counts, other = stored["word_weights"], stored.get("unknown_word_weight", 1.0)
        found = [counts.get(token, counts.get(token.lower(), other)) for token in stored["vocab"]]
        factors: Factors = np.array(found, np.float32)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{path}: damaged ({error!r}); fetch the model again") from error
    if not 0 < len(factors) <= size or not (np.isfinite(factors) & (factors >= 0)).all():
        raise ModelError(f"{path}: not the weights of {size:,} tokens; fetch the model again")
    return factors


def write_layout(
    folder: Path, layout: Layout, width: int, longest: int, counts: Mapping[str, float] | None = None
) -> None:
    """Write what sentence-transformers reads beside the transformer.

    width: of the vectors; longest: in tokens; counts: what each token counts in a mean, in the order of their ids.
    """
    names = list(KNOWN if layout.normalised else KNOWN[:2])
    if counts is not None:
        names.insert(1, WEIGHTS)
    places = {name: f"{number}_{name}" if number else "" for number, name in enumerate(names)}
    modules = [
        {"idx": number, "name": str(number), "path": place, "type": f"sentence_transformers.models.{name}"}
        for number, (name, place) in enumerate(places.items())
    ]
    write_json(folder / MODULES_FILE, modules)
    write_json(folder / LENGTH_FILE, {"max_seq_length": longest, "do_lower_case": False})
    versions = {**layout.about.get("__version__", {}), "sparse_adapt": __version__}
    write_json(folder / ABOUT_FILE, {**layout.about, "__version__": versions})
    modes = {key: mode == layout.mode for key, mode in MODES.items()}
    for place in places.values():
        (folder / place).mkdir(exist_ok=True)
    write_json(folder / places["Pooling"] / "config.json", {"word_embedding_dimension": width, **modes})
    if counts is not None:
        rounded = {token: round(count, 5) for token, count in counts.items()}
        told = {"vocab": list(rounded), "word_weights": rounded, "unknown_word_weight": 1.0}
        write_json(folder / places[WEIGHTS] / "config.json", told)


def check_modules(folder: Path, source: ModelSource) -> Path:
    """The folder of the transformer, which may be one of the modules' own.

    Raises ModelError for modules that sentence-transformers mustn't load: other code than its own, or pickles.
    """
    modules = _typed_modules(folder) if (folder / MODULES_FILE).is_file() else []
    for kind, place in modules:
        if not kind.startswith("sentence_transformers."):
            raise ModelError(
                f"{source}: its module {kind} is no part of sentence-transformers; choose another"
            )
        if any(place.glob("*.bin")) and not any(place.glob("*.safetensors")):
            raise ModelError(f"{source}: {place.name} holds pickled weights alone, and pickles are not read")
    own = [place for _, place in modules[:1] if (place / "config.json").is_file()]
    return folder if not own or (folder / "config.json").is_file() else own[0]


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """The last part of the type of each of a model's modules and its folder, in their order."""
    return [(kind.rsplit(".", 1)[-1], place) for kind, place in _typed_modules(folder)]


def _typed_modules(folder: Path) -> list[tuple[str, Path]]:
    """The type of each module and its folder, which lies in the model's."""
    path, found = folder / MODULES_FILE, []
    modules = read_json(path)
    try:
        for number, module in enumerate(modules):
            kind = str(module["type"])
            place = module.get("path") or f"{number}_{kind.rsplit('.', 1)[-1]}"
            if Path(place).is_absolute() or ".." in Path(place).parts:
                raise ModelError(f"{path}: names {place!r}, which is no folder of this model")
            found.append((kind, folder / place))
    except (TypeError, KeyError, AttributeError) as error:
        raise ModelError(f"{path}: damaged ({error!r}); fetch the model again") from error
    return found


def _mode(path: Path, source: ModelSource) -> Mode:
    stored = read_object(path)
    found = stored.get("pooling_mode")
    if found is None:
        modes = [key for key, value in stored.items() if key.startswith("pooling_mode_") and value is True]
        found = MODES.get(modes[0], modes[0]) if len(modes) == 1 else modes
    if found == "mean" or found == ["mean"]:
        return "mean"
    if found == "cls" or found == ["cls"]:
        return "cls"
    raise ModelError(f"{source}: pools by {found!r}; only mean and cls can be adapted")
