"""How well a model tells how similar texts are: the rank correlation of its cosines with what people said.

    4.5<TAB>the boy plays the drum<TAB>a boy is drumming

A file of pairs has a line for each: any number that is higher the more similar the texts are, and the two texts.
The cosine is taken of sparse vectors too, since their product grows with the length of a text.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from sparse_adapt.collection.columns import read_tsv
from sparse_adapt.collection.opening import reachable
from sparse_adapt.collection.streams import at_least_one
from sparse_adapt.errors import InputError
from sparse_adapt.model.kinds import EitherEncoder
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.encode import encode

HEADERS = ("score", "similarity", "label")
LAYOUT = "similarity, text, text"
FEWEST = 3  # pairs that a correlation is worked out of
ROUNDS = 1_000  # resamples of an interval

Values = NDArray[np.float64]


class Likeness(NamedTuple):
    """Two texts, and how similar somebody found them."""

    first: str
    second: str
    similarity: float


class Correlation(NamedTuple):
    """Spearman's rank correlation, and where 95 % of resamples of the pairs lie."""

    value: float
    low: float
    high: float


def read_likenesses(path: str | Path) -> Iterator[Likeness]:
    """Every pair of a TSV file, with or without a header. Raises InputError with the line."""
    place = reachable(path)
    for line, columns in at_least_one(read_tsv(place, 3, LAYOUT), place, "pairs"):
        if line == 1 and columns[0].strip().lower() in HEADERS:
            continue
        similarity = _number(columns[0])
        if similarity is None:
            problem = f"needs a number as similarity (found: {columns[0][:40]}); columns are {LAYOUT}"
            raise InputError(path, problem, line=line)
        if not columns[1].strip() or not columns[2].strip():
            raise InputError(path, "a text is empty; fill it in or remove the line", line=line)
        yield Likeness(columns[1], columns[2], similarity)


def read_graded(path: str | Path) -> list[Likeness]:
    """Pairs that a correlation can be worked out of. Raises InputError where they are too few or all as similar."""
    pairs = list(read_likenesses(path))
    if len(pairs) < FEWEST:
        raise InputError(path, f"holds {len(pairs)} pairs; a correlation needs at least {FEWEST}")
    if len({pair.similarity for pair in pairs}) == 1:
        raise InputError(path, "all pairs are equally similar, so that there is no order to find; add others")
    return pairs


def cosines(
    model: EitherEncoder,
    firsts: Sequence[str],
    seconds: Sequence[str],
    progress: Progress = no_progress,
) -> Values:
    """Cosine of each first text with its second (pairs); 0 where a vector is empty. Each text is encoded once."""
    texts = {text: row for row, text in enumerate(dict.fromkeys([*firsts, *seconds]))}
    left, right = [texts[text] for text in firsts], [texts[text] for text in seconds]
    if isinstance(model, SentenceEncoder):
        dense = model.encode(list(texts), progress=progress)
        return np.asarray((dense[left] * dense[right]).sum(axis=1), dtype=np.float64)
    vectors = encode(model, list(texts), "document", progress=progress).astype(np.float64)
    lengths = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1))).ravel()
    products = np.asarray(vectors[left].multiply(vectors[right]).sum(axis=1)).ravel()
    return np.asarray(products / np.maximum(lengths[left] * lengths[right], 1e-12))


def cases(pairs: Sequence[Likeness], by_name: Mapping[str, Values]) -> list[dict[str, object]]:
    """Each text that several pairs begin with, as a query, and its candidates: number, what each model found.

    by_name: by model, cosines (pairs,). Queries in order; candidates of a query by their number, highest first.
    """
    candidates: dict[str, list[int]] = {}
    for row, pair in enumerate(pairs):
        candidates.setdefault(pair.first, []).append(row)
    return [
        {"query": query, "candidate": pairs[row].second, "label": pairs[row].similarity}
        | {name: float(values[row]) for name, values in by_name.items()}
        for query, rows in candidates.items()
        if len(rows) > 1
        for row in sorted(rows, key=lambda row: -pairs[row].similarity)
    ]


def spearman(values: Values, wanted: Values) -> float:
    """Rank correlation of what a model found with what it should find, (pairs) both; 0 where either never varies."""
    if np.ptp(values) == 0 or np.ptp(wanted) == 0:
        return 0.0
    return float(spearmanr(values, wanted).statistic)


def correlation(values: Values, wanted: Values, minus: Values | None = None, *, seed: int = 0) -> Correlation:
    """The correlation; with what a baseline found, `minus`, how far it is above the baseline's.

    values, wanted, minus: (pairs,), which are resampled.
    """

    def worked_out(rows: NDArray[np.int64]) -> float:
        other = 0.0 if minus is None else spearman(minus[rows], wanted[rows])
        return spearman(values[rows], wanted[rows]) - other

    random = np.random.default_rng(seed)
    resampled = [worked_out(random.integers(len(wanted), size=len(wanted))) for _ in range(ROUNDS)]
    low, high = np.quantile(resampled, (0.025, 0.975))
    return Correlation(worked_out(np.arange(len(wanted))), float(low), float(high))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
