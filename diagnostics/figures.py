"""Figures of many texts: how new tokens are used, what vectors cost to serve, how far training moved old dimensions.

Vectors come from `sparse_adapt.retrieve.encode.encode`, a row a text, V columns. Dimensions: V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.model.encoder import NewToken
from sparse_adapt.model.exact.words import FIRST_WORD, MARK
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.retrieve.activity import Activity, Bools, Floats
from sparse_adapt.retrieve.columns import Columns, only, used_columns
from sparse_adapt.retrieve.search import expected_products

IMPACT_BITS = 8  # a quantised weight in an impact index


# -- use of new tokens ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """One new token: how many documents say it, and on how many of those and of the others it fires."""

    token_id: int
    token: str
    category: str
    documents_with: int
    fires_with: int
    documents_without: int
    fires_without: int
    mean_weight_with: float
    largest_weight: float

    @property
    def dead(self) -> bool:
        """It has weight nowhere."""
        return self.fires_with + self.fires_without == 0


@dataclass(frozen=True, slots=True)
class Usage:
    """New tokens over a corpus, as shares between 0 and 1; None where there is nothing to take a share of.

    `dead_share`: of the new tokens, those without weight in any document. `fires_with_share`: of all pairs of
    a new token and a document that says it, those with weight. `fires_without_share`: the same for documents
    that don't say it.
    """

    documents: int
    tokens: tuple[TokenUsage, ...]
    dead_share: float | None
    fires_with_share: float | None
    fires_without_share: float | None

    def to_dict(self) -> dict[str, object]:
        """Everything that the tables show, as plain objects and lists."""
        return asdict(self) | {"tokens": self.rows()}

    def rows(self) -> list[Row]:
        """The new tokens, one row each."""
        return [asdict(token) | {"dead": token.dead} for token in self.tokens]


def measure_usage(model: SparseEncoder, texts: Sequence[str], vectors: csr_matrix) -> Usage:
    """How the new tokens of a model are used over texts and their vectors (texts, V)."""
    activity = Activity.of(model, texts, "document", vectors=vectors)
    tokens = tuple(
        _token_usage(token, *columns)
        for token, *columns in zip(model.new_tokens, activity.says.T, activity.weights.T, strict=True)
    )
    return Usage(
        documents=len(texts),
        tokens=tokens,
        dead_share=_share(sum(token.dead for token in tokens), len(tokens)),
        fires_with_share=_share(
            sum(token.fires_with for token in tokens), sum(token.documents_with for token in tokens)
        ),
        fires_without_share=_share(
            sum(token.fires_without for token in tokens), sum(token.documents_without for token in tokens)
        ),
    )


def _token_usage(token: NewToken, says: Bools, weights: Floats) -> TokenUsage:
    """How one token is used, by which texts say it (texts,) and its weight in each (texts,)."""
    return TokenUsage(
        token_id=token.token_id,
        token=token.token,
        category=token.category,
        documents_with=int(says.sum()),
        fires_with=int((weights[says] > 0).sum()),
        documents_without=int((~says).sum()),
        fires_without=int((weights[~says] > 0).sum()),
        mean_weight_with=float(weights[says].mean()) if says.any() else 0.0,
        largest_weight=float(weights.max(initial=0.0)),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def tabulate_usage(usage: Usage) -> Table:
    """A row for each new token; the shares over all of them stand below."""
    columns = (
        Column("token", "token", "token"),
        Column("category", "category", "text"),
        Column("documents_with", "said by"),
        Column("fires_with", "active"),
        Column("documents_without", "not said by"),
        Column("fires_without", "active"),
        Column("mean_weight_with", "mean weight", decimals=3, bar=True),
    )
    shares = (
        ("without weight", usage.dead_share),
        ("active where said", usage.fires_with_share),
        ("active where not said", usage.fires_without_share),
    )
    note = "; ".join(f"{name} {share:.1%}" for name, share in shares if share is not None)
    return Table("New tokens", columns, usage.rows(), note)


# -- cost -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Posting:
    """One token's list in an inverted index: in how many documents it has weight, and their share of all."""

    token_id: int
    token: str
    documents: int
    share: float


@dataclass(frozen=True, slots=True)
class ServingCost:
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

    def to_dict(self) -> dict[str, object]:
        """Everything that the tables show, as plain objects and lists."""
        return asdict(self)


