"""How long an adaptation will take, from a moment's work of each kind on this machine, before it begins."""

import time
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

import torch

from sparse_adapt.collection.readers import Document
from sparse_adapt.model.dense import SMALL, DenseEncoder
from sparse_adapt.model.reading import Reading
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.request import Request
from sparse_adapt.report.progress import duration
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.selection.questions import general_collection
from sparse_adapt.stages.inputs import CANDIDATES
from sparse_adapt.stages.table import find_stage
from sparse_adapt.teachers.settings import ENSEMBLE
from sparse_adapt.training.settings import Training

TRIED = 8  # documents
TERMS = 30  # that a corpus or a glossary has, while nobody knows
MODELS_TRIED = 4  # at the choice


class Expected(NamedTuple):
    """One part of the work, and how many seconds it may take."""

    what: str
    seconds: float


class Speeds(NamedTuple):
    """Seconds that one document takes on this machine: read, learnt from, or read by the dense teacher."""

    encoding: float
    learning: float
    judging: float


def expected(
    request: Request, documents: Sequence[Document], total: int, done: Container[str] = ()
) -> list[Expected]:
    """The parts that take long, in their order.

    `documents`: those looked at; `total`: those of the corpus; `done`: steps and stages that were done before.
    """
    settings = request.settings
    speeds = measure_speeds(
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
    stages = {
        name: stage_expected(
            name,
            request.settings_of(name),
            speeds,
            documents=len(documents),
            queries=queries,
            terms=TERMS,
        )
        for name in request.all_stages
        if find_stage(name).trains
    }
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
        *((name, *stage) for name, stage in stages.items()),
        (
            "choice",
            "comparing models on the queries set aside",
            choices * MODELS_TRIED * pool * speeds.encoding,
        ),
        ("retention", *_general(speeds, documents)),
    ]
    rows = [Expected(what, seconds) for name, what, seconds in parts if name not in done]
    return [row for row in rows if row.seconds >= 0.5]


def _general(speeds: Speeds, documents: Sequence[Document]) -> Expected:
    """How long both models read the general passages, which are shorter or longer than the documents."""
    general = general_collection()
    longer = _mean_length(general.documents) / max(1.0, _mean_length(documents))
    seconds = 2 * len(general.documents) * speeds.encoding * longer
    return Expected(f"asking {len(general.queries):,} general questions of two models", seconds)


def _mean_length(documents: Sequence[Document]) -> float:
    return sum(len(document.full_text) for document in documents) / max(1, len(documents))


def stage_expected(
    name: str, settings: Training, speeds: Speeds, *, documents: int, queries: int, terms: int
) -> Expected:
    """How long a stage may take: its steps, the texts of a step, and what learning from a text takes here."""
    stage = find_stage(name)
    settings = settings.settled(queries=queries, terms=terms)
    steps = settings.steps_for(queries if CANDIDATES in stage.reads else documents)
    assert settings.batch_size is not None, "settled"
    texts = settings.batch_size * settings.gradient_accumulation * stage.texts
    return Expected(f"{steps:,} steps of {name}", steps * texts * speeds.learning)


def measure_speeds(
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
    encode(encoder, texts[:1], "document")  # compiles, which counts once
    encoding = _seconds(lambda: encode(encoder, texts, "document")) / len(texts)
    if longest is not None:
        encoder.read_up_to(longest)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        learning = _seconds(lambda: learn_once(encoder, texts)) / len(texts)
    judging = 0.0
    if dense:
        judge = DenseEncoder(SMALL, rough=True)  # as the teacher has it
        judge.encode(texts[:1])
        judging = _seconds(lambda: judge.encode(texts[:4])) / min(4, len(texts))
    return Speeds(encoding, learning, judging)


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
