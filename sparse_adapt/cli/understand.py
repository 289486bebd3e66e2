"""Commands that only look: diagnose a term, explain a query, evaluate a model or a suite."""

from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated

import typer

from sparse_adapt.api.checks import (
    a_corpus,
    a_file,
    a_file_or_folder,
    a_model,
    check_free_file,
    check_split,
)
from sparse_adapt.api.following import a_query, free
from sparse_adapt.api.runs import BASE, Subject, subject_of
from sparse_adapt.cli.commands import present
from sparse_adapt.cli.console import say, show, show_json, then, wrote
from sparse_adapt.cli.options import (
    COLLECTION_HELP,
    MODEL_HELP,
    WITH,
    Baseline,
    Device,
    Html,
    Json,
    OptionalCorpus,
    OptionalModel,
    Split,
    checked,
    encodes,
)
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.research import SUITE, SUITE_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparse_adapt.collection.readers import Query
    from sparse_adapt.model.reading import Reading
    from sparse_adapt.report.results import Result


OF_SUITE = f"{WITH}--suite"


@encodes
def diagnose(
    term: Annotated[
        str | None,
        typer.Argument(metavar="TERM", help="A word or a token; without one, the whole model is looked at."),
    ] = None,
    model: OptionalModel = None,
    corpus: OptionalCorpus = None,
    document: Annotated[
        str | None,
        typer.Option(
            "--document",
            metavar="ID",
            help="Look at this document.",
            show_default="the one that says the term most",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="MODEL",
            help=f"Without TERM: the model to compare with. {MODEL_HELP}",
            callback=checked(a_model),
        ),
    ] = None,
    html: Html = None,
    json: Json = False,
    *,
    reading: "Reading",
) -> None:
    """Show what a model makes of one term, or of all its new tokens.

    Of a term: vocabulary, logits, weight and ranking, for the document that says it most. Of a model: its new tokens,
    which light where nobody says them, what its vectors cost, and how far it moved from a baseline.
    """
    check_free_file(html, "page", overwrite=True)
    if term is None and html is not None:
        raise ConfigError("--html is for a term; name one")
    subject = subject_of(model, corpus)
    if term is None:
        _diagnose_model(subject, baseline, reading, json=json)
        return
    from sparse_adapt.api.insight import diagnose as diagnose_now
    from sparse_adapt.cli.devices import load_to_read

    looked_at = load_to_read(subject.model, "cpu", reading)
    found = diagnose_now(looked_at, term, subject.corpus, document_id=document, device="cpu")
    _show_about(subject, found, json)
    _write_page(found, html, term, f"What {_last(subject.model)} makes of it, on {_last(subject.corpus)}.")
    if not subject.adapted:
        then(["demo"])


def _diagnose_model(subject: Subject, baseline: str | None, reading: "Reading", *, json: bool) -> None:
    """Show the health of a whole model on a corpus."""
    from sparse_adapt.api.insight import diagnose_model
    from sparse_adapt.cli.devices import load_to_read

    looked_at = load_to_read(subject.model, "cpu", reading)
    beside = None if baseline is None else load_to_read(baseline, "cpu", reading)
    health = diagnose_model(looked_at, subject.corpus, baseline=beside, device="cpu", progress=True)
    _show_about(subject, health, json)
    if health.usage.tokens:
        files = ["--model", subject.model, "--corpus", subject.corpus]
        then(["diagnose", health.usage.tokens[0].token, *files])


def _show_about(subject: Subject, found: "Result", json: bool) -> None:
    """What was found of a model on a corpus, and which they are."""
    if json:
        show_json({"model": subject.model, "collection": subject.corpus, **found.to_dict()})
    else:
        show(found.renderable())
    say(f"model {subject.model}, corpus {subject.corpus}")


def _questions(path: str | None) -> "list[Query]":
    """The queries of a file."""
    from sparse_adapt.collection.readers import read_questions

    assert path is not None
    return read_questions(path)


def _show_each(subject: Subject, found: "Sequence[Result]", json: bool) -> None:
    """What was found for each of many queries."""
    if json:
        held = [each.to_dict() for each in found]
        show_json({"model": subject.model, "collection": subject.corpus, "queries": held})
        return
    for number, each in enumerate(found):
        if number:
            show("")
        show(each.renderable())
    say(f"model {subject.model}, corpus {subject.corpus}, {len(found):,} queries")


def _write_page(found: "Result", place: Path | None, title: str, lead: str = "") -> None:
    """A result as a page, where one is asked for."""
    if place is None:
        return
    from sparse_adapt.files.writing import write_text

    write_text(place, found.page(title, lead))
    wrote(place, "a page to open in a browser")


