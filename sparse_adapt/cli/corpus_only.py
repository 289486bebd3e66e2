"""Commands for whoever has a corpus and nothing else: adapt, and the steps that make what a model learns from."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparse_adapt.cli.console import say, show_json, show_table, then, wrote
from sparse_adapt.cli.options import (
    CORPUS_HELP,
    RUNS,
    Json,
    Model,
    Out,
    Overwrite,
    Resume,
    Seed,
    overrides,
    trains,
)
from sparse_adapt.cli.progress import Bars
from sparse_adapt.errors import ConfigError, OutputError
from sparse_adapt.stages import OF_ADAPT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparse_adapt.adapting.estimate import Expected

CorpusArgument = Annotated[str, typer.Argument(metavar="CORPUS", help=CORPUS_HELP)]
TeacherOption = Annotated[
    str,
    typer.Option(
        "--teacher",
        metavar="NAME_OR_PATH",
        help="ensemble, bm25 (quick: without a dense model), a dense model, a cross-encoder, or a file of scores "
        "(candidates.jsonl or a TREC run).",
    ),
]
GeneratorOption = Annotated[
    str | None,
    typer.Option(
        "--query-generator",
        metavar="NAME_OR_PATH",
        help="A sequence-to-sequence model that writes queries, by folder or Hub id.",
    ),
]


class _Watcher(Bars):
    """Bars that also say what each step came to."""

    def tell(self, step: str, said: str) -> None:
        """What a step came to."""
        say(f"{step}: {said}")

    def expect(self, rows: "Sequence[Expected]") -> None:
        """How long it may take."""
        from sparse_adapt.adapting.estimate import told

        say("this takes, as far as a moment's try tells:")
        for line in told(rows):
            say(line)


@trains
def adapt(
    context: typer.Context,
    corpus: Annotated[str, typer.Option("--corpus", metavar="CORPUS", help=CORPUS_HELP)],
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
    """Adapt a model to a corpus, with nothing but the corpus; the adapted model ends in DIR/model."""
    from sparse_adapt.adapting import STEPS, Stopped
    from sparse_adapt.adapting import adapt as carry_out
    from sparse_adapt.adapting.request import Request
    from sparse_adapt.adapting.verdict import tabulate, verdict
    from sparse_adapt.errors import unknown
    from sparse_adapt.stages.steps import Place

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


def queries(
    corpus: CorpusArgument,
    out: Out,
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="Queries to learn from, at most.")
    ] = None,
    held: Annotated[int | None, typer.Option("--held", min=1, help="Queries set aside, at most.")] = None,
    query_generator: GeneratorOption = None,
    seed: Seed = None,
    overwrite: Overwrite = False,
) -> None:
    """Make queries without users, as a collection: titles, telling sentences, key phrases."""
    from sparse_adapt import config
    from sparse_adapt.adapting.preparing import prepare_collection
    from sparse_adapt.corpus import read_documents
    from sparse_adapt.folders import output_folder
    from sparse_adapt.teachers.generator import generator

    named = {"count": count, "held": held, "seed": seed}
    settings = config.Queries.model_validate(
        {key: value for key, value in named.items() if value is not None}
    )
    generate = generator(query_generator) if query_generator is not None else None
    with Bars() as bars:
        documents = list(bars.watch(read_documents(corpus), "documents"))
    with output_folder(out, overwrite=overwrite, resumable=False) as work:
        said = prepare_collection(corpus, documents, settings, None, generate, work)
    wrote(out, f"{said}; read {out / 'queries.jsonl'}, and delete what is no query")
    then(
        ["candidates", str(out), "-o", "candidates.jsonl"],
        ["evaluate", "--model", "splade-tiny", "--collection", str(out), "--split", "held"],
    )


def candidates(
    collection: Annotated[
        Path, typer.Argument(metavar="COLLECTION", help="A folder that `sparse-adapt queries` wrote.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="candidates.jsonl to write.")],
    model: Model = "splade-tiny",
    teacher: TeacherOption = "ensemble",
    split: Annotated[str, typer.Option("--split", help="train, or held for those set aside.")] = "train",
    seed: Seed = None,
    overwrite: Overwrite = False,
) -> None:
    """Find documents for each query, easy and hard ones, and have a teacher score them."""
    from sparse_adapt import config
    from sparse_adapt.adapting.preparing import prepare_candidates
    from sparse_adapt.corpus import read_documents
    from sparse_adapt.errors import unknown
    from sparse_adapt.model import SparseEncoder
    from sparse_adapt.teachers.panel import make_panel

    if split not in ("train", "held"):
        raise ConfigError(unknown("split", split, ("train", "held")))
    if out.exists() and not overwrite:
        raise OutputError(f"{out}: already there; choose another -o or pass --overwrite")
    documents = list(read_documents(collection))
    settings = config.Candidates() if seed is None else config.Candidates(seed=seed)
    with Bars() as bars:
        student = SparseEncoder.load(model)
        panel = make_panel(student, documents, teacher, watch=bars.count)
        said = prepare_candidates(collection, panel, settings, split, out, bars.count)
    wrote(out, said)
    then(
        [
            "distill",
            "--model",
            model,
            "--candidates",
            str(out),
            "--corpus",
            str(collection),
            "-o",
            "distilled",
        ]
    )


def _settings(
    seed: int | None, documents: int | None, max_tokens: int | None, only_new: bool, stages: str | None
) -> Any:  # noqa: ANN401 - config loads late
    from sparse_adapt import config
    from sparse_adapt.errors import unknown

    content: dict[str, Any] = {"frozen": only_new}
    if seed is not None:
        content |= config.Adapt.seeds(seed)
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
    return config.Adapt.model_validate(content)


def _named(corpus: str, model: str, out: Path) -> list[str]:
    return ["adapt", "--corpus", corpus, "--model", model, "-o", str(out)]
