"""A model adapted to a corpus, from documents alone: `adapt`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sparse_adapt.api.inputs import Given, InputFolder
from sparse_adapt.api.models import Model, ModelGiven, load
from sparse_adapt.collection.given import Corpus, DefinitionsGiven, DocumentsGiven, QueriesGiven
from sparse_adapt.errors import ConfigError, InputError, unknown
from sparse_adapt.files.place import Place
from sparse_adapt.pipeline.adapt import STEPS, Stopped
from sparse_adapt.pipeline.adapt import adapt as carry_out
from sparse_adapt.pipeline.choice import tabulate, verdict
from sparse_adapt.pipeline.estimate import Expected, told
from sparse_adapt.pipeline.plan import BASE_MODEL
from sparse_adapt.pipeline.request import Request, begun, chosen_settings
from sparse_adapt.report.progress import Bars, is_watched
from sparse_adapt.report.results import Result
from sparse_adapt.report.sections import Section, untitled
from sparse_adapt.report.tables import Row
from sparse_adapt.terms.mining import Term, read_terms

KEYS = {"glossary": "dictionary"}  # what a file of a corpus folder is called, where it is called otherwise


class AdaptBars(Bars):
    """Bars that also say what each step came to, and first how long it may take."""

    def tell(self, step: str, said: str) -> None:
        """What a step came to."""
        self.say(f"{step}: {said}")

    def expect(self, rows: Sequence[Expected]) -> None:
        """How long it may take."""
        self.say("expected time, from a short trial on this machine:")
        for line in told(rows):
            self.say(line)


@dataclass(frozen=True, repr=False)
class Adaptation(Result):
    """An adaptation on the disk. `stopped` names the step that it was to end with, and is empty where it is whole.

    `report` is what `adapt --json` prints; empty while the adaptation isn't whole.
    """

    folder: Path
    report: Mapping[str, Any]
    stopped: str = ""

    @property
    def model(self) -> Model:
        """The adapted model. Raises InputError where the adaptation isn't whole."""
        self._check()
        return load(self.folder / str(self.report["final"]))

    @property
    def terms(self) -> list[Term]:
        """The words that were given a token, or are to be given one."""
        path = self.folder / "terms.json"
        return read_terms(path) if path.is_file() else []

    @property
    def verdict(self) -> list[str]:
        """In words: what was added, what it took, whether anything was gained, what has to be encoded again."""
        return verdict(self.report) if self.report else [f"stopped after {self.stopped}"]

    @property
    def headline(self) -> str:
        """The folder, and what was added."""
        return f"{self.folder}: {self.verdict[0]}"

    def to_dict(self) -> dict[str, Any]:
        """The report: each step, each stage, each model that was tried."""
        return dict(self.report)

    def rows(self) -> Sequence[Row]:
        """Each model that was tried on the queries set aside, the base model first; raises as `model` does."""
        self._check()
        return tabulate(self.report).rows

    def sections(self) -> Sequence[Section]:
        """The models that were tried, and the verdict."""
        return untitled(*([tabulate(self.report)] if self.report else []), *self.verdict)

    def _check(self) -> None:
        if self.stopped:
            raise InputError(
                self.folder, f"stopped after {self.stopped}, so there is no model yet; go on with resume"
            )


def adapt(
    corpus: DocumentsGiven,
    out: str | Path,
    *,
    model: ModelGiven | None = None,
    glossary: DefinitionsGiven | None = None,
    queries: QueriesGiven | None = None,
    candidates: Given | None = None,
    teacher: str | None = None,
    generator: str | None = None,
    stages: Sequence[str] | None = None,
    documents: int | None = None,
    max_tokens: int | None = None,
    only_new: bool | None = None,
    query_side: Literal["model", "table"] | None = None,
    windows: int | None = None,
    overlap: int | None = None,
    seed: int | None = None,
    until: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | None = None,
    **settings: Any,  # noqa: ANN401 - those of every stage, checked by their own types
) -> Adaptation:
    """Adapt a model to a corpus: make up queries, teach ranking or words, and keep the best model in `out`/model.

    corpus: a place, or documents in memory (texts, dictionaries, a data frame, `Document`); some dozens at least.
    out: the folder of the run, a folder a stage and the model in it. Things in memory are kept in `out`-inputs.
    model: what is adapted; by default splade-tiny.
    glossary: terms and their definitions, a path (JSONL, CSV, TSV) or a dictionary. Its words get a token and are
    taught by their definitions; words that nothing defines keep their pieces.
    queries: what users asked, to learn from beside made-up queries.
    candidates: queries with scored documents, to learn from instead of made-up ones.
    teacher: ensemble (by default), bm25, a dense model, a cross-encoder, or a file of scores.
    generator: a sequence-to-sequence model that writes queries, by folder or `hub:owner/name`.
    stages: which stages are carried out; by default imitate, which teaches ranking, and with a glossary also extend and
    dictionary. With extend, behaviour and imitate words of the corpus get a token that nothing defines.
    documents: how many documents of a larger corpus are learnt from; by default 20,000.
    max_tokens: tokens of a text that are read; by default as many as the model reads.
    query_side: what weighs queries of the adapted model, the model itself (by default) or a table of token weights.
    windows: documents are read whole, in windows of so many tokens, of which the next repeats `overlap`.
    only_new: whether new tokens learn alone, so that documents without one keep their vectors.
    until: the step to stop after (terms, dictionary, queries, candidates, stages), to read and edit what it made.
    resume: whether an adaptation that was stopped goes on, as it was asked for and with what is named now on top.
    settings: of every stage that trains (`batch_size=8`), of one stage under its name (`distill={"steps": 100}`), of
    the adaptation itself (`share`, `merges`), and how queries and candidates are made (`query_settings={"count": 500}`,
    `candidate_settings`).

    Raises InputError for a corpus that can't be read or gives too little, and for a glossary of other words,
    ConfigError for a setting that there isn't and for a file that no stage reads, OutputError for a folder that is
    taken.

    >>> import tempfile, sparse_adapt as sa
    >>> out = tempfile.mkdtemp() + "/adapted"
    >>> sa.adapt("gatrocraptic", out, until="queries", teacher="bm25")  # doctest: +ELLIPSIS
    <Adaptation: ...adapted.partial: stopped after queries>
    """
    if until is not None and until not in STEPS:
        raise ConfigError(unknown("step", until, STEPS))
    folder = Path(out)
    before = begun(folder) if resume else None
    own = {
        "documents": documents,
        "max_tokens": max_tokens,
        "frozen": only_new,
        "stages": stages,
        "query_side": query_side,
        "windows": windows,
        "overlap": overlap,
    }
    chosen = chosen_settings(before, {**own, **settings}, seed)
    inputs = InputFolder(folder, overwrite=overwrite, resume=resume)
    files = {"corpus": Corpus.of(corpus), "glossary": glossary, "queries": queries, "candidates": candidates}
    named = {
        name: inputs.place(KEYS.get(name, name), given) for name, given in files.items() if given is not None
    }
    names = {
        "model": None if model is None else inputs.model(model),
        "teacher": teacher,
        "generator": generator,
    }
    named |= {name: value for name, value in names.items() if value is not None}
    base = before or Request(corpus=named["corpus"], model=BASE_MODEL)
    request = replace(base, **{**named, **chosen})
    with AdaptBars(shown=is_watched() if progress is None else progress) as bars:
        try:
            done = carry_out(request, Place(folder, overwrite, resume), bars, until)
        except Stopped as stopped:
            return Adaptation(stopped.folder, {}, stopped.step)
    return Adaptation(folder, done.report)
