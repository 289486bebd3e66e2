"""The command `evaluate`: a model on a collection, or the many models and collections of a suite file."""

from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any

from sparse_adapt.api.checks import a_corpus, a_file
from sparse_adapt.api.measuring import Evaluation
from sparse_adapt.api.measuring import evaluate as evaluate_now
from sparse_adapt.api.options import (
    COLLECTION_HELP,
    WITH,
    Baseline,
    Device,
    General,
    Html,
    Option,
    Reads,
    SomeModel,
    Split,
    declared,
)
from sparse_adapt.api.results import Tables
from sparse_adapt.errors import ConfigError
from sparse_adapt.research import SUITE, SUITE_FILE

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
    baseline: Baseline = None,
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
    overwrite: Annotated[bool, Option("Replace the results in DIR.", panel=OF_SUITE)] = False,
    resume: Annotated[bool, Option("Go on where the suite stopped.", panel=OF_SUITE)] = False,
    template: Annotated[bool, Option("Print a suite file to fill in, every key explained.")] = False,
    device: Device = "auto",
    html: Html = None,
    progress: bool | None = None,
    **reading: Reads,
) -> Evaluation | Tables:
    """Measure a model on judged queries, beside another model.

    With --suite, many models are measured on many collections.
    """
    if template:
        printed: Tables = resolve_name(SUITE_FILE)()
        return printed
    if suite is not None:
        if html is not None:
            raise ConfigError("--html is for one comparison; a suite draws its own picture into -o DIR")
        if any(each is not None for each in (model, collection, baseline, general)):
            raise ConfigError("--suite names its own models and collections; leave the other options out")
        options = {"explain": explain, "overwrite": overwrite, "resume": resume, "device": device}
        tables: Tables = resolve_name(SUITE)(suite, out, **options, progress=progress)
        return tables
    if model is None or collection is None:
        raise ConfigError("evaluate needs --model and --collection, or --suite FILE")
    if out is not None or explain:
        raise ConfigError("-o and --explain are for a suite; name one: --suite FILE")
    how: Any = {"split": split, "device": device, "progress": progress, **reading}
    return evaluate_now(model, collection, baseline=baseline, general=general, **how)