@encodes
def explain(
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="What to look for, in words.")] = None,
    model: OptionalModel = None,
    corpus: OptionalCorpus = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Documents to show.")] = 5,
    queries: Annotated[
        str | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            help="Explain each query of this file instead: a query a line, or JSON.",
            callback=checked(a_file_or_folder),
        ),
    ] = None,
    html: Html = None,
    json: Json = False,
    *,
    reading: "Reading",
) -> None:
    """Show why documents match a query, token by token.

    The query's tokens, its top documents with their heaviest tokens, and the shared tokens that made them match.
    """
    if (query is None) == (queries is None):
        raise ConfigError("explain needs a QUERY, or a file of them: --queries FILE")
    if query is None and html is not None:
        raise ConfigError("--html is for one query; name it")
    if query is not None and not query.strip():
        raise InputError("QUERY", "is empty; say what to look for")
    check_free_file(html, "page", overwrite=True)
    subject = subject_of(model, corpus)
    from sparse_adapt.api.insight import explain_each
    from sparse_adapt.cli.devices import load_to_read

    asked = [query] if query is not None else [each.text for each in _questions(queries)]
    held = load_to_read(subject.model, "cpu", reading)
    found = explain_each(held, asked, subject.corpus, top=top, device="cpu", progress=True)
    if query is not None:
        _show_about(subject, found[0], json)
        _write_page(
            found[0], html, query, f"What {_last(subject.model)} finds for it in {_last(subject.corpus)}."
        )
    else:
        _show_each(subject, found, json)
    if subject.adapted:
        files = ["--model", subject.model, "--corpus", subject.corpus]
        then(["export", "anserini", *files, "-o", free("export")])
    else:
        then(["demo"])


@encodes
def evaluate(
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help=MODEL_HELP, callback=checked(a_model))
    ] = None,
    collection: Annotated[
        str | None,
        typer.Option("--collection", metavar="DIR", help=COLLECTION_HELP, callback=checked(a_corpus)),
    ] = None,
    split: Split = "test",
    baseline: Baseline = None,
    general: Annotated[
        str | None,
        typer.Option(
            "--general",
            metavar="DIR",
            help="Measure also what the model keeps of what it knew: general questions, alone and among the "
            "collection's documents, strays, and known items. `general` names the passages and questions that ship "
            "with the package; any other collection with judgements serves as well.",
        ),
    ] = None,
    suite: Annotated[
        Path | None,
        typer.Option(
            "--suite",
            metavar="FILE",
            help="Measure the many models and collections that this file names.",
            callback=checked(a_file),
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="DIR",
            help="Folder for tables, plot and vectors.",
            rich_help_panel=OF_SUITE,
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Show what gained and lost most, and by which tokens.", rich_help_panel=OF_SUITE
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the results in DIR.", rich_help_panel=OF_SUITE)
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where the suite stopped.", rich_help_panel=OF_SUITE)
    ] = False,
    template: Annotated[
        bool,
        typer.Option("--template", help="Print a suite file to fill in, every key explained."),
    ] = False,
    device: Device = "auto",
    html: Html = None,
    json: Json = False,
    *,
    reading: "Reading",
) -> None:
    """Measure a model on judged queries, beside another model.

    With --suite, many models are measured on many collections.
    """
    if template:
        present(resolve_name(SUITE_FILE)(), json=False)
        return
    if suite is not None:
        if html is not None:
            raise ConfigError("--html is for one comparison; a suite draws its own picture into -o DIR")
        if any(each is not None for each in (model, collection, baseline, general)):
            raise ConfigError("--suite names its own models and collections; leave the other options out")
        given = {"explain": explain, "overwrite": overwrite, "resume": resume, "device": device}
        present(resolve_name(SUITE)(suite, out, **given, progress=True), json=json)
        return
    if model is None or collection is None:
        raise ConfigError("evaluate needs --model and --collection, or --suite FILE")
    if out is not None or explain:
        raise ConfigError("-o and --explain are for a suite; name one: --suite FILE")
    check_split(collection, split)
    check_free_file(html, "page", overwrite=True)
    from sparse_adapt.api.measuring import evaluate as evaluate_now
    from sparse_adapt.cli.devices import load_to_read

    found = evaluate_now(
        load_to_read(model, device, reading),
        collection,
        baseline=None if baseline is None else load_to_read(baseline, device, reading),
        general=general,
        split=split,
        device=device,
        progress=True,
    )
    if json:
        show_json(found.to_dict())
    else:
        show(found.renderable())
    beside = "" if baseline is None else f" beside {_last(baseline)}"
    _write_page(
        found,
        html,
        f"{_last(model)}{beside} on {_last(collection)}",
        f"The judged queries of the split {split}.",
    )
    if baseline is None and model != BASE:
        parts = [] if split == "test" else ["--split", split]
        then(["evaluate", "--model", model, "--collection", collection, *parts, "--baseline", BASE])
    elif (query := a_query(collection)) is not None:
        then(["explain", query, "--model", model, "--corpus", collection])


def _last(place: str) -> str:
    """A place by its last name: a page tells no folders of the machine that it was made on."""
    return Path(place).name or place
