"""The weights of a model folder: what is refused before any library loads them, and after.

Weights are safetensors that lie in the folder itself. Where the folder vouches for its files, they have to be what was
written; those of an alias's package have to be what was recorded here. A configuration may ask for no more than the
weights hold.
"""

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import nn

from sparse_adapt.errors import ModelError, first_line, is_panic
from sparse_adapt.files.marker import MARKER_FILE, MODEL_MARK, checksum_of_file, faults, files_at
from sparse_adapt.files.records import JsonObject
from sparse_adapt.model.folder import ModelSource, bundled_at

PICKLED = ("pytorch_model*.bin", "*.pt", "*.ckpt")
INDEX_FILE = "model.safetensors.index.json"  # of weights in several files
ADAPTER_FILE = "adapter_config.json"  # names another model, which would be loaded from elsewhere
WIDTHS = (
    "embedding_size",
    "hidden_size",
    "dim",
    "d_model",
)  # of embeddings, the first that a configuration has
LAYERS = ("num_hidden_layers", "n_layers", "num_layers", "num_decoder_layers")
LABELS = ("num_labels", "_num_labels")  # a configuration names each of them
INNER = ("intermediate_size", "hidden_dim", "d_ff")
WRAPPERS = {"module.": "DataParallel", "_orig_mod.": "torch.compile"}  # around a model, by its name in them
POSITIONS = "position_embeddings.weight"
EMBEDDINGS = re.compile(r"(word_embeddings|tok_embeddings|embed_tokens)\.weight$")
HEADS = re.compile(
    r"(^|\.)(predictions|(generator_)?lm_head|vocab_projector|decoder)\.(decoder\.)?(weight|bias)$"
)  # of which each has a row, or a value, a token

Shapes = dict[str, tuple[int, ...]]


@contextmanager
def loading(source: ModelSource, what: str) -> Iterator[None]:
    """Raise ModelError, naming `source` and `what` it isn't, for whatever a library raises on broken files."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise ModelError(f"{source}: not {what} that can be loaded ({first_line(error)})") from error


def check_weights(folder: Path, source: ModelSource) -> None:
    """Raise ModelError, naming `source`, for a folder whose weights mustn't be loaded."""
    if not (folder / MODEL_MARK).is_file():
        raise ModelError(f"{source}: holds no {MODEL_MARK}, so it is no model folder; check --model")
    if not any(folder.glob("model*.safetensors")):
        pickled = sorted(path.name for pattern in PICKLED for path in folder.glob(pattern))
        problem = f"only {pickled[0]}, and pickles are not read" if pickled else "no weights"
        raise ModelError(f"{source}: holds {problem}; save the model as model.safetensors")
    if (folder / ADAPTER_FILE).is_file():
        raise ModelError(f"{source}: is an adapter ({ADAPTER_FILE}); merge it into its model first")
    counted = {path.relative_to(folder).as_posix() for path in files_at(folder)}
    for fault in faults(folder, only=counted):
        raise ModelError(
            f"{fault.path}: {fault.problem}, by its checksum; restore the model, or delete "
            f"{folder / MARKER_FILE} if the change is yours"
        )
    _check_recorded(folder)
    shapes = _shapes(list(_files(folder, source)), source)
    _check_names(shapes, source)
    _check_size(folder, shapes, source)


def check_head(folder: Path, source: ModelSource) -> None:
    """Raise ModelError, naming `source`, for embeddings that were resized without the head, or a head without them."""
    shapes = _shapes(list(_files(folder, source)), source)
    rows = next((shape[0] for name, shape in shapes.items() if EMBEDDINGS.search(name) and shape), None)
    for name, shape in sorted(shapes.items()):
        if rows is not None and shape and HEADS.search(name) and shape[0] != rows:
            resized = f"AutoModelForMaskedLM.from_pretrained(MODEL).resize_token_embeddings({rows})"
            raise ModelError(
                f"{source}: its embeddings have {rows:,} rows, {name} in its head {shape[0]:,}; resize the model "
                f"that it came from as a whole: {resized}"
            )


