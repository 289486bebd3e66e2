"""A SPLADE model made of a dense encoder and a smaller SPLADE model with the same tokens, from text without labels.

    RUN/request.json          what was asked for
    RUN/text/corpus.jsonl     the text that is learnt from: the corpora that are named, and general passages
    RUN/grafted/              the encoder's body with the SPLADE model's head, before it has learnt anything
    RUN/1-logits/             each token has the SPLADE model's logits
    RUN/2-behaviour/          each text has the SPLADE model's vector
    RUN/ranking/              an adaptation of that model to the text: it ranks as the SPLADE model, BM25 and the dense
                              encoder do together
    RUN/model/                the model that is kept
    RUN/report.json           what was done; its presence says that the run is whole

While it works, the folder is `RUN.partial`, and a stopped run goes on there.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparse_adapt.collection.readers import DOCUMENT_FILES, Document, read_documents, write_documents
from sparse_adapt.collection.sampling import evenly, sample
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.folders import output_folder, tidy, write_json
from sparse_adapt.files.journal import check_same
from sparse_adapt.files.paths import absolute
from sparse_adapt.made_up import general
from sparse_adapt.model.dense import SMALL
from sparse_adapt.model.grafting import check_tokens
from sparse_adapt.model.grafting import graft as graft_body
from sparse_adapt.model.head.filter import exact_precision
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.adapt import adapt
from sparse_adapt.pipeline.plan import BASE_MODEL, Plan, merged, settings_for
from sparse_adapt.pipeline.request import Request
from sparse_adapt.pipeline.run import Finished, is_whole, read_finished, run_stages, write_report
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.pipeline.step import Step
from sparse_adapt.pipeline.work import Watcher, carry_out_and_tell
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.made_from import Source, of_collection, of_model, of_path
from sparse_adapt.stages.runner import Outcome, Place
from sparse_adapt.stages.stage import UNUSUAL

REQUEST_FILE = "request.json"
STAGES = ("logits", "behaviour")
OF_STAGES: Mapping[str, Mapping[str, Any]] = {
    "logits": {"steps": 1_000},
    "behaviour": {
        "steps": 600,
        "batch_size": 32,
        "learning_rate": 3e-4,
        "everyday": 0.1,
        "weights": {"old": 1.0, "new": 0.0, "extra": 1.0},
    },
    "imitate": {"steps": 300, "learning_rate": 1e-4, "longest": 128, "weights": {"anchor": 1.0}},
}
FITTED_ON = 2_000  # texts, for the head's first weights


class GraftSettings(Settings):
    """A SPLADE model on another body."""

    seed: int = setting(0, "Seed of every random draw.", ge=0)
    effort: float = setting(
        1.0,
        "How many times the usual number of steps each stage takes.",
        unit="times as many steps",
        gt=0,
        le=1_000,
    )
    documents: int = setting(
        60_000, "Documents that are learnt from, of all that is named.", unit="documents", ge=64
    )
    ranked: int = setting(
        3_000, "Documents among which the model learns to rank; with 0 it doesn't.", unit="documents", ge=0
    )
    queries: int = setting(2_400, "Made-up queries by which it learns to rank.", unit="queries", ge=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraftRequest:
    """Two models, text, and settings. `of_stages`: settings of one stage each, by its name."""

    corpora: tuple[str, ...]
    encoder: str = SMALL
    sparse: str = BASE_MODEL
    settings: GraftSettings = field(default_factory=GraftSettings)
    of_stages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Everything as JSON holds it, with paths that mean the same anywhere."""
        return {
            "corpora": [absolute(each) for each in self.corpora],
            "encoder": absolute(self.encoder),
            "sparse": absolute(self.sparse),
            "settings": self.settings.model_dump(mode="json"),
            "of_stages": json.loads(json.dumps(self.of_stages)),
        }

    def check(self) -> None:
        """Raise, before anything is made, ConfigError for odd settings or two models that don't go together."""
        for stage in STAGES:
            settings_for(stage, overrides=self.of_stage(stage))
        if self.settings.ranked:
            self.ranking("", "").settings_of("imitate")
        sparse = SparseEncoder.load(self.sparse)
        for part in sorted(sparse.unusual - {"entries", "prompts"}):
            raise ConfigError(
                f"{self.sparse}: {UNUSUAL[part]}, which a graft can't take over; choose another"
            )
        check_tokens(self.encoder, sparse.tokenizer)

    def sources(self) -> dict[str, Source]:
        """What is read, by a word for each."""
        corpora = {
            f"corpus {number}": of_collection(each, DOCUMENT_FILES)
            for number, each in enumerate(self.corpora, 1)
        }
        return {"encoder": of_model(self.encoder), "sparse": of_model(self.sparse), **corpora}

    def of_stage(self, stage: str) -> dict[str, Any]:
        """What differs from a stage's defaults: a graft's, and what was asked for on top."""
        usual = OF_STAGES[stage]
        steps = max(1, round(self.settings.effort * usual["steps"]))
        own = {"seed": self.settings.seed, "precision": fast_precision(), **usual, "steps": steps}
        return merged(own, self.of_stages.get(stage, {}))

    def ranking(self, text: str, model: str) -> Request:
        """The adaptation that teaches a model to rank, by what all three rankers find in a text together."""
        settings = {"documents": self.settings.ranked, "stages": ("imitate",)}
        own = merged(AdaptSettings.seeds(self.settings.seed), settings)
        own = merged(own, {"queries": {"count": self.settings.queries}})
        return Request(
            corpus=text,
            model=model,
            teacher=self.encoder,
            settings=AdaptSettings.model_validate(own),
            of_stages={"imitate": self.of_stage("imitate")},
        )


