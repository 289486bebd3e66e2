"""Commands to start with: see it work, check what one has, adapt a model to it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparse_adapt.cli.console import say, show, show_json, show_table, then, wrote
from sparse_adapt.cli.options import (
    BUNDLED,
    CORPUS_HELP,
    RUNS,
    CorpusArgument,
    GeneratorOption,
    Json,
    Model,
    Overwrite,
    Preset,
    Resume,
    TeacherOption,
    overrides,
    trains,
)
from sparse_adapt.errors import ConfigError
from sparse_adapt.report.progress import Bars
from sparse_adapt.stages.table import OF_ADAPT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparse_adapt.pipeline.estimate import Expected


def check(
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help=CORPUS_HELP)], json: Json = False
) -> None:
    """Read a corpus and the files beside it, and report mistakes.

    The first bad line ends it.
    """
    from sparse_adapt.collection.glossary import read_dictionary
    from sparse_adapt.collection.pairs import read_pairs
    from sparse_adapt.collection.readers import read_candidates, read_documents, read_queries
    from sparse_adapt.collection.sources import bundled
    from sparse_adapt.collection.triplets import read_triplets
    from sparse_adapt.terms.mining import read_terms

    document_ids = {document.document_id for document in read_documents(corpus)}
    counts = {"documents": len(document_ids)}
    folder = bundled(corpus)
    readers: dict[str, Callable[[Path], Sequence[object]]] = {
        "queries": lambda path: list(read_queries(path)),
        "candidates": lambda path: list(read_candidates(path, document_ids=document_ids)),
        "pairs": lambda path: list(read_pairs(path, document_ids=document_ids)),
        "triplets": lambda path: list(read_triplets(path)),
        "labelled": lambda path: list(read_triplets(path)),
        "terms": read_terms,
        "dictionary": read_dictionary,
    }
    for name, reader in readers.items():
        for path in sorted(folder.glob(f"{name}.*")) if folder.is_dir() else ():
            counts[name] = len(reader(path))
    if json:
        show_json(counts)
    else:
        show(", ".join(f"{name} {count:,}" for name, count in counts.items()))
    then(["terms", corpus])


DEMO_TAKES = "about five minutes on two idle cores"


@trains
def demo(
    context: typer.Context,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Run folder; by default runs/CORPUS.")
    ] = None,
    corpus: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS", help="gatrocraptic, coined or a folder like them. Also as --corpus."
        ),
    ] = BUNDLED,
    model: Model = "splade-tiny",
    json: Json = False,
    overwrite: Overwrite = False,
    resume: Resume = False,
    preset: Preset = "default",
) -> None:
    """Adapt a model to a bundled corpus; show what each stage gains.

    The table at the end compares the base model, plain fine-tuning without new tokens, and the model after
    each stage.
    """
    from sparse_adapt.lab.demo.demo import run_demo
    from sparse_adapt.lab.demo.verdict import tabulate, verdict_lines
    from sparse_adapt.pipeline.plan import make_plan
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.stages.runner import Place

    plan = make_plan(corpus, model=model, preset=preset, overrides=overrides(context))
    place = Place(out or RUNS / Path(corpus).resolve().name, overwrite, resume)
    say(f"all stages on {corpus}; {DEMO_TAKES if corpus == BUNDLED else 'it takes minutes'}")
    with Bars() as bars:
        done = run_demo(plan, place, bars)
    if json:
        show_json(done.report)
    else:
        show_table(tabulate(done.report))
        show("\n".join(verdict_lines(done.report)))
    wrote(place.folder, f"a folder a stage, and {place.folder / 'report.json'}")
    question = next(iter(done.report["demo"]["hard_queries"].values()))
    term, final = done.report["demo"]["terms"][0], str(done.model)
    is_found = place.folder.resolve().parent == RUNS.resolve()  # by the commands that look for the latest run
    named = [] if is_found else ["--model", final, "--corpus", corpus]
    then(
        ["diagnose", term, *named],
        ["explain", question, *named],
        ["export", "anserini", "--model", final, "--corpus", corpus, "-o", f"{place.folder}-vectors"],
        ["index", "--vectors", f"{place.folder}-vectors", "-o", f"{place.folder}-index"],
        ["search", question, "--model", final, "--index", f"{place.folder}-index"],
    )


class _Watcher(Bars):
    """Bars that also say what each step came to."""

    def tell(self, step: str, said: str) -> None:
        """What a step came to."""
        say(f"{step}: {said}")

    def expect(self, rows: "Sequence[Expected]") -> None:
        """How long it may take."""
        from sparse_adapt.pipeline.estimate import told

        say("this takes, as far as a moment's try tells:")
        for line in told(rows):
            say(line)


@trains
def adapt(
    context: typer.Context,
    corpus: CorpusArgument,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Run folder; by default runs/CORPUS.")
    ] = None,
    model: Model = "splade-tiny",
    glossary: Annotated[
        str | None,
        typer.Option("--glossary", metavar="FILE", help="dictionary.jsonl: terms and definitions."),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            "--queries", metavar="FILE", help="What users asked, to learn from beside what is made up."
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(
            "--candidates", metavar="FILE", help="candidates.jsonl to learn from, instead of made ones."
        ),
    ] = None,
    teacher: TeacherOption = "ensemble",
    query_generator: GeneratorOption = None,
    documents: Annotated[
        int | None, typer.Option("--documents", min=8, help="Look at so many documents of a larger corpus.")
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(
            "--stages",
            metavar="NAMES",
            help=f"Which of {','.join(OF_ADAPT)}, by commas.",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            min=8,
            help="Tokens of a text that are read; by default as many as the model reads.",
        ),
    ] = None,
    only_new: Annotated[
        bool,
        typer.Option(
            "--only-new", help="Teach new terms only: documents without one needn't be encoded again."
        ),
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="STEP",
            help="Stop after terms, dictionary, queries, candidates or stages, to read and edit.",
        ),
    ] = None,
    json: Json = False,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Adapt a model to your own corpus. Nothing else is needed.

    Terms, definitions, queries and candidates are made from the corpus. The adapted model ends in DIR/model.
    """
    from sparse_adapt.errors import unknown
    from sparse_adapt.pipeline.adapt import STEPS, Stopped
    from sparse_adapt.pipeline.adapt import adapt as carry_out
    from sparse_adapt.pipeline.request import Request
    from sparse_adapt.pipeline.verdict import tabulate, verdict
    from sparse_adapt.stages.runner import Place

    if until is not None and until not in STEPS:
        raise ConfigError(unknown("step", until, STEPS))
    request = Request(
        corpus=corpus,
        model=model,
        glossary=glossary,
        queries=queries,
        candidates=candidates,
        teacher=teacher,
        generator=query_generator,
        settings=_settings(context.params["seed"], documents, max_tokens, only_new, stages),
        overrides={key: value for key, value in overrides(context).items() if key != "seed"},
    )
    place = Place(out or RUNS / Path(corpus).resolve().name, overwrite, resume)
    try:
        with _Watcher() as watcher:
            done = carry_out(request, place, watcher, until)
    except Stopped as stopped:
        wrote(stopped.folder, f"all up to {stopped.step}; read it, edit it")
        then([*_named(request.corpus, request.model, place.folder), "--resume"])
        return
    if json:
        show_json(done.report)
    else:
        show_table(tabulate(done.report))
    for line in verdict(done.report):
        say(line)
    wrote(place.folder, f"the model in {done.model}, and {place.folder / 'report.json'}")
    final, vectors = str(done.model), f"{place.folder}-vectors"
    then(
        ["explain", "QUERY", "--model", final, "--corpus", corpus],
        ["encode", "--model", final, "--corpus", corpus, "-o", vectors],
        ["export", "anserini", "--model", final, "--corpus", corpus, "-o", f"{place.folder}-export"],
    )


def _settings(
    seed: int | None, documents: int | None, max_tokens: int | None, only_new: bool, stages: str | None
) -> Any:  # noqa: ANN401 - config loads late
    from sparse_adapt.errors import unknown
    from sparse_adapt.pipeline.settings import AdaptSettings

    content: dict[str, Any] = {"frozen": only_new}
    if seed is not None:
        content |= AdaptSettings.seeds(seed)
    if documents is not None:
        content["documents"] = documents
    if max_tokens is not None:
        content["max_tokens"] = max_tokens
    if stages is not None:
        named = tuple(name.strip() for name in stages.split(","))
        for name in named:
            if name not in OF_ADAPT:
                raise ConfigError(unknown("stage", name, OF_ADAPT))
        content["stages"] = tuple(name for name in OF_ADAPT if name in named)
    return AdaptSettings.model_validate(content)


def _named(corpus: str, model: str, out: Path) -> list[str]:
    return ["adapt", "--corpus", corpus, "--model", model, "-o", str(out)]
