"""An engine's ranking held against exact search: every difference is explained, or it is a fault.

For each query the engine's list is compared with the exact one over the float weights. Where they differ,
the list must be right for the weights that the engine keeps (`Engine.document_weights`, `Engine.query_weights`):

| kind | what it means |
|---|---|
| same | the same documents in the same order |
| tie | documents of equal score stand in another order, or share the last place |
| rounding | exact search over the rounded weights gives the engine's list: the format costs this |
| fault | a score, an order, a missing or a foreign document that nothing explains |

Dimensions: N documents, V vocabulary.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Judgements, Run
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.plugins.engines.engine import Engine
from sparse_adapt.report.tables import Column, Figures, Row, Table
from sparse_adapt.retrieve.evaluate import evaluate_run
from sparse_adapt.retrieve.search import Searcher
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

DIFFERENCE_KINDS = ("same", "tie", "rounding", "fault")
COMPARED_AT_ONCE = 64
LEAST_TOLERANCE = 1e-9  # what float64 may be off
EXACT_TOLERANCE = 1e-6  # what counts as equal among float32 scores, as a share
MEASURED_DEPTH = 10  # of nDCG@10

DECIMALS = 4

DocumentScores = NDArray[np.float64]


class Difference(NamedTuple):
    """A query whose list isn't the exact one: which kind, and in words where it differs first."""

    query_id: str
    kind: str
    words: str


class Parity(NamedTuple):
    """How an engine's lists compare with the exact ones, each for the `top` documents of a query.

    `kinds`: how many lists are of each kind. `largest_difference`: of a score to that over the float weights, as a
    share of the query's best score. `encoding_difference`: the largest between a weight of a query as the export
    encodes it and as the model does, where the export holds an encoder. `measures`: `exact`, `engine` and what is
    `lost` between them, where there are judgements.
    """

    engine: str
    documents: int
    queries: int
    top: int
    kinds: dict[str, int]
    largest_difference: float
    encoding_difference: float | None
    measures: dict[str, Figures]
    differences: tuple[Difference, ...]

    @property
    def faults(self) -> tuple[Difference, ...]:
        """The differences that nothing explains."""
        return tuple(each for each in self.differences if each.kind == "fault")

    def as_json(self) -> dict[str, object]:
        """The whole comparison as plain values, for programs."""
        return {**self._asdict(), "differences": [each._asdict() for each in self.differences]}


def check_engine(
    engine: Engine,
    documents: EncodedBatch,
    queries: EncodedBatch,
    *,
    k: int = 10,
    judgements: Judgements | None = None,
    texts: Sequence[str] | None = None,
) -> Parity:
    """Put every query to the engine and to exact search over the float weights.

    documents (N, V), queries (rows, V): weights as the model gives them. `texts`: the queries in words, for an
    engine that holds an encoder. Raises ConfigError for judgements with lists too short to be measured.
    """
    if judgements is not None and k < MEASURED_DEPTH:
        raise ConfigError(f"--top {k}: nDCG@10 needs {MEASURED_DEPTH} documents a query")
    put, encoding_difference = _put(engine, queries, texts)
    run = engine.search_all(put, k)
    exact = Searcher(documents.vectors).top_k(queries.vectors, k)
    plain = _scores(queries.vectors, documents.vectors)
    stored_scores = _scores(engine.query_weights(put), engine.document_weights(documents))
    row_of = {document_id: row for row, document_id in enumerate(documents.ids)}
    differences, largest = [], 0.0
    for query_id, (rows, _), by_weights, by_stored in zip(
        queries.ids, exact, plain, stored_scores, strict=True
    ):
        ranking = EngineRanking(query_id, run.get(query_id, {}), row_of, k)
        difference = ranking.explain(rows.tolist(), by_weights, by_stored, engine.tolerance)
        differences += [difference] if difference else []
        largest = max(largest, ranking.largest_difference(by_weights))
    expected: Run = {
        query_id: {documents.ids[row]: float(score) for row, score in zip(*each, strict=True)}
        for query_id, each in zip(queries.ids, exact, strict=True)
    }
    counts = Counter(difference.kind for difference in differences)
    counts["same"] = len(queries.ids) - len(differences)
    measures = {"exact": _measure(expected, judgements), "engine": _measure(run, judgements)}
    measures["lost"] = {name: value - measures["engine"][name] for name, value in measures["exact"].items()}
    return Parity(
        engine=engine.name,
        documents=len(documents.ids),
        queries=len(queries.ids),
        top=k,
        kinds={kind: counts[kind] for kind in DIFFERENCE_KINDS},
        largest_difference=largest,
        encoding_difference=encoding_difference,
        measures=measures,
        differences=tuple(differences),
    )


