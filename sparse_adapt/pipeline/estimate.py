"""How long an adaptation will take, from a moment's work of each kind on this machine, before it begins."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sparse_adapt.collection.readers import Document
from sparse_adapt.model.dense import SMALL, DenseEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.pipeline.request import Request
from sparse_adapt.report.watching import duration
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.teachers.names import ENSEMBLE

TRIED = 8  # documents
MODELS_TRIED = 4  # at the choice


class Expected(NamedTuple):
    """One part of the work, and how many seconds it may take."""

    what: str
    seconds: float


def expected(request: Request, documents: Sequence[Document], total: int) -> list[Expected]:
    """The parts that take long, in their order. `documents`: those looked at; `total`: those of the corpus."""
    settings, encoder = request.settings, SparseEncoder.load(request.model)
    texts = [document.full_text for document in documents[:: max(1, len(documents) // TRIED)][:TRIED]]
    encode(encoder, texts[:1])  # compiles, which counts once
    encoding = _seconds(lambda: encode(encoder, texts)) / len(texts)
    if settings.longest is not None:
        encoder.read_up_to(settings.longest)
    learning = _seconds(lambda: _learn(encoder, texts)) / len(texts)
    judging = 0.0
    if request.teacher == ENSEMBLE:
        dense = DenseEncoder(SMALL, rough=True)  # as the teacher has it
        dense.encode(texts[:1])
        judging = _seconds(lambda: dense.encode(texts[:4])) / min(4, len(texts))
    queries = min(settings.queries.count, len(documents) * settings.queries.per_document)
    held = min(settings.queries.held, len(documents) // 4)
    pool = min(len(documents), held * settings.candidates.count)
    stages = {name: settings_for(name, "corpus", request.overrides) for name in ("behaviour", "imitate")}
    keeping = stages["behaviour"].steps_for(len(documents))
    ranking = stages["imitate"].steps_for(queries)
    texts_a_step = stages["imitate"].batch_size * (settings.candidates.count + 1)
    rows = [
        Expected(f"reading {total:,} documents for terms", total * 1e-3),
        Expected(f"{len(documents):,} documents by the base model", len(documents) * encoding),
        Expected(f"{len(documents):,} documents by the dense teacher", len(documents) * judging),
        Expected(f"candidates of {queries + held:,} queries", (queries + held) * (encoding / 4 + 0.01)),
        Expected(
            f"{keeping:,} steps to keep what the model does",
            keeping * stages["behaviour"].batch_size * (learning + encoding) / 3,
        ),
        Expected(
            f"{ranking:,} steps to rank as the teacher does",
            0.0 if settings.frozen else ranking * texts_a_step * learning,
        ),
        Expected("choosing on the queries set aside", MODELS_TRIED * pool * encoding),
    ]
    return [row for row in rows if row.seconds >= 0.5]


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _learn(encoder: SparseEncoder, texts: Sequence[str]) -> None:
    """One forward and backward pass that changes nothing."""
    encoder.weights(encoder.tokenize(list(texts))).mean().backward()
    for parameter in encoder.parameters():
        parameter.grad = None


def told(rows: Sequence[Expected]) -> list[str]:
    """The parts in words, the whole last."""
    lines = [f"  {duration(row.seconds):>8}  {row.what}" for row in rows]
    return [*lines, f"  {duration(sum(row.seconds for row in rows)):>8}  in all, about"]
