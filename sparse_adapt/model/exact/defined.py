"""Defined words: a query that means one by its definition, and doesn't say it, gets it as if it did.

A dense encoder compares the query with texts about each word and with texts about other things, and picks at most
three words. Nothing is trained, and the vectors of documents and of other queries stay as they are: a word is matched
in its own column (`model.exact.words`), which every document has that says it.

    MODEL/defined_words.json           the words, the dense encoder, and from which similarity margin on a word is meant
    MODEL/defined_words.safetensors    `vectors` (S, H) of texts, `about` (P, 2) pairs of a text and a word, `least` (D)

Dimensions: B texts, S texts that they are compared with, D words, H width of a dense vector.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import ConfigDict, Field
from safetensors import SafetensorError
from safetensors.numpy import load_file

from sparse_adapt.errors import InputError, ModelError
from sparse_adapt.files.cache import keep_arrays
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.place import is_there
from sparse_adapt.files.records import Record, read_record
from sparse_adapt.model.dense import DenseEncoder
from sparse_adapt.model.margins import Margins

DEFINED_FILE, VECTORS_FILE = "defined_words.json", "defined_words.safetensors"
LARGEST = 1 << 28  # bytes of either file, which is read whole
ANEW = "add the definitions anew: sparse-adapt words MODEL CORPUS --update --glossary FILE"
MOST_MEANT = 3  # words that a query gets
LEAST, MOST = 0.5, 2.0  # times its weight that a word gets which is just meant, and which is surely meant
RISE = 20.0  # of that factor with similarity margin
DECIMALS = 4  # of a similarity margin: beyond them it depends on the texts that are encoded together
REMEMBERED = 20_000  # queries whose words are kept


class DefinedSettings(Record):
    """Which words a model knows by definitions. `labeller`: the dense encoder; `threshold`: a similarity margin."""

    model_config = ConfigDict(allow_inf_nan=False)

    format: Literal["defined words"] = "defined words"
    format_version: Literal[1] = 1
    labeller: str = Field(min_length=1)
    threshold: float = Field(ge=-2.0, le=2.0)
    words: Annotated[tuple[str, ...], Field(min_length=1)]


class DefinedWords:
    """The words that queries may mean, and what a dense encoder knows of them."""

    def __init__(self, settings: DefinedSettings, margins: Margins) -> None:
        """`margins`: of texts about the words of the settings, in their order."""
        self.settings, self.margins = settings, margins
        self._meant: dict[str, Mapping[str, float]] = {}

    def __getstate__(self) -> tuple[DefinedSettings, Margins]:
        """What travels to another process: neither the dense encoder nor what was asked before."""
        return self.settings, self.margins

    def __setstate__(self, state: tuple[DefinedSettings, Margins]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    @cached_property
    def encoder(self) -> DenseEncoder:
        """The dense encoder, which is read when the first query is. Raises ModelError where there is none."""
        return DenseEncoder(self.settings.labeller)

    def meant_by(self, texts: Sequence[str]) -> list[Mapping[str, float]]:
        """The words that each text means, the surest first, each with a factor of its weight: from 0.5 to 2."""
        asked = [text for text in dict.fromkeys(texts) if text.strip()]
        new = [text for text in asked if text not in self._meant]
        if len(self._meant) + len(new) > REMEMBERED:
            self._meant.clear()
            new = asked
        if new:
            margins = self.margins.of_texts(self.encoder.encode(new)).round(DECIMALS)
            self._meant |= {text: self._words_of(row) for text, row in zip(new, margins, strict=True)}
        return [self._meant.get(text, {}) for text in texts]

    def _words_of(self, margins: np.ndarray) -> Mapping[str, float]:
        """The words that a text means, by its similarity margins (D)."""
        above = margins - self.settings.threshold
        best = np.argsort(-above, kind="stable")[:MOST_MEANT]
        factors = np.minimum(MOST, LEAST + RISE * above[best])
        words = self.settings.words
        return {
            words[place]: float(factor)
            for place, factor in zip(best, factors, strict=True)
            if above[place] > 0
        }


# -- in files ---------------------------------------------------------------------------------------


def read_defined_settings(folder: Path) -> DefinedSettings | None:
    """Which words are defined, without vectors; None in a model folder that has none. Raises ModelError if damaged."""
    path = folder / DEFINED_FILE
    if not is_there(path) and not path.is_symlink():
        return None
    _check_size(path)
    try:
        return read_record(path, DefinedSettings, ANEW)
    except InputError as error:
        raise ModelError(str(error)) from error


def read_defined_words(folder: Path) -> DefinedWords | None:
    """The defined words of a model folder; None where it has none. Raises ModelError for a damaged file."""
    settings, of_vectors = read_defined_settings(folder), folder / VECTORS_FILE
    if settings is None:
        return None
    _check_size(of_vectors)
    try:
        return DefinedWords(settings, _sound(load_file(of_vectors), len(settings.words)))
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise ModelError(f"{of_vectors}: damaged ({error}); {ANEW}") from error


def _check_size(path: Path) -> None:
    if not path.is_file():
        raise ModelError(f"{path}: is no file that can be read; {ANEW}")
    if (size := path.stat().st_size) > LARGEST:
        raise ModelError(f"{path}: has {size:,} bytes, where {LARGEST:,} are read; {ANEW}")


def _sound(arrays: Mapping[str, np.ndarray], words: int) -> Margins:
    """Margins out of a file's arrays. Raises KeyError or ValueError for arrays that don't go together."""
    vectors, pairs, least = (arrays[name] for name in ("vectors", "about", "least"))
    if vectors.ndim != 2 or not vectors.size or vectors.dtype != np.float16 or not np.isfinite(vectors).all():
        raise ValueError("its vectors aren't rows of finite numbers")
    if pairs.ndim != 2 or pairs.shape[1:] != (2,) or pairs.dtype != np.int32:
        raise ValueError("its pairs aren't a text and a word each")
    if least.shape != (words,) or least.dtype != np.float32 or np.isnan(least).any():
        raise ValueError(f"its least cosines aren't those of {words:,} words")
    if ((pairs < 0) | (pairs >= (len(vectors), words))).any():
        raise ValueError("a pair names a text or a word that isn't there")
    about = np.zeros((len(vectors), words), np.bool_)
    about[pairs[:, 0], pairs[:, 1]] = True
    return Margins(vectors.astype(np.float32), about, least)


def write_defined_words(folder: Path, defined: DefinedWords) -> None:
    """Write the words and their vectors beside a model."""
    margins = defined.margins
    keep_arrays(
        folder / VECTORS_FILE,
        {
            "vectors": margins.vectors.astype(np.float16),
            "about": np.argwhere(margins.about).astype(np.int32),
            "least": margins.least.astype(np.float32),
        },
    )
    write_json(folder / DEFINED_FILE, defined.settings.model_dump(mode="json"))
