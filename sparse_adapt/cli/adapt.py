"""Commands that take a corpus all the way: terms, a run of any stages, and the demo."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparse_adapt.cli.console import say, show, show_json, show_table, then, then_measure, wrote
from sparse_adapt.cli.options import (
    BUNDLED,
    CORPUS_HELP,
    RUNS,
    Json,
    Model,
    Overwrite,
    Preset,
    Resume,
    overrides,
    trains,
)
from sparse_adapt.errors import InputError, OutputError

if TYPE_CHECKING:
    from sparse_adapt.report import Table
    from sparse_adapt.terms import Term

SHOWN_TERMS = 40
CRITERIA = GAIN, WORDPIECE = ("gain", "wordpiece")
DEMO_TAKES = "about five minutes on two idle cores"


@trains
def demo(
    context: typer.Context,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Run folder; by default runs/CORPUS.")
    ] = None,
    corpus: Annotated[
        str, typer.Option("--corpus", metavar="CORPUS", help="gatrocraptic, coined or a folder like them.")
    ] = BUNDLED,
    model: Model = "splade-tiny",
    json: Json = False,
    overwrite: Overwrite = False,
    resume: Resume = False,
    preset: Preset = "default",
) -> None:
    """Run all stages on a bundled corpus, and show what each buys and costs.

    The table at the end has the base model, fine-tuning alone, and each stage.
    """
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.demo import run_demo
    from sparse_adapt.demo.verdict import tabulate, verdict_lines
    from sparse_adapt.running.plan import make_plan
    from sparse_adapt.stages.steps import Place

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


@trains
def run(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="RUN.TOML", help="The stages, and what they read.")],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="Run folder; by default runs/ and the file's name."),
    ] = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Carry out any sequence of stages from one file. Options here go before what the file says."""
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.running.run import run as carry_out
    from sparse_adapt.running.runfile import read_plan
    from sparse_adapt.stages.steps import Place

    plan = read_plan(file, overrides(context))
    folder = out or RUNS / file.stem
    with Bars() as bars:
        done = carry_out(plan, Place(folder, overwrite, resume), bars)
    wrote(folder, f"{len(plan.stages)} stages, the last model in {done.model}")
    then_measure(done.model, done.corpus or "CORPUS", plan.model, f"{folder}-vectors")


def terms(
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help=CORPUS_HELP)],
    model: Model = "splade-tiny",
    top: Annotated[
        int | None, typer.Option("--top", min=1, help="The best so many, whether they are worth it or not.")
    ] = None,
    share: Annotated[
        float,
        typer.Option(
            "--share",
            min=0,
            help="Of gain: stop at the first term that saves less than this share of the mean before it.",
        ),
    ] = 0.25,
    by: Annotated[
        str,
        typer.Option(
            "--by", metavar="NAME", help="gain, or wordpiece: what a vocabulary trained on the corpus has."
        ),
    ] = GAIN,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="terms.json to write.")
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Rank the words of a corpus that deserve a token of their own, with the evidence."""
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.corpus import read_documents
    from sparse_adapt.errors import ConfigError, unknown
    from sparse_adapt.model.saved import fetch, read_tokenizer
    from sparse_adapt.terms import mine_terms, write_terms
    from sparse_adapt.terms.criterion import paying
    from sparse_adapt.terms.wordpiece import domain_vocabulary

    if by not in CRITERIA:
        raise ConfigError(unknown("--by", by, CRITERIA))
    if out is not None and out.exists() and not overwrite:
        raise OutputError(f"{out}: already there; choose another -o or pass --overwrite")
    documents = read_documents(corpus)
    tokenizer, criterion = read_tokenizer(fetch(model), model), ""
    with Bars() as bars:
        watched = bars.watch(documents, "documents")
        if by == WORDPIECE:
            found = domain_vocabulary(watched, tokenizer, top=top)
        else:
            found = mine_terms(watched, tokenizer, top)
            if top is None:
                found, criterion = paying(found, share)
    if not found and out is not None:
        raise InputError(corpus, "holds no word that earns a token; --top 20 shows the best there are")
    if out is not None:
        write_terms(out, found)
    if json:
        show_json([{"term": term.text, "category": term.category, **_evidence(term)} for term in found])
    else:
        show_table(_terms_table(found))
        if criterion:
            say(criterion)
    if out is None:
        then(["terms", corpus, "-o", "terms.json"])
        return
    wrote(out, f"{len(found):,} terms; read it, and delete what isn't one")
    then(["extend", "--model", model, "--terms", str(out), "-o", "extended"])


# -- the table of terms ---------------------------------------------------------------------------


def _evidence(term: "Term") -> dict[str, Any]:
    return asdict(term.evidence) if term.evidence is not None else {}


def _terms_table(found: Sequence["Term"]) -> "Table":
    from sparse_adapt.report import Column, Row, Table

    columns = (
        Column("rank", "rank"),
        Column("term", "term", "token"),
        Column("category", "category", "text"),
        Column("gain", "gain", unit="nats", decimals=1),
        Column("occurrences", "times"),
        Column("documents", "documents"),
        Column("zipf", "zipf", decimals=2),
        Column("log_odds", "log odds", decimals=2),
        Column("pieces", "pieces now", "token"),
    )
    rows: list[Row] = [
        {
            "rank": rank,
            "term": term.text,
            "category": term.category,
            **_evidence(term),
            "pieces": " ".join(term.evidence.pieces) if term.evidence else "",
        }
        for rank, term in enumerate(found[:SHOWN_TERMS], start=1)
    ]
    note = "gain: what a token of its own saves over the corpus, less what it costs"
    if len(found) > SHOWN_TERMS:
        note = f"the first {SHOWN_TERMS} of {len(found):,}; {note}"
    return Table("", columns, rows, note)
