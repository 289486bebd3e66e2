"""A SPLADE model made of a dense encoder and a smaller SPLADE model with the same tokens, from text without labels.

    RUN/request.json          the arguments and settings
    RUN/text/corpus.jsonl     the text that is learnt from: the corpora that are named, and general passages
    RUN/grafted/              the encoder's body with the SPLADE model's head, before it has learnt anything
    RUN/1-logits/             each token has the SPLADE model's logits
    RUN/2-preserve/          each text has the SPLADE model's vector
    RUN/ranking/              questions, or queries made of the text, and documents with what the SPLADE model's copy,
                              BM25 and the dense encoder together score them
    RUN/3-rank/            it ranks as the three do together
    RUN/model/                the model that is kept
    RUN/report.json           what was done; its presence says that the run is whole

While it works, the folder is `RUN.partial`, and a stopped run goes on there.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from sparse_adapt.collection.readers import (
    DOCUMENT_FILES,
    QUERY_FILES,
    Document,
    read_documents,
    write_documents,
)
from sparse_adapt.collection.sources import judged_split, of_collection
from sparse_adapt.collection.streams import evenly, sample
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.folders import output_folder, tidy
from sparse_adapt.files.place import Place, absolute
from sparse_adapt.files.steps import Source, Step, check_request, of_path
from sparse_adapt.files.writing import write_json
from sparse_adapt.model.dense import SMALL, fast_precision
from sparse_adapt.model.folder import ModelFolder, of_model
from sparse_adapt.model.grafting import check_tokens, graft_body
from sparse_adapt.model.layout import transformer_in
from sparse_adapt.model.reading import choose_device
from sparse_adapt.model.saved import read_width
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.estimate import Expected, measure_speeds, stage_expected
from sparse_adapt.pipeline.plan import BASE_MODEL, Plan, merged, settings_for
from sparse_adapt.pipeline.preparing import prepare_candidates, prepare_collection
from sparse_adapt.pipeline.run import (
    Finished,
    is_whole,
    read_finished,
    run_stage,
    run_stages,
    write_report,
)
from sparse_adapt.pipeline.settings import GraftSettings
from sparse_adapt.pipeline.work import RANKING, AdaptListener, carry_out_and_tell
from sparse_adapt.retrieve.evaluate import Collection, read_collection
from sparse_adapt.selection.models import merge
from sparse_adapt.stages.runner import Outcome
from sparse_adapt.stages.stage import UNUSUAL
from sparse_adapt.synthetic.background import background_pairs
from sparse_adapt.synthetic.queries import (
    GIVEN,
    TRAIN,
    Collected,
    QuerySettings,
    SyntheticQuery,
    write_collection,
)
from sparse_adapt.teachers.settings import CandidateSettings
from sparse_adapt.teachers.teacher import make_teacher
from sparse_adapt.training.settings import Training, at_width

REQUEST_FILE = "request.json"
COPYING, RANK = ("logits", "preserve"), "rank"  # stages
STEPS = {"logits": 1_000, "preserve": 600, "rank": 300}
OF_STAGES: Mapping[str, Mapping[str, object]] = {
    "logits": {},
    "preserve": {
        "batch_size": 32,
        "background": 0.1,
        "weights": {"old": 1.0, "new": 0.0, "extra": 1.0},
    },
    "rank": {"longest": 128, "weights": {"anchor": 1.0}},
}
WIDTH = 384  # of the body that these learning rates were measured on
RATES = {"preserve": 3e-4, "rank": 1e-4}
CANDIDATES = "candidates.jsonl"
RANKING_SHARE = (
    0.5  # of what ranking changes: all of it activates 397 tokens of a document of Cranfield, half of it 224
)
FITTED_ON = 2_000  # texts, for the head's first weights
QUESTIONS = {"passages": DOCUMENT_FILES, "questions": QUERY_FILES}  # files of a judged collection


@dataclass(frozen=True, slots=True, kw_only=True)
class GraftRequest:
    """Two models, text, questions, and settings. `of_stages`: settings of one stage each, by its name.

    `memory`: the bound of every stage.
    """

    corpora: tuple[str, ...]
    encoder: str = SMALL
    sparse: str = BASE_MODEL
    questions: str | None = None  # a judged collection, from which it learns to rank
    settings: GraftSettings = field(default_factory=GraftSettings)
    of_stages: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    memory: str | None = None

    def plain(self) -> dict[str, object]:
        """Everything as JSON holds it, with paths that mean the same anywhere."""
        return {
            "corpora": [absolute(each) for each in self.corpora],
            "encoder": absolute(self.encoder),
            "sparse": absolute(self.sparse),
            "questions": absolute(self.questions) if self.questions else None,
            "settings": self.settings.model_dump(mode="json"),
            "of_stages": json.loads(json.dumps(self.of_stages)),
            "memory": self.memory,
        }

    def check(self) -> None:
        """Raise, before anything is made, ConfigError for odd settings or two models that don't go together.

        Raises InputError for questions without judgements.
        """
        for stage in self.stages:
            self.settings_of(stage)
        sparse = SparseEncoder.load(self.sparse)
        for part in sorted(sparse.unusual - {"entries", "prompts"}):
            raise ConfigError(
                f"{self.sparse}: {UNUSUAL[part]}, which a graft can't take over; choose another"
            )
        check_tokens(self.encoder, sparse.tokenizer)
        if self.questions is not None:
            if not self.settings.ranked:
                raise ConfigError(
                    "ranked = 0: the model doesn't learn to rank, so questions teach nothing; leave one out"
                )
            read_questions(self.questions)

    def sources(self) -> dict[str, Source]:
        """What is read, by a word for each."""
        corpora = {
            f"corpus {number}": of_collection(each, DOCUMENT_FILES)
            for number, each in enumerate(self.corpora, 1)
        }
        if self.questions is not None:
            corpora |= {kind: of_collection(self.questions, names) for kind, names in QUESTIONS.items()}
        return {"encoder": of_model(self.encoder), "sparse": of_model(self.sparse), **corpora}

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that are carried out."""
        return (*COPYING, RANK) if self.settings.ranked else COPYING

    @property
    def _width(self) -> int:
        """H, of the body."""
        source = ModelFolder.of(self.encoder)
        return read_width(transformer_in(source.path, source), source)

    def settings_of(self, stage: str) -> Training:
        """A stage's settings: its defaults, what a graft has otherwise, and what was asked for on top."""
        steps = max(1, round(self.settings.effort * STEPS[stage]))
        precision = fast_precision(torch.device("cpu"))
        own: dict[str, object] = {"seed": self.settings.seed, "precision": precision, "memory": self.memory}
        own |= {**OF_STAGES[stage], "steps": steps}
        if stage in RATES:
            own["learning_rate"] = at_width(RATES[stage], self._width, WIDTH)
        return settings_for(stage, overrides=merged(own, self.of_stages.get(stage, {})))