def _check_names(shapes: Shapes, source: ModelSource) -> None:
    """Raise ModelError for weights that were saved from within what training had put around the model."""
    for prefix, wrapper in WRAPPERS.items():
        if shapes and all(name.startswith(prefix) for name in shapes):
            problem = f"all of its weights are named {prefix}..., as {wrapper} names them"
            raise ModelError(
                f"{source}: {problem}; save the model within: model.{prefix}save_pretrained(FOLDER)"
            )


def _check_recorded(folder: Path) -> None:
    """Raise ModelError for a model of an installed package whose files aren't those that its alias stands for."""
    bundled = bundled_at(folder)
    if bundled is None:
        return
    for name, sha256 in bundled.sha256.items():
        path = folder / name
        if not path.is_file() or _checksum(path, path.stat().st_mtime_ns) != sha256:
            raise ModelError(
                f"{path}: isn't the file that was recorded for this model, by its checksum; install it anew (pip "
                f"install --force-reinstall {bundled.distribution}), or copy the folder and name the copy"
            )


@lru_cache
def _checksum(path: Path, written: int) -> str:
    return checksum_of_file(path)


def check_finite(module: nn.Module, source: ModelSource) -> None:
    """Raise ModelError, naming `source`, for a model with a weight that is no number."""
    for name, tensor in module.state_dict().items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise ModelError(f"{source}: {name} holds values that are no numbers; restore the model")


def _files(folder: Path, source: ModelSource) -> Iterator[Path]:
    """The files that hold the weights, as transformers chooses them."""
    path = folder / INDEX_FILE
    if (folder / "model.safetensors").is_file() or not path.is_file():
        yield from sorted(folder.glob("model*.safetensors"))
        return
    try:
        named = set(json.loads(path.read_bytes())["weight_map"].values())
    except (OSError, ValueError, RecursionError, KeyError, AttributeError, TypeError) as error:
        raise ModelError(f"{path}: not an index of weights ({error!r}); fetch the model again") from error
    for name in sorted(map(str, named)):
        if not name.endswith(".safetensors") or Path(name).name != name or not (folder / name).is_file():
            raise ModelError(
                f"{source}: {INDEX_FILE} names {name!r}, which is no .safetensors file of this folder"
            )
        yield folder / name


def _shapes(files: list[Path], source: ModelSource) -> Shapes:
    """The shape of each tensor, from the heads of the files alone."""
    shapes: Shapes = {}
    for path in files:
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - safe_open has no __iter__
                    shapes[name] = tuple(file.get_slice(name).get_shape())
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{source}: {path.name} is damaged ({error}); fetch the model again") from error
    return shapes


def _check_size(folder: Path, shapes: Shapes, source: ModelSource) -> None:
    """Refuse a configuration that would have more built, and filled with nothing, than there are weights for."""
    path = folder / MODEL_MARK
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: can't be read ({error}); fetch the model again") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path}: not a model's configuration; fetch the model again")
    parameters = sum(map(math.prod, shapes.values()))
    width = _first(config, WIDTHS) or 1
    sizes = {key: value for key in (*WIDTHS, "vocab_size") if (value := _number(config, key)) > parameters}
    sizes |= {key: value for key in LAYERS if (value := _number(config, key)) > len(shapes)}
    sizes |= {key: value for key in INNER if (value := _number(config, key)) * width > parameters}
    if _number(config, "vocab_size") * width > parameters:
        sizes["vocab_size"] = _number(config, "vocab_size")
    positions = next((shape[0] for name, shape in shapes.items() if name.endswith(POSITIONS)), None)
    if positions is not None and _number(config, "max_position_embeddings") > positions:
        sizes["max_position_embeddings"] = _number(config, "max_position_embeddings")
    for key in LABELS:
        if _number(config, key) * width > parameters:
            sizes[key] = _number(config, key)
    for key, value in sizes.items():
        raise ModelError(
            f"{source}: {key} = {value} in {MODEL_MARK}, for which the weights ({parameters:,} values in "
            f"{len(shapes):,} tensors) don't suffice; take both from the same model"
        )


def _first(config: JsonObject, keys: tuple[str, ...]) -> int:
    return next((number for key in keys if (number := _number(config, key))), 0)


def _number(config: JsonObject, key: str) -> int:
    """A whole number of a configuration; 0 where there is none."""
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
