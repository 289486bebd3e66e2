"""How long an adaptation will take, from a moment's work of each kind on this machine, and how much memory."""

import math
import time
from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import NamedTuple

import torch
from transformers import PreTrainedTokenizerFast

from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.collection.readers import Document, read_documents
from sparse_adapt.collection.streams import evenly
from sparse_adapt.model.dense import SMALL, DenseEncoder
from sparse_adapt.model.folder import ModelFolder
from sparse_adapt.model.layout import is_dense
from sparse_adapt.model.reading import Reading
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.pipeline.preparing import CORPUS_QUERIES
from sparse_adapt.pipeline.request import Request
from sparse_adapt.pipeline.words import SAMPLE as WORDS_SAMPLE
from sparse_adapt.report.progress import duration
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.selection.models import COMPARED_DOCUMENTS
from sparse_adapt.selection.questions import SOME, general_collection
from sparse_adapt.stages.dictionary import Dictionary
from sparse_adapt.stages.inputs import CANDIDATES
from sparse_adapt.stages.table import find_stage
from sparse_adapt.synthetic.entry_queries import QUERIES_AN_ENTRY
from sparse_adapt.synthetic.labelled import LARGEST_POOL, POOL, POOL_A_TERM, WORDS
from sparse_adapt.teachers.settings import ENSEMBLE
from sparse_adapt.terms.alternatives import is_token
from sparse_adapt.terms.entries import EntryKeys, read_entries
from sparse_adapt.terms.mining import read_terms
from sparse_adapt.training.loop import device_of
from sparse_adapt.training.memory import Costs, gigabytes
from sparse_adapt.training.settings import Training

SAMPLE, MORE = 8, 64  # texts of a trial; where these are read in no time, so many
SHOWN = 0.5  # seconds of a part that is named
LONG = 1.0  # seconds of a trial that isn't made twice
A_QUERY = 0.25  # of a document's time
TERMS = 30  # that a corpus has, while nobody knows
SHORT = 24  # texts as short as synthetic ones that the labeller reads for a trial
A_TEXT = 60  # signs of such a text
BEFORE_CANDIDATES = ("words", "terms", "dictionary", "queries")  # steps of an adaptation
OF_MODELS = ("candidates", "stages", "choice")  # and those after them
MODELS_COMPARED = 3  # at a choice without words: the base model, half of the change, all of it
A_COUNT = 1e-3  # seconds to count a document's words
TIMES_COMPARED = 3  # that a document is read where nothing is taught
MODELS_ASKED = 3  # at a choice without words: the base model, the best, the one kept in its place


class Expected(NamedTuple):
    """One part of the work, how many seconds and how many bytes it may take, and how many there are."""

    what: str
    seconds: float
    memory: float = 0.0
    there: float = math.inf


class Speeds(NamedTuple):
    """Seconds that one document takes on this machine: read, learnt from, or read by the dense teacher.

    `general`: that a general passage takes, read; `labelling`: that a synthetic text takes, read by the dense encoder
    that labels it; `costs`: what learning takes in memory; `tokens`: of a document that is learnt from.
    """

    encoding: float
    learning: float
    by_dense: float
    general: float = 0.0
    labelling: float = 0.0
    costs: Costs | None = None
    tokens: float = 0.0