def graft(request: GraftRequest, place: Place, watcher: AdaptListener) -> Finished:
    """Make a SPLADE model on another body, or go on with making one.

    Raises ConfigError for two models that don't go together, and what reading the models or a corpus raises.
    """
    if is_whole(place):
        tidy(place.folder)
        check_request(place.folder / REQUEST_FILE, request.plain())
        return read_finished(place.folder)
    request.check()
    sources = request.sources()
    reads = [source.place for source in sources.values()]
    with output_folder(place.reading(reads)) as folder:
        check_request(folder / REQUEST_FILE, request.plain())
        write_json(folder / REQUEST_FILE, request.plain())
        messages = _carry_out(_steps(request, sources, folder), folder, watcher)
        watcher.expect(_expected(request, folder))
        plan = _plan(request, COPYING, folder / "grafted", folder / "text", {"before": request.sparse})
        outcomes = run_stages(plan, folder, watcher, again=True)
        if request.settings.ranked:
            copy, ranking = outcomes[-1].folder, folder / RANKING
            messages |= _carry_out(_gathering(request, sources, copy, folder, watcher), folder, watcher)
            files = {"candidates": str(ranking / CANDIDATES)}
            after = _plan(request, (RANK,), copy, ranking, files)
            made = folder / f"{len(request.stages)}-{RANK}"
            outcomes.append(run_stage(RANK, after, str(copy), made, watcher, again=True))
        _keep(outcomes, folder)
        _report(request, plan, folder, outcomes, messages)
    return read_finished(place.folder)