def measure_cost(
    documents: csr_matrix,
    model: SparseEncoder,
    queries: csr_matrix | None = None,
    lists: int = 5,
) -> ServingCost:
    """Cost of a model's documents (documents, V), and of its queries (queries, V) against them."""
    assert documents.shape[0], "cost needs at least one document"
    sizes = np.diff(documents.indptr)
    columns = used_columns([documents])  # exact words stand by numbers of which few are used
    lengths = np.bincount(only(documents, columns).indices, minlength=len(columns))
    flops = (
        None if queries is None else expected_products(only(queries, columns), lengths / documents.shape[0])
    )
    return ServingCost(
        documents=documents.shape[0],
        nonzero_document=float(sizes.mean()),
        largest_document=int(sizes.max()),
        empty_documents=int((sizes == 0).sum()),
        tokens_used=int((lengths > 0).sum()),
        longest=_longest(lengths, columns, documents.shape[0], model, lists),
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
    lengths: NDArray[np.int64],
    columns: Columns,
    documents: int,
    model: SparseEncoder,
    lists: int,
) -> tuple[Posting, ...]:
    """The longest posting lists; lengths: (C) documents in each of the columns that are used, (C) as well."""
    order = [int(place) for place in np.argsort(-lengths, kind="stable")[:lists]]
    ids = [int(columns[place]) for place in order]
    tokens = iter(model.names_of([each for each in ids if each < FIRST_WORD]))
    names = [next(tokens) if each < FIRST_WORD else f"{MARK}{each}" for each in ids]
    return tuple(
        Posting(token_id, name, int(lengths[place]), float(lengths[place] / documents))
        for place, token_id, name in zip(order, ids, names, strict=True)
    )


def tabulate_cost(cost: ServingCost) -> tuple[Table, Table]:
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
        {"token": posting.token, "documents": posting.documents, "share": posting.share}
        for posting in cost.longest
    ]
    return Table("Cost", figures, rows), Table("Longest posting lists", lists, longest)


# -- drift ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextDrift:
    """One text before and after.

    `cosine` is over the dimensions that both models have, 1 for no change; `overlap` is the share of its
    heaviest tokens that stayed among them; non-zeros count all dimensions, new ones too.
    """

    cosine: float
    overlap: float
    nonzero_before: int
    nonzero_after: int


@dataclass(frozen=True, slots=True)
class Drift:
    """Means over the texts, the text that moved furthest, and every text. Overlap is of `top` tokens."""

    top: int
    mean_cosine: float
    least_cosine: float
    furthest_text: int
    mean_overlap: float
    nonzero_before: float
    nonzero_after: float
    texts: tuple[TextDrift, ...]

    def to_dict(self) -> dict[str, object]:
        """Everything that the tables show, as plain objects and lists."""
        return asdict(self)


def compare_vectors(before: csr_matrix, after: csr_matrix, top: int = 20) -> Drift:
    """Compare two models by their vectors of the same texts: before (texts, V), after (texts, V or more).

    The second may have more tokens, its first ones being those of the first.
    """
    old = after[:, : before.shape[1]]
    cosines = _cosines(before, old)
    sizes = [np.diff(vectors.indptr) for vectors in (before, after)]
    texts = tuple(
        TextDrift(
            float(cosines[row]),
            _overlap(before[row], old[row], top),
            int(sizes[0][row]),
            int(sizes[1][row]),
        )
        for row in range(before.shape[0])
    )
    furthest = int(cosines.argmin())
    return Drift(
        top=top,
        mean_cosine=float(cosines.mean()),
        least_cosine=float(cosines[furthest]),
        furthest_text=furthest,
        mean_overlap=float(np.mean([text.overlap for text in texts])),
        nonzero_before=float(sizes[0].mean()),
        nonzero_after=float(sizes[1].mean()),
        texts=texts,
    )


def _cosines(before: csr_matrix, after: csr_matrix) -> NDArray[np.float64]:
    """Cosine of each row: 1 where both are empty (nothing changed), 0 where one is."""
    first, second = before.astype(np.float64), after.astype(np.float64)
    dots = np.asarray(first.multiply(second).sum(axis=1)).ravel()
    squares = [np.asarray(rows.multiply(rows).sum(axis=1)).ravel() for rows in (first, second)]
    lengths = np.sqrt(squares[0] * squares[1])
    both_empty = (squares[0] == 0) & (squares[1] == 0)
    cosines = np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)
    return np.where(both_empty, 1.0, np.minimum(cosines, 1.0))


def _overlap(before: csr_matrix, after: csr_matrix, top: int) -> float:
    """Of the heaviest tokens before, the share that is still among the heaviest; 1 where there were none.

    before, after: one text each, (1, V).
    """
    first, second = _heaviest_tokens(before, top), _heaviest_tokens(after, top)
    return len(first & second) / len(first) if first else 1.0


def _heaviest_tokens(row: csr_matrix, top: int) -> set[int]:
    order = np.lexsort((row.indices, -row.data))[:top]
    return set(row.indices[order].tolist())


def tabulate_drift(drift: Drift) -> Table:
    """One row of figures a measure."""
    rows: list[Row] = [
        {"figure": "cosine of old dimensions, mean", "value": drift.mean_cosine},
        {
            "figure": f"cosine of old dimensions, least (text {drift.furthest_text})",
            "value": drift.least_cosine,
        },
        {"figure": f"overlap of the {drift.top} heaviest tokens, mean", "value": drift.mean_overlap},
        {"figure": "non-zeros a text before", "value": drift.nonzero_before},
        {"figure": "non-zeros a text after", "value": drift.nonzero_after},
    ]
    columns = (Column("figure", "figure", "text"), Column("value", "value", decimals=3))
    return Table("Drift", columns, rows, f"over {len(drift.texts):,} texts")
