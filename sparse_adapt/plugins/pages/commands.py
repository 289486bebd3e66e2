"""The page of a run, and pages on which a model is asked: `report` and `explore`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sparse_adapt.api.checks import a_folder, check_free_file, some_queries
from sparse_adapt.api.options import (
    MODEL_HELP,
    LatestCorpus,
    Option,
    Overwrite,
    declared,
    model_option,
    out_option,
)
from sparse_adapt.api.runs import latest_folder
from sparse_adapt.files.place import Place
from sparse_adapt.report.messages import say
from sparse_adapt.report.progress import progress_bars
from sparse_adapt.report.results import Result, written

if TYPE_CHECKING:
    from sparse_adapt.api.models import ModelLike


@declared
def write_report(
    run: Annotated[
        str | Path | None,
        Option(
            "The folder of a finished run; by default the latest. Also as --run.",
            metavar="RUN",
            place=True,
            check=a_folder,
        ),
    ] = None,
    out: Annotated[str | Path | None, out_option("The page to write; by default RUN/report.html.")] = None,
    *,
    queries: Annotated[
        str | Path | None,
        Option(
            "Queries of your users: which of them activate a new term.", metavar="FILE", check=some_queries
        ),
    ] = None,
    overwrite: Overwrite = False,
    progress: bool | None = None,
) -> Result:
    """Write the page of a run: what was gained and lost, and why.

    One HTML file that needs no network and no script. demo, adapt and run write it at their end.

    >>> import sparse_adapt as sa
    >>> sa.write_report("runs/gatrocraptic", "page.html").path  # doctest: +SKIP
    PosixPath('page.html')
    """
    folder = latest_folder() if run is None else Path(run)
    target = None if out is None else Path(out)
    check_free_file(None if target is None else Place(target, overwrite, reads=[queries]), "page")
    from sparse_adapt.plugins.pages.run import write_run_page

    with progress_bars(progress) as bars:
        query_text = None if queries is None else str(queries)
        place = write_run_page(folder, target, query_text, bars.count)
    return written(place, "a page to open in a browser")


@declared
def explore(
    run: Annotated[
        str | None,
        Option(
            "A finished run, whose base model stands beside the final one, or a model; by default the latest run. "
            "Also as --run.",
            metavar="RUN_OR_MODEL",
            place=True,
        ),
    ] = None,
    *,
    baseline: Annotated["ModelLike | None", model_option(f"The model beside it. {MODEL_HELP}")] = None,
    corpus: LatestCorpus = None,
    port: Annotated[int, Option("Where to listen; 0 takes any that is free.", ge=0, le=65_535)] = 8765,
    saves: Annotated[str | Path, Option("The folder in which the slider saves models.", metavar="DIR")] = ".",
    progress: bool | None = None,
) -> None:
    """Open a local web page on which you ask a model why.

    Queries, terms, documents, and a slider for each term. It answers this machine alone, until Ctrl-C ends it.

    >>> import sparse_adapt as sa
    >>> sa.explore("adapted")  # doctest: +SKIP
    """
    place = str(latest_folder()) if run is None else run
    from sparse_adapt.plugins.pages.explorer.server import listen, serve
    from sparse_adapt.plugins.pages.explorer.subject import explored, find_places

    named = [None if each is None else str(each) for each in (baseline, corpus)]
    places = find_places(place, *named)
    listening = listen(port)
    with progress_bars(progress) as bars:
        subject = explored(places, bars.count)
    serve(subject, listening, Path(saves), lambda address: say(f"open {address} (Ctrl-C ends it)"))
