"""How a model uses its new tokens over a corpus: which have no weight, and which light where nobody says them.

Vectors come from `sparse_adapt.retrieve.encode.encode`, a row a text, V columns. Dimensions: V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.tables import Column, Table


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

    def to_dict(self) -> dict[str, Any]:
        """Everything that the tables show, as plain objects and lists."""
        return asdict(self) | {"tokens": [asdict(token) | {"dead": token.dead} for token in self.tokens]}


def measure_usage(model: SparseEncoder, texts: Sequence[str], vectors: csr_matrix) -> Usage:
    """How the new tokens of a model are used over texts and their vectors (texts, V)."""
    said = _said(model, texts)
    columns = vectors.tocsc()
    tokens = tuple(
        _token_usage(token.token_id, token.token, token.category, said, columns) for token in model.new_tokens
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


def _said(model: SparseEncoder, texts: Sequence[str]) -> dict[int, list[int]]:
    """New token id -> the texts that hold it."""
    wanted = {token.token_id for token in model.new_tokens}
    said: dict[int, list[int]] = {token_id: [] for token_id in wanted}
    for row, token_ids in enumerate(model.tokenize(texts)):
        for token_id in wanted.intersection(token_ids):
            said[token_id].append(row)
    return said


def _token_usage(
    token_id: int, token: str, category: str, said: dict[int, list[int]], columns: csr_matrix
) -> TokenUsage:
    weights = columns[:, [token_id]].toarray()[:, 0]
    holds = np.zeros(len(weights), dtype=bool)
    holds[said[token_id]] = True
    with_token = weights[holds]
    return TokenUsage(
        token_id=token_id,
        token=token,
        category=category,
        documents_with=int(holds.sum()),
        fires_with=int((with_token > 0).sum()),
        documents_without=int((~holds).sum()),
        fires_without=int((weights[~holds] > 0).sum()),
        mean_weight_with=float(with_token.mean()) if len(with_token) else 0.0,
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
        Column("fires_with", "lit"),
        Column("documents_without", "not said by"),
        Column("fires_without", "lit"),
        Column("mean_weight_with", "mean weight", decimals=3, bar=True),
    )
    shares = (
        ("without weight", usage.dead_share),
        ("lit where said", usage.fires_with_share),
        ("lit where not said", usage.fires_without_share),
    )
    note = "; ".join(f"{name} {share:.1%}" for name, share in shares if share is not None)
    return Table("New tokens", columns, usage.to_dict()["tokens"], note)
