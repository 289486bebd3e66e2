"""A Lucene index of impacts, searched by Anserini: the ranking that production will see.

A document's score is the sum over shared tokens of query impact x document impact, a whole number, exact in
Lucene's 32-bit floats up to 16,777,216. Documents of equal score come in the order of their ids.
Dimensions: V vocabulary.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Run
from sparse_adapt.engines.anserini import lucene_name
from sparse_adapt.engines.java import java_class, java_error, reason
from sparse_adapt.engines.opened import ImpactEngine
from sparse_adapt.engines.quantise import Quantisation
from sparse_adapt.errors import InputError
from sparse_adapt.files.marker import faults, marker_of
from sparse_adapt.files.records import Record, read_record
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.retrieve.vectors.manifest import ModelStamp, read_tokens, stamp

CARD_FILE = "index.json"
ANY_NUMBER_OF_TOKENS = 2**31 - 1


class IndexCard(Record):
    """What an index was made from: the model that its queries must come from, the scale, the counts."""

    format: Literal["lucene"] = "lucene"
    format_version: Literal[1] = 1
    engine: str
    model: ModelStamp
    quantisation: Quantisation
    documents: int
    empty_documents: int


class LuceneHit(NamedTuple):
    """A document, its score in terms of weights, and the whole number that Lucene ranked it by."""

    document_id: str
    score: float
    impact: int


class LuceneIndex(ImpactEngine):
    """An index that `build_index` made, open for searching. Use it in a `with` block, or close it."""

    tolerance = 0.0

    def __init__(self, folder: Path) -> None:
        """Open the index in a folder. Raises InputError where there is none, or one that is damaged."""
        self.folder = folder
        self.card = read_card(folder)
        super().__init__(self.card.quantisation)
        self.tokens = read_tokens(folder, self.card.model)
        searcher = java_class("io.anserini.search.SimpleImpactSearcher")
        java_class("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(ANY_NUMBER_OF_TOKENS)
        try:
            self._searcher = searcher(str(folder))
        except java_error() as error:
            raise InputError(
                folder, f"Lucene can't open this index ({reason(error)}); build it again"
            ) from error
        stored, expected = (
            self._searcher.get_total_num_docs(),
            self.card.documents - self.card.empty_documents,
        )
        if stored != expected:
            raise InputError(folder, f"holds {stored:,} documents, not {expected:,}; build it again")

    def __enter__(self) -> "LuceneIndex":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the index's files."""
        self._searcher.close()

    def check_model(self, model: ModelStamp) -> None:
        """Raise InputError unless a model's queries can be put to this index."""
        card = self.card.model
        if model.vocabulary_sha256 != card.vocabulary_sha256:
            sizes = f"{card.vocabulary_size:,} tokens there, {model.vocabulary_size:,} here"
            problem = f"was made with another vocabulary, that of {card.name} ({sizes})"
        elif not card.fits(model):
            problem = f"was made by other weights of the same vocabulary ({card.name})"
        else:
            return
        raise InputError(self.folder, f"{problem}; search with that model, or index again with {model.name}")

    def search(self, query: Mapping[str, int] | csr_matrix, k: int) -> list[LuceneHit]:
        """The k best documents for a query, best first, those without a shared token left out.

        query: tokens with their impacts, or one row (1, V) of weights, which is quantised like the documents.
        """
        if not isinstance(query, Mapping):
            return self.search(self._impacts(EncodedBatch(["query"], query))[0], k)
        words = java_class("java.util.HashMap")()
        integer = java_class("java.lang.Integer")
        for token, impact in query.items():
            words.put(lucene_name(token), integer(impact))
        return self._found(self._searcher.search(words, k)) if query and k > 0 else []

    @property
    def name(self) -> str:
        """Anserini with its version."""
        return self.card.engine

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """A run: for each query id its k best documents with their scores."""
        return {
            query_id: {found.document_id: found.score for found in self.search(query, k)}
            for query_id, query in zip(queries.ids, self._impacts(queries), strict=True)
        }

    def _impacts(self, block: EncodedBatch) -> list[dict[str, int]]:
        """Each row as tokens with their impacts."""
        if block.vectors.shape[1] != len(self.tokens):
            raise InputError(
                self.folder, f"has {len(self.tokens):,} tokens, the query vector {block.vectors.shape[1]:,}"
            )
        impacts = self.quantisation.impacts(block)
        return [
            {self.tokens[column]: value for column, value in zip(columns, values, strict=True)}
            for _, columns, values in impacts.rows()
        ]

    def _found(self, results: Sequence[Any]) -> list[LuceneHit]:
        """Whole scores again: Anserini takes a millionth off each of those that are tied."""
        impacts = [round(result.score) for result in results]
        return [
            LuceneHit(result.docid, self.quantisation.score(impact), impact)
            for result, impact in zip(results, impacts, strict=True)
        ]


def read_card(folder: Path) -> IndexCard:
    """What an index was made from. Raises InputError where there is none."""
    path = folder / CARD_FILE
    if not path.is_file():
        raise InputError(folder, f"no {CARD_FILE} here; make an index with: sparse-adapt index")
    return read_record(path, IndexCard)


def verify_index(folder: Path) -> int:
    """How many files of an index are as they were written: all of them.

    Raises InputError for one that has changed or is gone, and for an index of a version that vouched for no file.
    """
    marker = marker_of(folder)
    if marker is None or not marker.sha256:
        raise InputError(folder, "bears no checksums of its files; index again with this version")
    for fault in faults(folder):
        raise InputError(fault.path, f"{fault.problem}; index again")
    return len(marker.sha256)


def look_up(query: str, model: SparseEncoder, index: LuceneIndex, k: int = 10) -> list[LuceneHit]:
    """The k best documents for a query in words. Raises InputError when the index is of another model."""
    index.check_model(stamp(model))
    return index.search(encode(model, [query], "query"), k)
