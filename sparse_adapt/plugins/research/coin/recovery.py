"""How much of what a collection lost to coined terms comes back when a model is adapted to it.

    recovery = (adapted - floor) / (ceiling - floor)

All three are means of a measure over the same queries. The unadapted model reaches the floor where documents say
coined words, and the ceiling on the original documents. At 0 nothing was learnt of the words. At 1 the search is as
good as if they had never been replaced. Below 0 the adaptation did harm.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.collection.readers import Query, read_queries
from sparse_adapt.errors import InputError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.research.coin.coining import CARRIED, TYPED_FILE, read_coined
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, ModelResult, evaluate_vectors, read_collection
from sparse_adapt.retrieve.significance import Interval, Values

MEASURE = "ndcg@10"
RESAMPLES, MIDDLE = 2000, (0.025, 0.975)  # of a bootstrap, and between what its middle 95 % lie
LEAST_LOSS = 0.01  # of the measure: with less to recover than that, a share of it says nothing


@dataclass(frozen=True, slots=True)
class Recovery:
    """Three means over `queries` queries, and the share of the loss that came back; None if there was none."""

    queries: int
    floor: float
    adapted: float
    ceiling: float
    recovery: Interval | None

    def share(self) -> dict[str, float | None]:
        """The share and its bounds as cells of a table; None where there was no loss to regain."""
        recovery = self.recovery
        low, value, high = (
            (None, None, None) if recovery is None else (recovery.low, recovery.value, recovery.high)
        )
        return {"recovery": value, "low": low, "high": high}


def recovered(adapted: Values, floor: Values, ceiling: Values, *, seed: int = 0) -> Recovery:
    """Compare a measure of the same queries (Q) in three settings.

    The interval is a percentile bootstrap over queries: each resample takes all three of a query.
    """
    assert adapted.shape == floor.shape == ceiling.shape, (adapted.shape, floor.shape, ceiling.shape)
    low, reached, high = (float(each.mean()) if len(each) else 0.0 for each in (floor, adapted, ceiling))
    lost = high - low
    if not len(adapted) or lost < LEAST_LOSS:
        return Recovery(len(adapted), low, reached, high, None)
    resamples = resampled_means(np.stack([floor, adapted, ceiling]), np.random.default_rng(seed))
    losses = resamples[2] - resamples[0]
    enough = losses > 0
    shares = (resamples[1] - resamples[0])[enough] / losses[enough]
    share = Interval((reached - low) / lost, *map(float, np.quantile(shares, MIDDLE)))
    return Recovery(len(adapted), low, reached, high, share)


def resampled_means(values: Values, generator: np.random.Generator) -> Values:
    """Means of rows (R, Q) over `RESAMPLES` draws of Q queries with replacement: (R, RESAMPLES).

    How often each query is drawn is what counts, so a resample is one multinomial draw.
    """
    queries = values.shape[1]
    counts = generator.multinomial(queries, np.full(queries, 1 / queries), size=RESAMPLES)
    means: Values = values @ counts.T / queries
    return means


# -- the three settings ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trial:
    """A coined collection beside the original, and the queries of one split in both wordings."""

    coined: Collection
    original: Collection
    typed: tuple[Query, ...]
    words: int


@dataclass(frozen=True, slots=True)
class CoinedResult:
    """How a model did on a coined collection.

    `said`: queries that say a real word, whose coined word the model has to know; `typed`: the same queries with the
    coined word typed; `other`: queries that no replacement touched, where harm shows.
    """

    said: Recovery
    typed: Recovery
    other: Recovery

    def to_json(self) -> dict[str, object]:
        """Everything that the table shows, as plain objects."""
        return asdict(self)


def read_trial(folder: str | Path, split: str = "test", original: str | None = None) -> Trial:
    """A collection that `coin` made, and the one it was made from (by default where that was then).

    Raises InputError where the two aren't of the same documents and queries.
    """
    report = read_coined(folder)
    coined = read_collection(folder, split)
    source = read_collection(original or report.source, split)
    ids = [[query.query_id for query in each.queries] for each in (coined, source)]
    if ids[0] != ids[1] or len(coined.documents) != len(source.documents):
        raise InputError(original or report.source, f"isn't what {folder} was made from; name it: --original")
    texts = {query.query_id: query for query in read_queries(Path(folder) / TYPED_FILE)}
    typed = tuple(texts.get(query.query_id, query) for query in coined.queries)
    if not any(query.kind == CARRIED for query in coined.queries):
        raise InputError(folder, f"no query of the split {split!r} held a replaced word; coin more terms")
    return Trial(coined, source, typed, len(report.coined))


def measure_recovery(
    model: SparseEncoder, base: SparseEncoder, trial: Trial, progress: Progress = no_progress
) -> CoinedResult:
    """Rank with the unadapted `base` on both collections and with `model` on the coined one."""

    def rank(encoder: SparseEncoder, collection: Collection) -> list[ModelResult]:
        documents = encode(
            encoder, [each.full_text for each in collection.documents], "document", progress=progress
        )
        results = []
        for queries in (collection.queries, trial.typed):
            part = replace(collection, queries=queries)
            vectors = encode(encoder, [query.text for query in queries], "query")
            results.append(evaluate_vectors(vectors, documents, part))
        return results

    ceiling, _ = rank(base, trial.original)
    floor, floor_typed = rank(base, trial.coined)
    adapted, adapted_typed = rank(model, trial.coined)
    carried = np.array([query.kind == CARRIED for query in trial.coined.queries])

    def compare(
        adapted: ModelResult, floor: ModelResult, chosen: NDArray[np.bool_]
    ) -> Recovery:  # (queries,)
        ours, low, high = (each.values[MEASURE][chosen] for each in (adapted, floor, ceiling))
        return recovered(ours, low, high)

    return CoinedResult(
        said=compare(adapted, floor, carried),
        typed=compare(adapted_typed, floor_typed, carried),
        other=compare(adapted, floor, ~carried),
    )
