"""Who made a folder of vectors, and whether its files are still what was written.

Every such folder holds `manifest.json`, which vouches for its files with SHA-256 sums and carries the stamp
of the model, and `tokens.json`, the name of every dimension: nobody needs the model to read a vector. Exact words stand
behind the tokens, in the order of their columns. Dimensions: V vocabulary, S exact words of a folder.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer
from scipy.sparse import csr_matrix

from sparse_adapt.errors import InputError
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.marker import checksum_of_bytes, checksum_of_file
from sparse_adapt.files.records import Record
from sparse_adapt.model.exact.words import MARK, WIDTH, column_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.columns import Columns, only

MANIFEST_FILE = "manifest.json"
TOKENS_FILE = "tokens.json"


class ModelStamp(Record):
    """Which model made the vectors. Two stamps with equal checksums score alike; the name is for people."""

    name: str
    weights_sha256: str
    vocabulary_sha256: str
    vocabulary_size: int = Field(ge=1)
    max_tokens: int
    windows: str | None = None  # of a document, where it is read by windows
    words: int | None = None  # how many exact words have a name behind those of the tokens
    words_sha256: str | None = None

    @model_serializer(mode="wrap")
    def _as_it_was(self, serialise: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Without the windows where there are none, as folders had it before."""
        content: dict[str, object] = serialise(self)
        return {key: value for key, value in content.items() if value is not None}

    def reads_as(self, other: "ModelStamp") -> bool:
        """Whether both read as much of a document."""
        return (self.max_tokens, self.windows) == (other.max_tokens, other.windows)

    @property
    def width(self) -> int:
        """Columns of a vector as the model gives it."""
        return self.vocabulary_size if self.words is None else WIDTH

    def naming(self, words: Sequence[str] | None) -> "ModelStamp":
        """The stamp of a folder that names these exact words behind the tokens; as it is with None."""
        if words is None:
            return self
        named = {"words": len(words), "words_sha256": _checksum_of_tokens(list(words))}
        return self.model_copy(update=named)

    def fits(self, other: "ModelStamp") -> bool:
        """Whether vectors of both models may meet: same weights, same vocabulary."""
        return (self.weights_sha256, self.vocabulary_sha256) == (
            other.weights_sha256,
            other.vocabulary_sha256,
        )


def stamp_of_model(model: SparseEncoder, name: str = "") -> ModelStamp:
    """The model's name (by default where it was loaded from), checksums of its weights and vocabulary."""
    digest = hashlib.sha256()
    for key, values in sorted(model.masked_lm.state_dict().items()):
        digest.update(f"{key} {values.dtype} {tuple(values.shape)}\n".encode())
        digest.update(values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    if model.token_scales is not None:
        digest.update(model.token_scales.tobytes())
    if model.query_encoder is not None:
        digest.update(stamp_of_model(model.query_encoder).weights_sha256.encode())
    if model.words is not None:
        digest.update(model.words.checksum.encode())
    stamp = ModelStamp(
        name=name or str(model.masked_lm.config.name_or_path),
        weights_sha256=digest.hexdigest(),
        vocabulary_sha256=_checksum_of_tokens(token_names(model)),
        vocabulary_size=model.vocabulary_size,
        max_tokens=model.max_tokens,
        windows=None if model.windows is None else model.windows.name,
    )
    return stamp.naming(None if model.words is None else ())


def token_names(model: SparseEncoder) -> list[str]:
    """The V names of tokens in the order of their ids; `[unnamed7]` for a row without a token, never empty."""
    return [name or f"[unnamed{token_id}]" for token_id, name in enumerate(model.tokens)]


def write_tokens(folder: Path, tokens: list[str]) -> None:
    """Keep the name of every dimension in a folder of vectors."""
    write_json(folder / TOKENS_FILE, tokens)


def read_tokens(folder: Path, model: ModelStamp) -> list[str]:
    """The V token strings in the order of their ids, and S exact words, checked against the stamp stored with them."""
    path = folder / TOKENS_FILE
    try:
        tokens = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(path, f"can't be read ({error.strerror}); make the folder anew") from error
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"isn't JSON ({error}); make the folder anew") from error
    known = isinstance(tokens, list) and len(tokens) == model.vocabulary_size + (model.words or 0)
    if not known or not _is_named(tokens, model):
        raise InputError(path, "isn't the vocabulary that the manifest names; make the folder anew")
    return list(tokens)


def _is_named(tokens: list[str], model: ModelStamp) -> bool:
    """Whether these are the names that a stamp vouches for."""
    own, words = tokens[: model.vocabulary_size], tokens[model.vocabulary_size :]
    if _checksum_of_tokens(own) != model.vocabulary_sha256:
        return False
    return model.words is None or _checksum_of_tokens(words) == model.words_sha256


def word_names(words: Mapping[int, str]) -> list[str]:
    """The names of exact words by their columns, in the order of the columns."""
    return [MARK + words[column] for column in sorted(words)]


def columns_of(tokens: Sequence[str], model: ModelStamp) -> Columns:
    """The column of each name of a folder: (V + S), ascending."""
    words = [column_of(name.removeprefix(MARK)) for name in tokens[model.vocabulary_size :]]
    return np.array([*range(model.vocabulary_size), *words], np.int32)


def numbers_of(tokens: Sequence[str], model: ModelStamp) -> list[int] | None:
    """The number of each name of a folder, for an engine that goes by numbers: its column; None without exact words."""
    return None if model.words is None else columns_of(tokens, model).tolist()


def aligned(vectors: csr_matrix, tokens: Sequence[str], model: ModelStamp) -> csr_matrix:
    """Vectors (rows, W) of a model by the names of a folder: (rows, V + S); as they are without exact words."""
    return vectors if model.words is None else only(vectors, columns_of(tokens, model))


def read_format(folder: Path) -> str:
    """Which kind of folder a manifest says that it is in: "vectors", or the name of an export format."""
    path = folder / MANIFEST_FILE
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(
            folder, f"no {MANIFEST_FILE} here ({error.strerror}); make one with: sparse-adapt encode"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"isn't JSON ({error}); make the folder anew") from error
    return str(content.get("format")) if isinstance(content, dict) else ""


def read_checked(path: Path, sha256: str) -> bytes:
    """The bytes of a file that a manifest vouches for. Raises InputError when it is gone or has changed."""
    check_file(path, sha256)
    return path.read_bytes()


def check_file(path: Path, sha256: str) -> None:
    """Raise InputError unless a file is what its manifest vouches for; of any size, in little memory."""
    try:
        checksum = checksum_of_file(path)
    except OSError as error:
        raise InputError(path, f"named by its manifest, but can't be read ({error.strerror})") from error
    if checksum != sha256:
        raise InputError(path, "has changed since its manifest vouched for it; make the folder anew")


def _checksum_of_tokens(tokens: object) -> str:
    return checksum_of_bytes(json.dumps(tokens).encode())
