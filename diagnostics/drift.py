"""How far training moved what a model already knew: its old dimensions before and after, text by text."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.retrieve.encode import encode


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

    def to_dict(self) -> dict[str, Any]:
        """Everything that the tables show, as plain objects and lists."""
        return asdict(self)


def measure_drift(before: SparseEncoder, after: SparseEncoder, texts: Sequence[str], top: int = 20) -> Drift:
    """Compare two models over texts; `after` may have more tokens, its first ones being those of `before`."""
    assert texts, "drift needs at least one text"
    return compare_vectors(encode(before, texts, "document"), encode(after, texts, "document"), top)


def compare_vectors(before: csr_matrix, after: csr_matrix, top: int = 20) -> Drift:
    """The same for vectors that are there already: before (texts, V), after (texts, V or more)."""
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
    """Of the heaviest tokens before, the share that is still among the heaviest; 1 where there were none."""
    first, second = _heaviest(before, top), _heaviest(after, top)
    return len(first & second) / len(first) if first else 1.0


def _heaviest(row: csr_matrix, top: int) -> set[int]:
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
