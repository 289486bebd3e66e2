"""Exact words as dimensions of a sparse vector, beside those of the vocabulary.

A document weighs a word by how often it holds it, BM25's saturation (Robertson and Zaragoza 2009): tf / (tf + k1 (1 - b
+ b length / mean length)), once more for its title. A query weighs a word by its inverse document frequency, times the
part of words in the score. So documents keep their vectors when statistics move, and a product of two vectors is
SPLADE's score plus BM25's. A word's column follows from its letters alone: it is the same on every machine, and a word
that no statistic knows has one, too.

    MODEL/exact_words.json    settings, mean lengths, and the inverse document frequency of each word

Dimensions: B texts, V vocabulary, W `WIDTH` columns in all.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field
from scipy.sparse import csr_matrix
from transformers import PreTrainedTokenizerFast

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ConfigError, InputError, ModelError
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.marker import checksum_of_bytes
from sparse_adapt.files.place import is_there
from sparse_adapt.files.records import Record, read_record
from sparse_adapt.model.exact.analysis import MOST_KNOWN, Analyzer, Word
from sparse_adapt.model.exact.defined import DefinedWords, read_defined_words, write_defined_words
from sparse_adapt.model.exact.language import Language
from sparse_adapt.model.exact.statistics import LARGEST

EXACT_WORDS_FILE = "exact_words.json"
ANEW = "add the words anew: sparse-adapt words MODEL CORPUS"
FIRST_WORD = 1 << 20  # column of the first word; no vocabulary is as large
SPACE = 1 << 29  # columns of words: of 60,000 words some 3 share one
WIDTH = FIRST_WORD + SPACE  # below the billion that pgvector takes
SATURATION, LENGTH = 0.9, 0.4  # k1 and b
HEAVIEST_WEIGHT = 1e6  # of any setting, so that no product of them leaves float32
MARK = "="  # before a word in the name of its dimension, so that no token has the same


class WordSettings(Record):
    """How exact words are weighed. Those above the line decide the vectors of documents, the others of queries alone.

    `title`: what a title counts beside the whole document. `heaviest`: weights of the model that a document keeps.
    `share`: part of words in the score, where 1 makes the mean best scores of both parts equal; `scale`: the factor
    that does so. `pieces`: how much more a word counts that the tokenizer cuts. `general`: part of general language in
    the frequencies. `unknown`: inverse document frequency of a word that no document held.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    format: Literal["exact words"] = "exact words"
    format_version: Literal[1] = 1
    language: str
    mean_words: float = Field(gt=0.0)
    mean_title_words: float = Field(gt=0.0)
    title: float = Field(ge=0.0, le=HEAVIEST_WEIGHT)
    heaviest: int | None = Field(gt=0)
    # -- of queries
    documents: int = Field(ge=1)
    share: float = Field(ge=0.0, le=HEAVIEST_WEIGHT)
    scale: float = Field(ge=0.0, le=HEAVIEST_WEIGHT)
    pieces: float = Field(ge=0.0, le=HEAVIEST_WEIGHT)
    general: float = Field(ge=0.0, le=1.0)
    unknown: float = Field(ge=0.0, le=HEAVIEST_WEIGHT)
    idf: dict[str, Annotated[float, Field(ge=0.0, le=HEAVIEST_WEIGHT)]]


OF_DOCUMENTS = ("language", "mean_words", "mean_title_words", "title", "heaviest")


