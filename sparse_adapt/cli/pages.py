"""Commands for what a page shows: the page of a run, and a model whose terms light less."""

from pathlib import Path
from typing import Annotated

import typer

from sparse_adapt.api.checks import a_folder, a_model, check_free_file, some_queries
from sparse_adapt.api.runs import latest
from sparse_adapt.cli.console import say, wrote
from sparse_adapt.cli.options import MODEL_HELP, RUNS, OptionalCorpus, Overwrite, checked
from sparse_adapt.errors import InputError
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
    from sparse_adapt.pages.explorer.server import listen, serve
    from sparse_adapt.pages.explorer.subject import explored, find_places

    places = find_places(asked, baseline, corpus)
    listening = listen(port)
    with Bars() as bars:
        found = explored(places, bars.count)
    serve(found, listening, saves, lambda address: say(f"open {address} (Ctrl-C ends it)"))


def _latest() -> Path:
    found = latest()
    if found is None:
        raise InputError(
            RUNS, "holds no finished run; name the folder of one, or make one: sparse-adapt demo"
        )
    return found.folder