class EngineRanking:
    """One query's list as an engine gave it."""

    def __init__(
        self, query_id: str, ranking: Mapping[str, float], row_of: Mapping[str, int], k: int
    ) -> None:
        self.query_id, self.k = query_id, k
        self.foreign = next((each for each in ranking if each not in row_of), None)
        self.ids = [each for each in ranking if each in row_of]
        self.rows = [row_of[each] for each in self.ids]
        self.scores = np.array([ranking[each] for each in self.ids], dtype=np.float64)

    def explain(
        self, exact_rows: list[int], plain: DocumentScores, stored: DocumentScores, tolerance: float
    ) -> Difference | None:
        """Why the list isn't the exact one, or None where it is.

        plain, kept: (N) scores over the float weights, and over those that the engine keeps.
        """
        fault = self._fault(stored, max(tolerance, LEAST_TOLERANCE))
        if fault:
            return Difference(self.query_id, "fault", fault)
        if self.rows == exact_rows:
            return None
        pairs = zip(exact_rows, self.rows, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        kind = "rounding" if self._misplaced(plain, EXACT_TOLERANCE) else "tie"
        return Difference(self.query_id, kind, f"differs from rank {same + 1}")

    def largest_difference(self, plain: DocumentScores) -> float:
        """The largest difference of a score to the exact one, as a share of the best score."""
        if not self.rows:
            return 0.0
        return float(np.abs(self.scores - plain[self.rows]).max() / max(plain.max(), LEAST_TOLERANCE))

    def _fault(self, stored: DocumentScores, tolerance: float) -> str:
        """The first thing wrong with the list, given the scores (N) that it should be made by; "" if none."""
        if self.foreign is not None:
            return f"names {self.foreign!r}, which is not in the corpus"
        slack = tolerance * max(float(stored.max(initial=0.0)), LEAST_TOLERANCE)
        off = np.abs(self.scores - stored[self.rows])
        if not (off <= slack).all():  # so that a score that is no number is off, too
            place = int(off.argmax())
            return f"{self.ids[place]} scores {self.scores[place]:.6g}, not {stored[self.rows[place]]:.6g}"
        return self._misplaced(stored, tolerance)

    def _misplaced(self, scores: DocumentScores, tolerance: float) -> str:
        """Which document stands too low or is missing by these scores (N); "" if the list may be right."""
        slack = tolerance * max(float(scores.max(initial=0.0)), LEAST_TOLERANCE)
        listed = scores[self.rows]
        rises = np.diff(listed) > slack
        if rises.any():
            place = int(rises.argmax())
            return f"{self.ids[place + 1]} scores more than {self.ids[place]} above it"
        rest = scores.copy()
        rest[self.rows] = 0.0
        worst = float(listed[-1]) if len(listed) == self.k else 0.0
        if rest.max(initial=0.0) > worst + slack:
            return f"row {int(rest.argmax())} of the corpus scores {rest.max():.6g} and is missing"
        return ""


def headline(parity: Parity) -> str:
    """What was compared, and how far the numbers are apart, in two lines."""
    line = f"{parity.engine} beside exact search: {parity.documents:,} documents, top {parity.top}\n"
    line += f"scores differ by {parity.largest_difference:.1e} of the best at most"
    if parity.encoding_difference is not None:
        line += f"; query weights of the export's own encoder by {parity.encoding_difference:.1e}"
    return line


def tables(parity: Parity) -> Iterator[Table]:
    """How many lists are of which kind, and the measures where there are judgements."""
    kinds: list[Row] = [{"kind": kind, "queries": parity.kinds[kind]} for kind in DIFFERENCE_KINDS]
    yield Table("", (Column("kind", "rankings", "text"), Column("queries", "queries")), kinds)
    if not parity.measures["exact"]:
        return
    columns = (
        Column("measure", "measure", "text"),
        Column("exact", "exact", decimals=DECIMALS),
        Column("engine", "engine", decimals=DECIMALS),
        Column("lost", "lost", decimals=DECIMALS, signed=True),
    )
    rows: list[Row] = [
        {"measure": name, **{kind: figures[name] for kind, figures in parity.measures.items()}}
        for name in parity.measures["exact"]
    ]
    yield Table("", columns, rows)


def _put(
    engine: Engine, queries: EncodedBatch, texts: Sequence[str] | None
) -> tuple[EncodedBatch, float | None]:
    """The queries as they reach the engine: encoded by the export where it can; how far that is from ours."""
    if engine.encode is None or texts is None:
        return queries, None
    encoded = engine.encode(texts)
    if encoded.shape != queries.vectors.shape:
        raise InputError("the export", f"encodes to {encoded.shape}, the model to {queries.vectors.shape}")
    apart = abs(encoded - queries.vectors)
    return EncodedBatch(queries.ids, encoded), float(apart.max()) if apart.nnz else 0.0


def _scores(queries: csr_matrix, documents: csr_matrix) -> Iterator[DocumentScores]:
    """For each query (rows, V) its scores with all documents (N, V): (N)."""
    columns = documents.astype(np.float64).T
    for first in range(0, queries.shape[0], COMPARED_AT_ONCE):
        some = queries[first : first + COMPARED_AT_ONCE].astype(np.float64)
        yield from np.asarray((some @ columns).todense())


def _measure(run: Run, judgements: Judgements | None) -> Figures:
    """nDCG@10 over the judged queries of the run."""
    if judgements is None:
        return {}
    judged = {query_id: each for query_id, each in judgements.items() if query_id in run}
    return {"ndcg@10": evaluate_run(run, judged).means["ndcg@10"]}