def expected(
    request: Request,
    tokenizer: PreTrainedTokenizerFast,
    documents: Sequence[Document],
    total: int,
    done: Container[str] = (),
    until: str | None = None,
) -> list[Expected]:
    """The parts that take long, in their order. `tokenizer`: of the model that is adapted.

    `documents`: those looked at; `total`: those of the corpus; `done`: steps and stages that were done before; `until`:
    the step after which nothing is done.
    """
    settings = request.settings
    reading = Expected(f"reading {total:,} documents for terms", total * 1e-3 if request.extends else 0.0)
    if until in BEFORE_CANDIDATES:  # no model reads anything
        return [] if "terms" in done or reading.seconds < SHOWN else [reading]
    speeds = measure_speeds(
        request.model,
        documents,
        reading=request.reading,
        longest=settings.longest,
        dense=bool(request.all_stages) and (request.teacher == ENSEMBLE or "dictionary" in request.stages),
        general=True,
        settings=_first_settings(request),
    )
    entry_queries, terms = of_glossary(request, tokenizer)
    if not request.all_stages or (request.ranking is None and request.glossary is not None and not terms):
        compared = min(COMPARED_DOCUMENTS, len(documents))
        seconds = (WORDS_SAMPLE + TIMES_COMPARED * compared) * speeds.encoding
        parts = [
            ("words", Expected(f"counting the words of {total:,} documents", total * A_COUNT)),
            ("choice", Expected("comparing both models on synthetic queries", seconds)),
            ("choice", general_expected(speeds, 1, SOME)),
        ]
        return [row for name, row in parts if name not in done and row.seconds >= SHOWN]
    if not terms and request.ranking is not None:  # then it only makes queries
        request = request.ranking
    queries = min(settings.queries.count, len(documents) * settings.queries.per_document)
    queries += min(entry_queries, queries // CORPUS_QUERIES)
    held_out = min(settings.queries.held, len(documents) // 4)
    pool = min(len(documents), held_out * settings.candidates.count)
    choices = 1 if request.ranking is None else 2
    scored = (0 if request.candidates is not None else queries) + held_out
    stages = {
        name: stage_expected(
            name,
            request.settings_of(name),
            speeds,
            documents=len(documents),
            queries=queries,
            terms=terms,
        )
        for name in request.all_stages
        if find_stage(name).trains
    }
    encoding = len(documents) * speeds.encoding
    by_dense = len(documents) * speeds.by_dense * (request.teacher == ENSEMBLE)
    scoring = scored * (A_QUERY * speeds.encoding + 0.01)
    comparing = (2**choices - 1) * MODELS_COMPARED * pool * speeds.encoding
    parts = [
        ("terms", reading),
        ("candidates", Expected(f"encoding {len(documents):,} documents with the base model", encoding)),
        ("candidates", Expected(f"encoding {len(documents):,} documents with the dense teacher", by_dense)),
        ("candidates", Expected(f"scoring documents for {scored:,} queries", scoring)),
        ("dictionary", _labelling(request, terms, speeds)),
        *stages.items(),
        ("choice", Expected("comparing models on the queries set aside", comparing)),
        ("choice", general_expected(speeds, MODELS_ASKED + choices - 1)),
    ]
    last = OF_MODELS.index(until) if until in OF_MODELS else len(OF_MODELS)
    return [
        row
        for name, row in parts
        if name not in done and row.seconds >= SHOWN and OF_MODELS.index(_step_of(name)) <= last
    ]


def _step_of(part: str) -> str:
    """The step in which a part is done: one of a stage's name is done among the stages."""
    return part if part in ("candidates", "choice") else "candidates" if part == "terms" else "stages"


def expected_of_plan(
    plan: Plan, trained: Sequence[tuple[str, Training]], models: int, questions: int | None = None
) -> list[Expected]:
    """How long a plan with a corpus may take on this machine: stages that train, and measuring so many models.

    `trained`: each stage as often as it is carried out, with its settings; `questions`: general ones, all by default.
    """
    assert plan.corpus is not None
    documents = list(read_documents(plan.corpus))
    queries = len(list(read_candidates(plan.files["candidates"]))) if "candidates" in plan.files else 0
    terms = len(read_terms(plan.files["terms"])) if "terms" in plan.files else 0
    labelling = [each for _, each in trained if isinstance(each, Dictionary) and each.labeller != "none"]
    learnt_from = {name: len(documents) for name, _ in trained}
    if "dictionary" in learnt_from:
        learnt_from["dictionary"] = len(read_dictionary(plan.files["dictionary"]))
    speeds = measure_speeds(
        plan.model, documents, dense=bool(labelling), general=True, settings=trained[0][1]
    )
    rows = []
    for stage, settings in trained:
        counts = {"documents": learnt_from[stage], "queries": queries, "terms": terms}
        rows.append(stage_expected(stage, settings, speeds, **counts))
    labelled_texts = sum(labelled(terms, each) for each in labelling)
    seconds = labelled_texts * speeds.labelling
    rows.append(Expected(f"labelling {labelled_texts:,} short texts", seconds))
    seconds = models * len(documents) * speeds.encoding
    rows.append(Expected(f"encoding {len(documents):,} documents with {models} models", seconds))
    rows.append(general_expected(speeds, models, questions))
    return [row for row in rows if row.seconds >= SHOWN]


def expected_of_run(plan: Plan) -> list[Expected]:
    """How long a run file may take: its stages, and the verdict on its first and last model.

    Nothing where the verdict has no corpus, the model is dense, or no stage trains.
    """
    model = ModelFolder.of(plan.model)
    if plan.corpus is None or not plan.trained or is_dense(model.path):
        return []
    return expected_of_plan(plan, list(plan.trained.items()), 2)


def _first_settings(request: Request) -> Training | None:
    """The settings of the first stage that trains; None where none does."""
    names = (name for name in request.all_stages if find_stage(name).trains)
    return next((request.settings_of(name) for name in names), None)


def general_expected(speeds: Speeds, models: int, questions: int | None = None) -> Expected:
    """How long so many models read the general questions and passages.

    `questions`: how many, all by default.
    """
    general = general_collection(most=questions)
    seconds = models * (len(general.documents) + A_QUERY * len(general.queries)) * speeds.general
    return Expected(
        f"asking {len(general.queries):,} general questions of {models} model{'s' * (models > 1)}", seconds
    )


def of_glossary(request: Request, tokenizer: PreTrainedTokenizerFast) -> tuple[int, int]:
    """How many queries a glossary makes, and how many of its words may get a token, whatever the corpus says."""
    if request.glossary is None:
        return 0, TERMS
    entries = read_entries(read_dictionary(request.glossary), EntryKeys(tokenizer)).entries
    words = (each.acronym if each.is_phrase else each.term for each in entries)
    return QUERIES_AN_ENTRY * len(entries), sum(1 for word in words if word and not is_token(tokenizer, word))


def labelled(terms: int, settings: Dictionary) -> int:
    """Short texts that the semantic labeller reads for so many terms: synthetic ones and ordinary words."""
    texts = min(LARGEST_POOL, POOL + POOL_A_TERM * terms) + WORDS
    return round(texts * settings.labelled_share(terms) * (settings.labeller != "none"))


def _labelling(request: Request, terms: int, speeds: Speeds) -> Expected:
    """The labeller's reading, where a stage is taught by it."""
    if "dictionary" not in request.stages:
        return Expected("", 0.0)
    settings = request.settings_of("dictionary")
    assert isinstance(settings, Dictionary)
    texts = labelled(terms, settings)
    return Expected(f"labelling {texts:,} short texts", texts * speeds.labelling)


def stage_expected(
    name: str, settings: Training, speeds: Speeds, *, documents: int, queries: int, terms: int
) -> Expected:
    """How long a stage may take: its steps, the texts of a step, and what learning from a text takes here.

    Raises ConfigError for a bound on memory that is too little.
    """
    stage = find_stage(name)
    settings = settings.settled(queries=queries, terms=terms)
    steps = settings.steps_for(queries if CANDIDATES in stage.reads else documents)
    texts = stage.texts_of(settings)
    seconds = steps * texts * settings.gradient_accumulation * speeds.learning
    what, costs = f"{steps:,} steps of {name}", speeds.costs
    if costs is None:
        return Expected(what, seconds)
    if settings.memory is not None:
        costs.checked(settings, name, texts)
    memory = min(costs.at_most(texts, speeds.tokens), settings.memory_bytes)
    return Expected(what, seconds, memory, costs.there)


def measure_speeds(
    model: str,
    documents: Sequence[Document],
    *,
    reading: Reading | None = None,
    longest: int | None = None,
    dense: bool = False,
    general: bool = False,
    settings: Training | None = None,
) -> Speeds:
    """What some of the documents take, each kind of work once.

    longest: tokens of a text that is learnt from; dense: whether a dense teacher reads documents, too; general: whether
    the model reads general passages, too; settings: of a stage, for the precision in which a model learns, and for what
    it takes in memory.
    """
    encoder = SparseEncoder.load(model)
    encoder.read_as(reading or Reading())
    texts = _some(documents, SAMPLE)
    encode(encoder, texts[:1], "document")  # compiles, which counts once
    encoding = _reading(encoder, documents)
    of_general = _reading(encoder, general_collection().documents) if general else 0.0
    if longest is not None:
        encoder.read_up_to(longest)
    low = settings is not None and settings.precision == "bfloat16"
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        learning = _seconds(lambda: learn_once(encoder, texts)) / len(texts)
    by_dense = labelling = 0.0
    if dense:
        dense_encoder = DenseEncoder(SMALL, rough=True)  # as the teacher has it
        dense_encoder.encode(texts[:1])
        by_dense = _seconds(lambda: dense_encoder.encode(texts[:4])) / min(4, len(texts))
        short = [
            (text * A_TEXT)[start : start + A_TEXT] for text in texts for start in range(SHORT // len(texts))
        ]
        labelling = _seconds(lambda: dense_encoder.encode(short)) / max(1, len(short))
    tokens = [len(ids) for ids in encoder.tokenize(texts)]
    costs = None if settings is None else Costs.of(encoder.to(device_of(settings)), settings)
    return Speeds(
        encoding, learning, by_dense, of_general, labelling, costs, sum(tokens) / max(1, len(tokens))
    )


def _reading(encoder: SparseEncoder, documents: Sequence[Document]) -> float:
    """Seconds that one of the documents takes to encode, among others as in a whole corpus."""
    seconds, texts = 0.0, _some(documents, SAMPLE)
    for count in (SAMPLE, MORE):
        if seconds < SHOWN:
            texts = _some(documents, count)
            seconds = _seconds(partial(encode, encoder, texts, "document"))
    return seconds / len(texts)


def _some(documents: Sequence[Document], count: int) -> list[str]:
    """The texts of at most so many documents, at even distances."""
    return [each.full_text for each in evenly(documents, count)]


def _seconds(work: Callable[[], object]) -> float:
    """How long work takes; of a short time the shorter of two, for another program may take one of them."""

    def once() -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    first = once()
    return first if first > LONG else min(first, once())


def learn_once(encoder: SparseEncoder, texts: Sequence[str]) -> None:
    """One forward and backward pass that changes nothing."""
    encoder.weights(encoder.tokenize(list(texts))).mean().backward()
    for parameter in encoder.parameters():
        parameter.grad = None


def describe(rows: Sequence[Expected]) -> list[str]:
    """The parts in words, the whole last, and what to do where there is less memory than it may take."""
    lines = ["expected time, from a short trial on this machine:"]
    lines += [f"  {duration(row.seconds):>8}  {row.what}" for row in rows]
    most = max((row.memory for row in rows), default=0.0)
    there = min((row.there for row in rows), default=math.inf)
    memory = f"; learning takes at most {gigabytes(most)} of memory" if most else ""
    lines.append(f"  {duration(sum(row.seconds for row in rows)):>8}  in all, about{memory}")
    if most > there:
        bound = math.floor(there / 1e8) / 10
        lines.append(
            f"only {gigabytes(there)} of memory are to be had here; stop and pass --memory {bound:g}G"
        )
    return lines