def fast_precision() -> str:
    """Bfloat16 on a processor that multiplies it, where a body of six layers learns twice as fast; else float32."""
    import torch

    return exact_precision(torch.device("cpu"))


def graft(request: GraftRequest, place: Place, watcher: Watcher) -> Finished:
    """Make a SPLADE model on another body, or go on with making one.

    Raises ConfigError for two models that don't go together, and what reading the models or a corpus raises.
    """
    if is_whole(place):
        tidy(place.folder)
        check_same(place.folder / REQUEST_FILE, request.plain())
        return read_finished(place.folder)
    request.check()
    sources = request.sources()
    reads = [source.place for source in sources.values()]
    with output_folder(place.folder, overwrite=place.overwrite, resume=place.resume, reads=reads) as folder:
        check_same(folder / REQUEST_FILE, request.plain())
        write_json(folder / REQUEST_FILE, request.plain())
        said = {
            step.name: carry_out_and_tell(step, folder, watcher).said
            for step in _steps(request, sources, folder)
        }
        plan = _plan(request, folder)
        outcomes = run_stages(plan, folder, watcher, again=True)
        model, ranking = outcomes[-1].folder, None
        if request.settings.ranked:
            asked = request.ranking(str(folder / "text"), str(model))
            ranking = adapt(asked, Place(folder / "ranking", resume=True), watcher)
            model = ranking.model
        _keep(model, folder)
        _report(
            request,
            plan,
            folder,
            outcomes,
            said | ({} if ranking is None else {"ranking": ranking.report["adapt"]}),
        )
    return read_finished(place.folder)


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
    yield from (passage for passage, _ in general.pairs("teaches"))


def _beginning(document: Document) -> str:
    return " ".join(document.full_text.split()[:96])


def _plan(request: GraftRequest, folder: Path) -> Plan:
    """The stages that copy the SPLADE model, which is their teacher."""
    return Plan(
        model=str(folder / "grafted"),
        corpus=str(folder / "text"),
        stages=STAGES,
        preset="default",
        files={"before": request.sparse},
        settings={stage: settings_for(stage, overrides=request.of_stage(stage)) for stage in STAGES},
    )


def _keep(model: Path, folder: Path) -> None:
    """Save the last model as the run's."""
    making = folder / "model.making"
    for left in (making, folder / "model"):
        shutil.rmtree(left, ignore_errors=True)
    shutil.copytree(model, making)
    making.rename(folder / "model")


def _report(
    request: GraftRequest, plan: Plan, folder: Path, outcomes: list[Outcome], said: Mapping[str, Any]
) -> None:
    more = {
        "final": "model",
        "corpus": None,
        "graft": {"encoder": request.encoder, "sparse": request.sparse, **said},
    }
    write_report(folder, plan, outcomes, more)
