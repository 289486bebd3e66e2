"""A model adapted to a corpus, from documents alone: `adapt`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sparse_adapt.api.checks import a_model, some_queries
from sparse_adapt.api.following import exported, line
from sparse_adapt.api.options import (
    MODEL_HELP,
    TEACHER,
    TRAINING,
    CandidatesGiven,
    Columns,
    CorpusAtPlace,
    Engine,
    Glossary,
    Llm,
    Option,
    Overwrite,
    Resume,
    SettingsOf,
    Workers,
    declared,
    out_option,
)
from sparse_adapt.api.runs import of_run, run_folder
from sparse_adapt.errors import InputError
from sparse_adapt.report.progress import Bars, is_interactive
from sparse_adapt.report.results import Shown
from sparse_adapt.report.sections import Section, untitled
from sparse_adapt.report.tables import Row
from sparse_adapt.stages.table import stages_of_adapt

if TYPE_CHECKING:
    from sparse_adapt.api.models import Model, ModelLike
    from sparse_adapt.collection.arguments import QueriesLike
    from sparse_adapt.pipeline.estimate import Forecast
    from sparse_adapt.pipeline.report import Report
    from sparse_adapt.terms.mining import Term

FILES = {  # steps that an adaptation can stop after, and what there is to read then
    "words": ("words",),
    "terms": ("entries.jsonl", "terms.json"),
    "dictionary": ("entries.jsonl", "dictionary.jsonl"),
    "queries": ("collection/queries.jsonl",),
    "candidates": ("candidates.jsonl",),
    "stages": ("run.toml",),
}
SETTINGS = SettingsOf(
    "sparse_adapt.pipeline.settings:AdaptSettings",
    without=("seed", "stages", "queries", "candidates", "interpolations"),
)
KEYS = {"glossary": "dictionary"}  # what a file of a corpus folder is called, where it is called otherwise


class AdaptBars(Bars):
    """Bars that also say what each step came to, and first how long it may take."""

    def tell(self, step: str, message: str) -> None:
        """What a step came to."""
        self.say(f"{step}: {message}")

    def expect(self, forecast: "Forecast") -> None:
        """About how long it will take."""
        for each in forecast.lines():
            self.say(each)


@dataclass(frozen=True, repr=False)
class Adaptation(Shown):
    """An adaptation on the disk. `stopped` names the step that it was to end with, and is empty where it is whole.

    `report` is what `adapt --json` prints; empty while the adaptation isn't whole.
    """

    folder: Path
    report: "Report"
    stopped: str = ""
    wrote: Sequence[tuple[Path, str]] = ()
    then: Sequence[str] = ()
    run_folder: Path | None = None
    quiet: bool = False

    @property
    def model(self) -> "Model":
        """The adapted model. Raises InputError where the adaptation isn't whole."""
        from sparse_adapt.api.models import load

        self._check()
        return load(self.folder / str(self.report["final"]))

    @property
    def terms(self) -> "list[Term]":
        """The words that were given a token, or are to be given one."""
        from sparse_adapt.terms.mining import read_terms

        path = self.folder / "terms.json"
        return read_terms(path) if path.is_file() else []

    @property
    def verdict(self) -> list[str]:
        """In words: what was added, what it took, whether anything was gained, what has to be encoded again."""
        from sparse_adapt.pipeline.choice import verdict

        return verdict(self.report) if self.report else [f"stopped after {self.stopped}"]

    @property
    def headline(self) -> str:
        """The folder, and what was added."""
        return f"{self.folder}: {self.verdict[0]}"

    def to_dict(self) -> dict[str, object]:
        """The report: each step, each stage, each model that was tried."""
        return dict(self.report)

    def rows(self) -> Sequence[Row]:
        """Each model that was tried on the queries set aside, the base model first; raises as `model` does."""
        from sparse_adapt.pipeline.choice import tabulate

        self._check()
        return tabulate(self.report).rows

    def sections(self) -> Sequence[Section]:
        """The models that were tried, and the verdict."""
        from sparse_adapt.pipeline.choice import more_to_say, tabulate
        from sparse_adapt.pipeline.report import ruling_parts

        if not self.report:
            return untitled(*self.verdict)
        return untitled(tabulate(self.report), *ruling_parts(self.report), *more_to_say(self.report))

    def _check(self) -> None:
        if self.stopped:
            raise InputError(
                self.folder, f"stopped after {self.stopped}, so there is no model yet; go on with resume"
            )


