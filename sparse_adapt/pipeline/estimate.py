"""How long an adaptation will take, from a moment's work of each kind on this machine, before it begins."""

import time
from collections.abc import Callable, Container, Iterator, Sequence
from typing import NamedTuple

import torch

from sparse_adapt.collection.readers import Document
from sparse_adapt.model.dense import SMALL, DenseEncoder
from sparse_adapt.model.reading import Reading
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.request import Request
from sparse_adapt.report.watching import duration
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.stages.stage import Effort, Sizes
from sparse_adapt.stages.table import find_stage
from sparse_adapt.teachers.settings import ENSEMBLE

TRIED = 8  # documents
TERMS = 30  # that a corpus or a glossary has, while nobody knows
SHORT_WORDS = 12  # of a text like a query
MODELS_TRIED = 4  # at the choice


class Expected(NamedTuple):
    """One part of the work, and how many seconds it may take."""

    what: str
    seconds: float


class Speeds(NamedTuple):
    """Seconds that one text takes on this machine: a document or a short one, read or learnt from."""

    encoding: float
    learning: float
    short: float
    judging: float


def expected(
    request: Request, documents: Sequence[Document], total: int, done: Container[str] = ()
) -> list[Expected]:
    """The parts that take long, in their order.

    `documents`: those looked at; `total`: those of the corpus; `done`: steps and stages that were done before.
    """
    settings = request.settings
    speeds = measured(
        request.model,
        documents,
        reading=request.reading,
        longest=settings.longest,
        dense=request.teacher == ENSEMBLE,
    )
    queries = min(settings.queries.count, len(documents) * settings.queries.per_document)
    held = min(settings.queries.held, len(documents) // 4)
    pool = min(len(documents), held * settings.candidates.count)
    choices = 1 if request.ranking is None else 2
    scored = (0 if request.candidates is not None else queries) + held
    parts = [
        ("terms", f"reading {total:,} documents for terms", total * 1e-3 if request.extends else 0.0),
        (
            "candidates",
            f"encoding {len(documents):,} documents with the base model",
            len(documents) * speeds.encoding,
        ),
        (
            "candidates",
            f"encoding {len(documents):,} documents with the dense teacher",
            len(documents) * speeds.judging,
        ),
        ("candidates", f"scoring documents for {scored:,} queries", scored * (speeds.encoding / 4 + 0.01)),
        *_stages(request, Sizes(len(documents), TERMS, queries, settings.candidates.count), speeds),
        (
            "choice",
            "comparing models on the queries set aside",
            choices * MODELS_TRIED * pool * speeds.encoding,
        ),
    ]
    rows = [Expected(what, seconds) for name, what, seconds in parts if name not in done]
    return [row for row in rows if row.seconds >= 0.5]


def _stages(request: Request, sizes: Sizes, speeds: Speeds) -> Iterator[tuple[str, str, float]]:
    """Each stage that is carried out: its name, its steps in words, and seconds."""
    for name in request.all_stages:
        stage = find_stage(name)
        effort = stage.costs(request.settings_of(name), sizes) if stage.trains else None
        if effort is not None:
            yield name, f"{effort.steps:,} steps of {name}", seconds_of(effort, speeds)


def seconds_of(effort: Effort, speeds: Speeds) -> float:
    """What a stage may take."""
    learnt = effort.documents * speeds.learning + effort.short * speeds.short
    step = learnt + effort.looked_at * speeds.encoding
    return effort.steps * step + effort.before * speeds.encoding


def measured(
    model: str,
    documents: Sequence[Document],
    *,
    reading: Reading | None = None,
    longest: int | None = None,
    dense: bool = False,
    precision: str = "float32",
) -> Speeds:
    """What some of the documents take, each kind of work once.

    longest: tokens of a text that is learnt from; dense: whether a dense teacher reads documents, too; precision: in
    which a model learns.
    """
    encoder = SparseEncoder.load(model)
    encoder.read_as(reading or Reading())
    texts = [document.full_text for document in documents[:: max(1, len(documents) // TRIED)][:TRIED]]
    short = [" ".join(text.split()[:SHORT_WORDS]) for text in texts]
    encode(encoder, texts[:1], "document")  # compiles, which counts once
    encoding = _seconds(lambda: encode(encoder, texts, "document")) / len(texts)
    if longest is not None:
        encoder.read_up_to(longest)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        learning = _seconds(lambda: learn_once(encoder, texts)) / len(texts)
        briefly = _seconds(lambda: learn_once(encoder, short)) / len(short)
    judging = 0.0
    if dense:
        judge = DenseEncoder(SMALL, rough=True)  # as the teacher has it
        judge.encode(texts[:1])
        judging = _seconds(lambda: judge.encode(texts[:4])) / min(4, len(texts))
    return Speeds(encoding, learning, briefly, judging)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def learn_once(encoder: SparseEncoder, texts: Sequence[str]) -> None:
    """One forward and backward pass that changes nothing."""
    encoder.weights(encoder.tokenize(list(texts))).mean().backward()
    for parameter in encoder.parameters():
        parameter.grad = None


def told(rows: Sequence[Expected]) -> list[str]:
    """The parts in words, the whole last."""
    lines = [f"  {duration(row.seconds):>8}  {row.what}" for row in rows]
    return [*lines, f"  {duration(sum(row.seconds for row in rows)):>8}  in all, about"]
