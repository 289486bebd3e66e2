"""The command `evaluate`: a model on a collection, or the many models and collections of a suite file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sparse_adapt.api.checks import a_corpus, a_file
from sparse_adapt.api.measuring import Evaluation, Measures, RunnerUp
from sparse_adapt.api.measuring import evaluate as evaluate_now
from sparse_adapt.api.options import (
    COLLECTION_HELP,
    WITH,
    Device,
    General,
    Html,
    Option,
    Reads,
    SomeModel,
    Split,
    declared,
)
from sparse_adapt.cli.console import wrote
from sparse_adapt.errors import ConfigError, OutputError
from sparse_adapt.files.writing import write_text
from sparse_adapt.registry import registry
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import to_csv

if TYPE_CHECKING:
    from sparse_adapt.collection.arguments import DocumentsLike

OF_SUITE = f"{WITH}--suite"


@declared
def evaluate_or_save(
    model: SomeModel = None,
    collection: Annotated[
        "DocumentsLike | None", Option(COLLECTION_HELP, metavar="DIR", check=a_corpus)
    ] = None,
    *,
    split: Split = "test",
    baseline: RunnerUp = None,
    measures: Measures = (),
    general: General = None,
    suite: Annotated[
        str | Path | None,
        Option("Measure the many models and collections that this file names.", metavar="FILE", check=a_file),
    ] = None,
    out: Annotated[
        str | Path | None,
        Option("Folder for tables, plot and vectors.", "-o --out", "DIR", panel=OF_SUITE),
    ] = None,
    explain: Annotated[
        bool, Option("Show what gained and lost most, and by which tokens.", panel=OF_SUITE)
    ] = False,
    latex: Annotated[bool, Option("Print the table for a paper: LaTeX with the package booktabs.")] = False,
    csv: Annotated[bool, Option("Print the table for another program, numbers in full.")] = False,
    per_query: Annotated[
        str | Path | None, Option("Write the figures of each query to this file, as CSV.", metavar="FILE")
    ] = None,
    overwrite: Annotated[bool, Option("Replace the results in DIR, or FILE.")] = False,
    resume: Annotated[bool, Option("Go on where the suite stopped.", panel=OF_SUITE)] = False,
    template: Annotated[bool, Option("Print a suite file to fill in, every key explained.")] = False,
    device: Device = "auto",
    html: Html = None,
    progress: bool | None = None,
    **reading: Reads,
) -> Evaluation | Result:
    """Measure a model on judged queries, beside another or BM25.

    With --suite, many models are measured on many collections.
    """
    if template:
        printed: Result = registry().find("options", "evaluate --template")()
        return printed
    if suite is not None:
        if html is not None:
            raise ConfigError("--html is for one comparison; a suite draws its own picture into -o DIR")
        if any((model, collection, baseline, general, measures, latex, csv, per_query)):
            raise ConfigError("--suite names its own models and collections; leave the other options out")
        options = {"explain": explain, "overwrite": overwrite, "resume": resume, "device": device}
        tables: Result = registry().find("options", "evaluate --suite")(
            suite, out, **options, progress=progress
        )
        return tables
    if model is None or collection is None:
        raise ConfigError("evaluate needs --model and --collection, or --suite FILE")
    if out is not None or explain:
        raise ConfigError("-o and --explain are for a suite; name one: --suite FILE")
    if latex and csv:
        raise ConfigError("--latex and --csv are two forms of one table; choose one")
    place = None if per_query is None else Path(per_query)
    if place is not None and (place.is_dir() or (place.exists() and not overwrite)):
        raise OutputError(f"{place}: already there; choose another place or pass --overwrite")
    how: Any = {"split": split, "device": device, "progress": progress, **reading}
    found = evaluate_now(model, collection, baseline=baseline, measures=measures, general=general, **how)
    if place is not None:
        write_text(place, to_csv(found.per_query()))
        wrote(place, f"{len(found.queries):,} queries")
    text = found.to_latex() if latex else found.to_csv() if csv else ""
    return Result(found.headline, found.to_dict(), [text.rstrip("\n")]) if text else found