class ExactWords:
    """The exact words of texts as columns, by settings and statistics; the names of columns that were met."""

    def __init__(
        self,
        settings: WordSettings,
        analyzer: Analyzer | None = None,
        defined: DefinedWords | None = None,
    ) -> None:
        """`analyzer`: one of the language that is there already; `defined`: words that a query may mean unsaid.

        Raises ConfigError for a language without stems.
        """
        self.settings, self.defined = settings, defined
        self.analyzer = analyzer or Analyzer(Language(settings.language))
        self._columns: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._pieces: dict[str, int] = {}

    def __getstate__(self) -> dict[str, object]:
        """What travels to another process: settings and defined words."""
        return {"settings": self.settings, "defined": self.defined}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["settings"], defined=state["defined"])  # type: ignore[misc]

    @property
    def weight(self) -> float:
        """What the inverse document frequency of a word is multiplied with in a query."""
        return self.settings.share * self.settings.scale

    @property
    def checksum(self) -> str:
        """Of what decides the vectors of documents: statistics and the share may differ where it is equal."""
        return checksum_of_bytes(self.settings.model_dump_json(include=set(OF_DOCUMENTS)).encode())

    def describe(self) -> str:
        """How many words are known, of how many documents, and what they count."""
        settings = self.settings
        by_definition = (
            "" if self.defined is None else f", {len(self.defined.settings.words):,} by definition too"
        )
        return (
            f"{len(settings.idf):,} exact words of {settings.documents:,} documents (language: {settings.language})"
            f"{by_definition}, share {settings.share:g}"
        )

    def documents(self, documents: Sequence[Document]) -> csr_matrix:
        """The exact words of documents (B, W): each between 0 and 1, and as much for those of the title."""
        settings, rows = self.settings, []
        for document in documents:
            row = self._saturated(document.full_text, settings.mean_words)
            if document.title and settings.title:
                for column, part in self._saturated(document.title, settings.mean_title_words).items():
                    row[column] = row.get(column, 0.0) + settings.title * part
            rows.append(row)
        return matrix_of(rows)

    def queries(self, texts: Sequence[str], tokenizer: PreTrainedTokenizerFast) -> csr_matrix:
        """The exact words of queries (B, W): how much each tells, by the statistics. `tokenizer`: the model's.

        Those that a query means by their definitions are among them, where it doesn't say them.
        """
        words = [list(self.analyzer.words(text)) for text in texts]
        meant = [list(self._meant(each)) for each in self.meant_by(texts)]
        surfaces = {word.surface for each in words for word in each}
        self._count_pieces(surfaces | {word.surface for each in meant for word, _ in each}, tokenizer)
        rows = []
        for of_text, unsaid in zip(words, meant, strict=True):
            row: dict[int, float] = {}
            for word in of_text:
                column = self.column(word.stem)
                row[column] = row.get(column, 0.0) + self.tells(word)
            for word, factor in unsaid:
                row.setdefault(self.column(word.stem), factor * self.tells(word))
            rows.append({column: weight for column, weight in row.items() if weight > 0.0})
        return matrix_of(rows)

    def meant_by(self, texts: Sequence[str]) -> list[Mapping[str, float]]:
        """The defined words that each text means, with the factor of its weight that each gets (`DefinedWords`)."""
        return [{} for _ in texts] if self.defined is None else self.defined.meant_by(texts)

    def _meant(self, meant: Mapping[str, float]) -> Iterator[tuple[Word, float]]:
        """The exact words of what a text means, each with its factor."""
        for name, factor in meant.items():
            yield from ((word, factor) for word in self.analyzer.words(name))

    def tells(self, word: Word) -> float:
        """The weight of a word that a query holds once."""
        idf = self.settings.idf.get(word.stem, self.settings.unknown)
        cut = self._pieces.get(word.surface, 1) > 1
        return self.weight * idf * (self.settings.pieces if cut else 1.0)

    def column(self, stem: str) -> int:
        """The column of a word, by its letters alone: from `FIRST_WORD` on."""
        column = self._columns.get(stem)
        if column is None:
            column = self._columns[stem] = column_of(stem)
            self._names[column] = min(stem, self._names.get(column, stem))
        return column

    def named(self, columns: Iterable[int], documents: Sequence[Document] = ()) -> dict[int, str]:
        """The word of each column, as far as it was met in a text, or is in `documents`."""
        wanted = set(columns)
        if not wanted <= self._names.keys():
            for document in documents:
                for word in self.analyzer.words(document.full_text):
                    self.column(word.stem)
        return {column: self._names[column] for column in wanted if column in self._names}

    def with_settings(self, **changes: object) -> "ExactWords":
        """The same with some settings changed, in the same language."""
        assert "language" not in changes, "another language has other words"
        return ExactWords(self.settings.model_copy(update=changes), self.analyzer, self.defined)

    @property
    def defined_names(self) -> tuple[str, ...]:
        """The words that a query may mean by their definitions."""
        return () if self.defined is None else self.defined.settings.words

    def with_definitions(self, defined: DefinedWords | None) -> "ExactWords":
        """The same, where a query also gets what it means of some defined words."""
        return ExactWords(self.settings, self.analyzer, defined)

    def _saturated(self, text: str, mean: float) -> dict[int, float]:
        counts = Counter(word.stem for word in self.analyzer.words(text))
        base = SATURATION * (1.0 - LENGTH + LENGTH * counts.total() / mean)
        return {self.column(stem): count / (count + base) for stem, count in counts.items()}

    def _count_pieces(self, surfaces: set[str], tokenizer: PreTrainedTokenizerFast) -> None:
        new = sorted(surfaces - self._pieces.keys())
        if len(self._pieces) + len(new) > MOST_KNOWN:
            self._pieces.clear()
        inside = [f" {surface}" for surface in new]  # byte-level tokenizers cut a text's first word otherwise
        read = tokenizer.backend_tokenizer.encode_batch(inside, add_special_tokens=False)
        self._pieces |= {surface: len(each.ids) for surface, each in zip(new, read, strict=True)}


def column_of(stem: str) -> int:
    """The column of a word: a number of 29 bits from its letters."""
    digest = hashlib.blake2b(stem.encode(), digest_size=8).digest()
    return FIRST_WORD + int.from_bytes(digest, "big") % SPACE


def matrix_of(rows: Sequence[Mapping[int, float]]) -> csr_matrix:
    """Rows of weights by column as a matrix (B, W), float32, columns in order."""
    starts = np.cumsum([0, *map(len, rows)])
    columns = np.fromiter((column for row in rows for column in row), np.int32, starts[-1])
    weights = np.fromiter((weight for row in rows for weight in row.values()), np.float32, starts[-1])
    matrix = csr_matrix((weights, columns, starts), shape=(len(rows), WIDTH))
    matrix.sort_indices()
    return matrix


# -- in files ---------------------------------------------------------------------------------------


def read_exact_words(folder: Path) -> ExactWords | None:
    """The exact words of a model folder; None where it has none. Raises ModelError for a damaged file."""
    path = folder / EXACT_WORDS_FILE
    if not is_there(path) and not path.is_symlink():
        return None
    if not path.is_file():
        raise ModelError(f"{path}: is no file that can be read; {ANEW}")
    if (size := path.stat().st_size) > LARGEST:
        raise ModelError(f"{path}: has {size:,} bytes, where {LARGEST:,} are read; {ANEW}")
    try:
        return ExactWords(read_record(path, WordSettings, ANEW), defined=read_defined_words(folder))
    except InputError as error:
        raise ModelError(str(error)) from error
    except ConfigError as error:
        raise ModelError(f"{path}: {error}") from error


def write_exact_words(folder: Path, words: ExactWords) -> None:
    """Write settings and statistics beside a model, and the words that it knows by definitions."""
    write_json(folder / EXACT_WORDS_FILE, words.settings.model_dump())
    if words.defined is not None:
        write_defined_words(folder, words.defined)
