"""About how long a run will take on this machine: two speeds, of reading its texts and of learning from them.

Both are measured with the user's own model. Steps read or learn so many texts each; a text of another length takes
its share of a document's time.
"""

import time
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeGuard

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.collection.readers import Document, read_documents
from sparse_adapt.collection.streams import evenly
from sparse_adapt.model.dense import SMALL, DenseEncoder
from sparse_adapt.model.folder import ModelFolder
from sparse_adapt.model.layout import is_dense
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.pipeline.preparing import CORPUS_QUERIES
from sparse_adapt.pipeline.request import Request
from sparse_adapt.pipeline.words import SAMPLE as WORDS_SAMPLE
from sparse_adapt.report.progress import LONG, duration
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.selection.comparison import JUDGED_DOCUMENTS
from sparse_adapt.selection.models import COMPARED_DOCUMENTS
from sparse_adapt.selection.questions import SOME, general_collection
from sparse_adapt.selection.retention import KNOWN_DOCUMENTS
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
from sparse_adapt.training.memory import Costs
from sparse_adapt.training.settings import Training

SAMPLES = (8, 64)  # texts of a trial; the second where the first are read in no time
TRIAL = 0.5  # seconds of a trial that tells enough
READ = 1200  # characters of a text that count: a model reads no more of most
LABELLED = 60  # characters of a text that the semantic labeller reads
A_COUNT = 1e-3  # seconds to count the words of a document
COMPARING = 20.0  # seconds in which a dense encoder reads what definitions are compared with
A_QUERY = 0.25  # of a document's time
A_QUERY_SCORED = 0.01  # seconds, beside its encoding
TERMS = 30  # that a corpus has, while nobody knows
OF_MODELS = {"candidates", "stages", "choice"}  # steps in which models read
TIMES_COMPARED = (
    3  # that a document is read at a choice: by the base model, at half of the change, at all of it
)
IN_REPORT = 2  # times that judged documents are read after a choice: for the verdict and for the page
MODELS_ASKED = 3  # general questions, where stages train: the base model, the best, the one kept in its place
NAMED = 0.1  # of the whole time, from which on a part is named


class Forecast(NamedTuple):
    """Seconds of each step, a stage as `stages/NAME`; and advice where there is less memory than learning may take."""

    seconds: Mapping[str, float]
    advice: str = ""

    @property
    def total(self) -> float:
        """Seconds in all."""
        return sum(self.seconds.values())

    def lines(self) -> list[str]:
        """The time in a line, with the parts that make it; nothing of less than a minute."""
        parts = [
            f"{name.rpartition('/')[2]} {duration(seconds)}"
            for name, seconds in self.seconds.items()
            if seconds > NAMED * self.total
        ]
        line = f"about {duration(self.total)} on this machine: {', '.join(parts)}"
        return [each for each in (line if self.total > LONG else "", self.advice) if each]


class Speeds(NamedTuple):
    """Seconds that a document takes: read, learnt from, read by the dense encoder.

    `length`: characters of a document; `tokens`: of one that is learnt from; `costs`: of learning, in memory.
    """

    encoding: float
    learning: float
    dense: float = 0.0
    length: float = READ
    tokens: float = 0.0
    costs: Costs | None = None


def of_adaptation(
    request: Request,
    model: SparseEncoder,
    documents: Sequence[Document],
    total: int,
    steps: Sequence[str],
    done: Container[str] = (),
) -> Forecast:
    """The forecast of an adaptation's `steps`. `model`: the one that is adapted, as it reads documents.

    `documents`: those looked at; `total`: of the corpus; `done`: what was done before, as `Forecast` names it.
    Raises ConfigError for a bound on memory that is too little.
    """
    counting = A_COUNT * total
    seconds = {
        "words": (counting + COMPARING * (request.glossary is not None)) * request.adds_words,
        "terms": counting * (request.extends or request.glossary is not None),
    }
    advice = ""
    if OF_MODELS & {*steps}:
        of_models, advice = _of_models(request, model, documents, total)
        seconds |= of_models
    return Forecast(
        {
            name: each
            for name, each in seconds.items()
            if name.partition("/")[0] in steps and name not in done
        },
        advice,
    )