def _carry_out(steps: Iterable[Step], folder: Path, watcher: AdaptListener) -> dict[str, str]:
    """Do steps, tell what came of each, and say it by their names."""
    return {step.name: carry_out_and_tell(step, folder, watcher).message for step in steps}


def _steps(request: GraftRequest, sources: Mapping[str, Source], folder: Path) -> Iterator[Step]:
    """What is made before anything is taught: the text, and a model of a body and a head that don't know each other."""

    def gather() -> str:
        documents = sample(_documents(request), request.settings.documents, request.settings.seed)
        write_documents(folder / "text" / "corpus.jsonl", documents)
        return f"{len(documents):,} documents to learn from"

    def join() -> str:
        sparse = SparseEncoder.load(request.sparse)
        documents = list(read_documents(folder / "text"))
        ids = sparse.tokenize([_beginning(document) for document in evenly(documents, FITTED_ON)])
        shutil.rmtree(folder / "grafted", ignore_errors=True)
        made = graft_body(request.encoder, sparse, ids)
        made.save(folder / "grafted")
        body, width = (
            sum(each.numel() for each in made.masked_lm.base_model.parameters()),
            made.output_rows.shape[1],
        )
        return (
            f"a body of {body / 1e6:.1f} million parameters, {width} wide, and the head of {request.sparse}"
        )

    texts = {key: source for key, source in sources.items() if key.startswith("corpus")}
    own: dict[str, object] = {"documents": request.settings.documents, "seed": request.settings.seed}
    models = {key: sources[key] for key in ("encoder", "sparse")}
    yield Step("text", {**texts, **own}, ["text"], gather)
    yield Step("grafted", {**models, "text": of_path(folder / "text")}, ["grafted"], join)


def _documents(request: GraftRequest) -> Iterator[Document]:
    """The documents of all corpora and the general passages that teach, their ids told apart."""
    for number, corpus in enumerate(request.corpora, start=1):
        for document in read_documents(corpus):
            yield Document(f"{number}-{document.document_id}", document.text, document.title)
    yield from (passage for passage, _ in background_pairs())


def _beginning(document: Document) -> str:
    return " ".join(document.full_text.split()[:96])


def _expected(request: GraftRequest, folder: Path) -> list[Expected]:
    """How long each stage may take that isn't done, from a moment's work on this machine."""
    left = [
        stage
        for number, stage in enumerate(request.stages, start=1)
        if not (folder / f"{number}-{stage}").is_dir()
    ]
    if not left:
        return []
    documents = list(read_documents(folder / "text"))
    speeds = measure_speeds(str(folder / "grafted"), documents, settings=request.settings_of(left[0]))
    rows = []
    for stage in left:
        if stage == RANK and not (folder / RANKING / CANDIDATES).is_file():
            ranked = min(request.settings.ranked, len(documents))
            rows.append(Expected(f"encoding {ranked:,} documents", ranked * speeds.encoding))
        counts = {"documents": len(documents), "queries": request.settings.queries, "terms": 0}
        rows.append(stage_expected(stage, request.settings_of(stage), speeds, **counts))
    return rows


def _plan(
    request: GraftRequest, stages: tuple[str, ...], model: Path, text: Path, files: dict[str, str]
) -> Plan:
    """Some of the stages, from a model, with a text and what else they read."""
    settings = {stage: request.settings_of(stage) for stage in stages}
    return Plan(
        model=str(model),
        corpus=str(text),
        stages=stages,
        preset="default",
        files=files,
        settings=settings,
    )


