"""Commands for what a page shows: the page of a run, and a model whose terms light less."""

import math
from pathlib import Path
from typing import Annotated

import typer

from sparse_adapt.api.checks import a_folder, a_model, check_free_file, check_output, some_queries
from sparse_adapt.api.following import free
from sparse_adapt.api.runs import latest, subject_of
from sparse_adapt.cli.console import say, show, show_json, then, wrote
from sparse_adapt.cli.options import MODEL_HELP, RUNS, Json, OptionalCorpus, OptionalModel, Overwrite, checked
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.report.progress import Bars


def report(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="The folder of a finished run; by default the latest.",
            callback=checked(a_folder),
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="The page to write; by default RUN/report.html."),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            help="Queries of your users: which of them light a new term.",
            callback=checked(some_queries),
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the page of a run: what was gained and lost, and why.

    One HTML file that needs no network and no script. demo, adapt and run write it at their end.
    """
    folder = run or _latest()
    check_free_file(out, "page", overwrite=overwrite, reads=[queries])
    from sparse_adapt.pages.run import PARTS, write_run_page

    with Bars() as bars:
        place = write_run_page(folder, out, queries, bars.count("parts of the page", PARTS))
    wrote(place, "a page to open in a browser")


def explore(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN_OR_MODEL",
            help="A finished run, whose base model stands beside the final one, or a model; by default the latest run.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="MODEL",
            help=f"The model beside it. {MODEL_HELP}",
            callback=checked(a_model),
        ),
    ] = None,
    corpus: OptionalCorpus = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="Where to listen; 0 takes any that is free.")
    ] = 8765,
    saves: Annotated[
        Path,
        typer.Option("--saves", metavar="DIR", help="The folder in which the slider saves models."),
    ] = Path(),
) -> None:
    """Open a local web page on which you ask a model why.

    Queries, terms, documents, and a slider for each term. It answers this machine alone, until Ctrl-C ends it.
    """
    asked = source or str(_latest())
    from sparse_adapt.explore.server import listen, serve
    from sparse_adapt.explore.subject import explored, find_places

    places = find_places(asked, baseline, corpus)
    listening = listen(port)
    with Bars() as bars:
        found = explored(places, bars.count)
    serve(found, listening, saves, lambda address: say(f"open {address} (Ctrl-C ends it)"))


def calibrate(
    model: OptionalModel = None,
    corpus: OptionalCorpus = None,
    lower: Annotated[
        list[str] | None,
        typer.Option(
            "--lower",
            metavar="TERM=AMOUNT",
            help="Lower a term's logit by an amount; a text whose logit is smaller doesn't light the term any more. A "
            "negative amount raises the logit. May be given several times.",
        ),
    ] = None,
    target_strays: Annotated[
        str | None,
        typer.Option(
            "--target-strays",
            metavar="SHARE",
            help="Lower every term until at most this share of everyday queries lights a term, such as 5%.",
        ),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            help="Queries of your users: how many of them light a new term, before and after.",
            callback=checked(some_queries),
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="Folder to write the model in."),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Have new terms light less, and show what that buys and costs.

    Only the biases of new tokens change, so every other weight stays as it was.
    """
    if out is None:
        raise ConfigError("calibrate needs -o DIR, the folder to write the model in")
    if (not lower) == (target_strays is None):
        raise ConfigError("calibrate needs --lower TERM=AMOUNT or --target-strays SHARE, one of both")
    amounts = dict(map(_amount, lower)) if lower else None
    target = None if target_strays is None else _share(target_strays)
    subject = subject_of(model, corpus)
    check_output(out, overwrite=overwrite, resume=False, reads=[subject.model])
    from sparse_adapt.api.calibrating import calibrate as calibrate_now

    found = calibrate_now(
        subject.model,
        out,
        lower=amounts,
        target_strays=target,
        corpus=subject.corpus,
        queries=queries,
        overwrite=overwrite,
        progress=True,
    )
    if json:
        show_json(found.to_dict())
    else:
        show(found.renderable())
    wrote(out, "the calibrated model, and calibration.json with these figures")
    then(["export", "anserini", "--model", str(out), "--corpus", subject.corpus, "-o", free(f"{out}-export")])


def _amount(word: str) -> tuple[str, float]:
    """A term and its amount. Raises ConfigError for anything else."""
    term, _, amount = word.rpartition("=")
    try:
        value = float(amount)
    except ValueError:
        value = math.nan
    if not term.strip() or not math.isfinite(value):
        raise ConfigError(f"--lower {word}: write a term and a number, such as gatrocraptic=1.5")
    return term.strip(), value


def _share(word: str) -> float:
    """A share from 0 to 1, written as a percentage or as such. Raises ConfigError for anything else."""
    try:
        value = float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise ConfigError(f"--target-strays {word}: write a share, such as 5%")
    return value


def _latest() -> Path:
    found = latest()
    if found is None:
        raise InputError(
            RUNS, "holds no finished run; name the folder of one, or make one: sparse-adapt demo"
        )
    return found.folder