def _of_models(
    request: Request, model: SparseEncoder, documents: Sequence[Document], total: int
) -> tuple[dict[str, float], str]:
    """Seconds of the steps in which models read, and advice on memory."""
    settings = request.settings
    entry_queries, terms = of_glossary(request, model.tokenizer)
    if not terms and request.ranking is not None:  # then it only makes queries
        request = request.ranking
    nothing_new = request.glossary is not None and not terms and request.ranking is None
    stages = () if nothing_new else tuple(n for n in request.all_stages if find_stage(n).trains)
    trained = [(name, request.settings_of(name)) for name in stages]
    ensemble = bool(stages) and request.teacher == ENSEMBLE
    speeds = measure_speeds(
        model,
        documents,
        dense=ensemble or "dictionary" in stages,
        settings=trained[0][1] if trained else None,
    )
    judging = IN_REPORT * min(JUDGED_DOCUMENTS, total) * speeds.encoding
    if not stages:
        compared = WORDS_SAMPLE + min(COMPARED_DOCUMENTS, len(documents)) + 2 * KNOWN_DOCUMENTS
        return {"choice": compared * speeds.encoding + of_questions(speeds, 1, SOME) + judging}, ""
    queries = min(settings.queries.count, len(documents) * settings.queries.per_document)
    queries += min(entry_queries, queries // CORPUS_QUERIES)
    held_out = min(settings.queries.held, len(documents) // 4)
    pool = min(len(documents), held_out * settings.candidates.count)
    choices = 1 if request.ranking is None else 2
    scored = (0 if request.candidates is not None else queries) + held_out
    learning = _of_stages(trained, speeds, documents=len(documents), queries=queries, terms=terms)
    candidates = len(documents) * (speeds.encoding + speeds.dense * ensemble)
    candidates += scored * (A_QUERY * speeds.encoding + A_QUERY_SCORED)
    comparing = (2**choices - 1) * TIMES_COMPARED * pool * speeds.encoding
    asking = of_questions(speeds, MODELS_ASKED + choices - 1)
    choosing = comparing + asking + 2 * judging
    return {"candidates": candidates, **learning.seconds, "choice": choosing}, learning.advice


def of_plan(
    plan: Plan,
    models: int = 2,
    questions: int | None = None,
    trained: Sequence[tuple[str, Training]] | None = None,
) -> Forecast:
    """The forecast of a plan: its stages, and measuring so many models; nothing without a corpus or a sparse model.

    `questions`: general ones, all by default; `trained`: each stage as often as it is carried out, by default once.
    """
    trained = list(plan.trained.items()) if trained is None else trained
    if plan.corpus is None or not trained or is_dense(ModelFolder.of(plan.model).path):
        return Forecast({})
    files, documents = plan.files, list(read_documents(plan.corpus))
    speeds = measure_speeds(
        SparseEncoder.load(plan.model),
        documents,
        dense=any(map(_is_labelled, dict(trained).values())),
        settings=trained[0][1],
    )
    learning = _of_stages(
        trained,
        speeds,
        documents=len(documents),
        queries=len(list(read_candidates(files["candidates"]))) if "candidates" in files else 0,
        terms=len(read_terms(files["terms"])) if "terms" in files else 0,
        definitions=len(read_dictionary(files["dictionary"])) if "dictionary" in files else 0,
    )
    measuring = models * len(documents) * speeds.encoding + of_questions(speeds, models, questions)
    return learning._replace(seconds={**learning.seconds, "measuring": measuring})


def of_questions(speeds: Speeds, models: int, questions: int | None = None) -> float:
    """Seconds that so many models take to read the general questions and passages, all of them by default."""
    general = general_collection(most=questions)
    texts = len(general.documents) + A_QUERY * len(general.queries)
    return models * texts * speeds.encoding * _length(general.documents) / speeds.length


def of_glossary(request: Request, tokenizer: PreTrainedTokenizerFast) -> tuple[int, int]:
    """How many queries a glossary makes, and how many of its words may get a token, whatever the corpus says."""
    if request.glossary is None:
        return 0, TERMS
    entries = read_entries(read_dictionary(request.glossary), EntryKeys(tokenizer)).entries
    words = (each.acronym if each.is_phrase else each.term for each in entries)
    return QUERIES_AN_ENTRY * len(entries), sum(1 for word in words if word and not is_token(tokenizer, word))


def _of_stages(
    trained: Sequence[tuple[str, Training]],
    speeds: Speeds,
    *,
    documents: int,
    queries: int,
    terms: int,
    definitions: int | None = None,
) -> Forecast:
    """The forecast of stages that train: steps, by texts of a step, and what the semantic labeller reads before them.

    Raises ConfigError for a bound on memory that is too little.
    """
    seconds, advice = dict[str, float](), ""
    for name, open_settings in trained:
        stage, settings = find_stage(name), open_settings.settled(queries=queries, terms=terms)
        learnt_from = documents if definitions is None or name != "dictionary" else definitions
        steps = settings.steps_for(queries if CANDIDATES in stage.reads else learnt_from)
        texts = stage.texts_of(settings)
        taken = steps * texts * settings.gradient_accumulation * speeds.learning
        if _is_labelled(open_settings):
            labelled = min(LARGEST_POOL, POOL + POOL_A_TERM * terms) + WORDS
            labelled_share = open_settings.labelled_share(terms)
            taken += labelled * labelled_share * speeds.dense * LABELLED / speeds.length
        seconds[f"stages/{name}"] = seconds.get(f"stages/{name}", 0.0) + taken
        if speeds.costs is not None:
            advice = speeds.costs.advice(settings, name, texts, speeds.tokens) or advice
    return Forecast(seconds, advice)


def _is_labelled(settings: Training) -> TypeGuard[Dictionary]:
    return isinstance(settings, Dictionary) and settings.labeller != "none"


# -- speeds -----------------------------------------------------------------------------------------


def measure_speeds(
    encoder: SparseEncoder,
    documents: Sequence[Document],
    *,
    dense: bool = False,
    settings: Training | None = None,
) -> Speeds:
    """What some of the documents take, read and learnt from.

    dense: whether a dense encoder reads texts, too; settings: of a stage, for the precision in which a model learns,
    and for what it takes in memory: with them the way in which the encoder attends may become another.
    """
    encoding = seconds_a_text(partial(encode, encoder, side="document"), documents)
    length = _length(documents)
    if settings is None:
        return Speeds(encoding, 0.0, length=length)
    with torch.autocast("cpu", torch.bfloat16, enabled=settings.precision == "bfloat16"):
        learning = seconds_a_text(partial(learn_once, encoder), documents[: SAMPLES[0]])
    by_dense = 0.0
    if dense:
        by_dense = seconds_a_text(DenseEncoder(SMALL, rough=True).encode, documents[: SAMPLES[0]])
    texts = [each.full_text for each in evenly(documents, SAMPLES[0])]
    tokens = sum(map(len, encoder.tokenize(texts))) / len(texts)
    costs = Costs.of(encoder.to(device_of(settings)), settings)
    return Speeds(encoding, learning, by_dense, length, tokens, costs)


def seconds_a_text(work: Callable[[list[str]], object], documents: Sequence[Document]) -> float:
    """Seconds that work on one of the documents takes: the shorter of two trials, for other programs work, too."""
    work([documents[0].full_text])  # compiles, which counts once
    seconds, texts = 0.0, list[str]()
    for count in SAMPLES:
        if seconds < TRIAL:
            texts = [each.full_text for each in evenly(documents, count)]
            seconds = min(_seconds(work, texts) for _ in range(2))
    return seconds / len(texts)


def _seconds(work: Callable[[list[str]], object], texts: list[str]) -> float:
    started = time.perf_counter()
    work(texts)
    return time.perf_counter() - started


def learn_once(encoder: SparseEncoder, texts: Sequence[str]) -> None:
    """One forward and backward pass that changes nothing."""
    encoder.weights(encoder.tokenize(list(texts))).mean().backward()
    for parameter in encoder.parameters():
        parameter.grad = None


def _length(documents: Sequence[Document]) -> float:
    """Characters of a document that a model reads, on average; of one at least."""
    some = evenly(documents, 1000)
    return max(1.0, float(np.mean([min(READ, len(each.full_text)) for each in some])))