def _gathering(
    request: GraftRequest, sources: Mapping[str, Source], copy: Path, folder: Path, watcher: AdaptListener
) -> Iterator[Step]:
    """What the last stage learns from: questions, or queries made of some of the text, and what all three rankers find.

    A passage that answers a question stays among its candidates; one that a query was made of doesn't.
    """
    own, ranking, questions = request.settings, folder / RANKING, request.questions
    own_settings = QuerySettings(count=own.queries, seed=own.seed)

    def ask() -> str:
        shutil.rmtree(ranking, ignore_errors=True)
        if questions is not None:
            return write_questions(questions, own, ranking)
        documents = sample(read_documents(folder / "text"), own.ranked, own.seed)
        return prepare_collection(str(folder / "text"), documents, own_settings, None, None, ranking)

    def score() -> str:
        documents = list(read_documents(ranking))
        student = SparseEncoder.load(copy, choose_device(request.settings_of(RANK).device))
        teacher = make_teacher(student, documents, request.encoder, progress_for=watcher.count)
        settings = CandidateSettings(seed=own.seed, source="drop" if questions is None else "keep")
        return prepare_candidates(ranking, teacher, settings, TRAIN, ranking / CANDIDATES, watcher.count)

    text = (
        {"text": of_path(folder / "text")}
        if questions is None
        else {name: sources[name] for name in QUESTIONS}
    )
    wanted = {"ranked": own.ranked, "queries": own.queries, "seed": own.seed}
    yield Step("queries", {**text, **wanted}, [RANKING], ask)
    made = {name: of_path(ranking / f"{name}.jsonl") for name in ("corpus", "queries")}
    encoder = sources["encoder"]
    yield Step(
        "candidates", {**made, "encoder": encoder, "model": of_path(copy)}, [f"{RANKING}/{CANDIDATES}"], score
    )


def read_questions(source: str) -> Collection:
    """A judged collection, of its split `train` where there is one. Raises InputError as `read_collection` does."""
    return read_collection(source, judged_split(source, TRAIN) or TRAIN)


def write_questions(source: str, settings: GraftSettings, folder: Path) -> str:
    """Write questions of a judged collection, each with a passage that answers it, and other passages of it.

    Raises InputError as `read_questions` does.
    """
    collection = read_questions(source)
    documents = {each.document_id: each for each in collection.documents}
    questions = []
    for query in sample(collection.queries, min(settings.queries, settings.ranked), settings.seed):
        grades = collection.judgements[query.query_id]
        answers = [name for name in grades if grades[name] > 0 and name in documents]
        if answers:
            best = max(answers, key=grades.__getitem__)
            questions.append(SyntheticQuery(query.query_id, query.text, GIVEN, best))
    answering = {question.document_id for question in questions}
    others = [name for name in documents if name not in answering]
    chosen = {*answering, *sample(others, max(0, settings.ranked - len(answering)), settings.seed)}
    write_collection(folder, Collected([documents[name] for name in documents if name in chosen], questions))
    return f"{len(questions):,} questions of {source}, and {len(chosen):,} of its passages"


def _keep(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Save the run's model: the last stage's, or one between the copy and the one that ranks."""
    before, last = (outcome.folder for outcome in outcomes[-2:])
    making = folder / "model.making"
    for left in (making, folder / "model"):
        shutil.rmtree(left, ignore_errors=True)
    shutil.copytree(last, making)
    if len(outcomes) > len(COPYING):
        model = merge(SparseEncoder.load(before), SparseEncoder.load(last), 1.0 - RANKING_SHARE)
        model.token_scales = model.token_scales_of() ** RANKING_SHARE
        model.save(making)
    making.rename(folder / "model")


def _report(
    request: GraftRequest, plan: Plan, folder: Path, outcomes: list[Outcome], messages: Mapping[str, object]
) -> None:
    more = {
        "final": "model",
        "corpus": None,
        "graft": {"encoder": request.encoder, "sparse": request.sparse, **messages},
    }
    write_report(folder, plan, outcomes, more)