@declared
def adapt(
    corpus: CorpusAtPlace,
    out: Annotated[str | Path | None, out_option("Run folder; by default runs/CORPUS.", "DIR")] = None,
    *,
    model: Annotated[
        "ModelLike | None", Option(MODEL_HELP, metavar="MODEL", check=a_model, shown="splade-tiny")
    ] = None,
    glossary: Glossary = None,
    columns: Columns = (),
    queries: Annotated[
        "QueriesLike | None",
        Option(
            "Queries of your users, to learn from beside synthetic ones.", metavar="FILE", check=some_queries
        ),
    ] = None,
    candidates: CandidatesGiven = None,
    teacher: Annotated[str | None, replace(TEACHER, shown="ensemble")] = None,
    llm: Llm = None,
    stages: Annotated[
        Sequence[str] | None,
        Option(
            "Stages to carry out, with commas between them. words: exact words in the vectors, for which nothing is "
            "trained. rank: the model learns to rank. extend,preserve,rank gives words of the corpus a token that "
            "nothing defines.",
            metavar="NAMES",
            commas=True,
            choices=("words", *stages_of_adapt()),
            shown="words; with --glossary also extend,dictionary",
        ),
    ] = None,
    until: Annotated[
        str | None,
        Option("Stop after a step, to read and edit what it made.", metavar="STEP", choices=tuple(FILES)),
    ] = None,
    engine: Engine = "local",
    workers: Workers = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    progress: bool | None = None,
    **settings: Annotated[Any, SETTINGS, TRAINING],  # noqa: ANN401 - those of stages, checked by their own types
) -> Adaptation:
    """Adapt a model to your own corpus. Nothing else is needed.

    Exact words are put into its vectors, and what they bring is measured; words of a glossary get a token and are
    taught. The adapted model ends in DIR/model.

    A corpus has some dozens of documents at least. What is given in memory is kept in `out`-inputs. An adaptation that
    goes on has its own settings, and what is named now on top. Settings are those of every stage that trains
    (`batch_size=8`), of one stage under its name (`rank={"steps": 100}`), of the adaptation itself (`documents`,
    `max_tokens`, `only_new`, `windows`, `share`, `interpolations`), and how queries and candidates are made
    (`query_settings={"count": 500}`, `candidate_settings`).

    Raises InputError for a corpus that can't be read or gives too little, and for a glossary of other words,
    ConfigError for a setting that there isn't and for a file that no stage reads, OutputError for a folder that is
    taken.

    >>> import tempfile, sparse_adapt as sa
    >>> out = tempfile.mkdtemp() + "/adapted"
    >>> sa.adapt("gatrocraptic", out, until="queries", teacher="bm25")  # doctest: +ELLIPSIS
    <Adaptation: ...adapted.partial: stopped after queries>
    """
    folder = run_folder(corpus) if out is None else Path(out)
    from sparse_adapt.pipeline.request import Request, begun, chosen_settings

    before = begun(folder) if resume else None
    seed = settings.pop("seed", None)
    chosen = chosen_settings(before, {"stages": stages, **settings}, seed)
    from sparse_adapt.api.inputs import InputFolder
    from sparse_adapt.collection.arguments import (
        Corpus,
        chooses_definitions,
        chooses_queries,
        definitions_of,
        queries_of,
    )
    from sparse_adapt.files.place import Place
    from sparse_adapt.model.processes import read_by
    from sparse_adapt.pipeline.adapt import Stopped
    from sparse_adapt.pipeline.adapt import adapt as carry_out
    from sparse_adapt.pipeline.plan import BASE_MODEL
    from sparse_adapt.retrieve.vectors.clusters import cluster_of

    place = Place(folder, overwrite, resume)
    inputs = InputFolder(place)
    with inputs.unless_refused():
        if glossary is not None and chooses_definitions(columns):
            glossary = definitions_of(glossary, columns)
        if queries is not None and chooses_queries(columns):
            queries = queries_of(queries, columns)
        files = {
            "corpus": Corpus.of(corpus, columns),
            "glossary": glossary,
            "queries": queries,
            "candidates": candidates,
        }
        named = {
            name: inputs.place(KEYS.get(name, name), source)
            for name, source in files.items()
            if source is not None
        }
        names = {
            "model": None if model is None else inputs.model(model),
            "teacher": teacher,
            "llm": llm,
        }
        named |= {name: value for name, value in names.items() if value is not None}
        base = before or Request(corpus=named["corpus"], model=BASE_MODEL)
        request = replace(base, **{**named, **chosen})
        bars = AdaptBars(shown=is_interactive() if progress is None else progress)
        with cluster_of(engine, workers) as cluster, read_by(cluster), bars:
            try:
                done = carry_out(request, place, bars, until)
            except Stopped as stopped:
                return _stopped(stopped.folder, stopped.step, request.corpus, folder)
    return _whole(folder, done.report, request.corpus)


def _whole(folder: Path, report: "Report", corpus: str) -> Adaptation:
    """The adaptation, with a query to ask the model, and how its vectors are written for an engine."""
    model = folder / str(report["final"])
    named, question = of_run(model, folder, corpus), _question(folder / "collection")
    asked = [] if question is None else [line(each, question, *named) for each in ("explain", "search")]
    wrote = [(folder, f"the model in {model}, and {folder / 'report.json'}")]
    then = [*asked, exported(str(model), corpus, f"{folder}-export")]
    return Adaptation(folder, report, wrote=wrote, then=then, run_folder=folder)


def _stopped(folder: Path, step: str, corpus: str, place: Path) -> Adaptation:
    """The adaptation, with what to read of it, and how it goes on; `place`: where it will end."""
    made = [str(folder / name) for name in FILES[step] if (folder / name).exists()]
    message = f"up to the step {step}; read {' and '.join(made)}, and edit what you like"
    then = [line("adapt", corpus, "-o", place, "--resume")]
    return Adaptation(folder, {}, step, [(folder, message)], then, quiet=True)


def _question(collection: Path) -> str | None:
    """A synthetic query that nothing was learnt from."""
    from sparse_adapt.synthetic.queries import HELD, read_synthetic_queries

    return next((query.text for query in read_synthetic_queries(collection) if query.split == HELD), None)
