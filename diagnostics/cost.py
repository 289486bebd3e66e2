"""What a model's vectors cost to serve: their size, the work of scoring, the longest list, the index."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from transformers import PreTrainedTokenizerFast

from sparse_adapt.model.tokens import names_of
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.retrieve.search import expected_products

IMPACT_BITS = 8  # a quantised weight in an impact index


@dataclass(frozen=True, slots=True)
class Posting:
    """One token's list in an inverted index: in how many documents it has weight, and their share of all."""

    token_id: int
    token: str
    documents: int
    share: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Size and work. Query figures are None where no queries were given.

    `flops`: `search.expected_products`. `postings_a_query`: posting list entries
    that an average query reads. `index_bytes`: an estimate, see `estimate_index_bytes`.
    """

    documents: int
    nonzero_document: float
    largest_document: int
    empty_documents: int
    tokens_used: int
    longest: tuple[Posting, ...]
    index_bytes: int
    queries: int | None
    nonzero_query: float | None
    flops: float | None
    postings_a_query: float | None

    def to_dict(self) -> dict[str, Any]:
        """Everything that the tables show, as plain objects and lists."""
        return asdict(self)


def measure_cost(
    documents: csr_matrix,
    tokenizer: PreTrainedTokenizerFast,
    queries: csr_matrix | None = None,
    lists: int = 5,
) -> Cost:
    """Cost of documents (documents, V), and of queries (queries, V) against them."""
    assert documents.shape[0], "cost needs at least one document"
    sizes = np.diff(documents.indptr)
    lengths = np.bincount(documents.indices, minlength=documents.shape[1])
    flops = None if queries is None else expected_products(queries, lengths / documents.shape[0])
    return Cost(
        documents=documents.shape[0],
        nonzero_document=float(sizes.mean()),
        largest_document=int(sizes.max()),
        empty_documents=int((sizes == 0).sum()),
        tokens_used=int((lengths > 0).sum()),
        longest=_longest(lengths, documents.shape[0], tokenizer, lists),
        index_bytes=estimate_index_bytes(lengths, documents.shape[0]),
        queries=None if queries is None else queries.shape[0],
        nonzero_query=None if queries is None else queries.nnz / queries.shape[0],
        flops=flops,
        postings_a_query=None if flops is None else flops * documents.shape[0],
    )


def estimate_index_bytes(lengths: NDArray[np.int64], documents: int) -> int:
    """Bytes of an inverted index with posting lists of these lengths (V), without dictionary or texts.

    A list of n out of N documents takes n * (2 + ceil(log2(N / n))) bits in Elias-Fano coding (Vigna 2013,
    WSDM) and 8 bits a weight.
    """
    used = lengths[lengths > 0].astype(np.float64)
    gap_bits = 2 + np.ceil(np.log2(documents / used))
    return int(np.ceil(np.sum(used * (gap_bits + IMPACT_BITS)) / 8))


def _longest(
    lengths: NDArray[np.int64], documents: int, tokenizer: PreTrainedTokenizerFast, lists: int
) -> tuple[Posting, ...]:
    order = [int(token_id) for token_id in np.argsort(-lengths, kind="stable")[:lists] if lengths[token_id]]
    names = names_of(tokenizer, order)
    return tuple(
        Posting(token_id, name, int(lengths[token_id]), float(lengths[token_id] / documents))
        for token_id, name in zip(order, names, strict=True)
    )


def tabulate_cost(cost: Cost) -> tuple[Table, Table]:
    """The figures, and the longest posting lists."""
    rows: list[Row] = [
        {"figure": "non-zeros a document", "value": cost.nonzero_document},
        {"figure": "non-zeros of the largest document", "value": cost.largest_document},
        {"figure": "documents without a non-zero", "value": cost.empty_documents},
        {"figure": "tokens that some document uses", "value": cost.tokens_used},
        {"figure": "index, estimated (MiB)", "value": cost.index_bytes / 2**20},
        {"figure": "non-zeros a query", "value": cost.nonzero_query},
        {"figure": "shared tokens of a query and a document (FLOPS)", "value": cost.flops},
        {"figure": "posting list entries read a query", "value": cost.postings_a_query},
    ]
    figures = (Column("figure", "figure", "text"), Column("value", "value", decimals=2))
    lists = (
        Column("token", "token", "token"),
        Column("documents", "documents"),
        Column("share", "of all", "share", decimals=1, bar=True),
    )
    longest: list[Row] = [
        {column.key: getattr(posting, column.key) for column in lists} for posting in cost.longest
    ]
    return Table("Cost", figures, rows), Table("Longest posting lists", lists, longest)
