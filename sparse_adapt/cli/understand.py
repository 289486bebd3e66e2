"""Commands that only look: diagnose a term, explain a query, evaluate a model or a suite."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparse_adapt.cli.checks import a_corpus, a_file, a_folder, a_model, check_split, checked
from sparse_adapt.cli.console import say, show, show_json, show_table, wrote
from sparse_adapt.cli.following import free, then
from sparse_adapt.cli.options import (
    COLLECTION_HELP,
    MODEL_HELP,
    WITH,
    Baseline,
    Device,
    Json,
    OptionalCorpus,
    OptionalModel,
    Split,
)
from sparse_adapt.cli.subject import BASE, Subject, subject_of
from sparse_adapt.errors import ConfigError, InputError

if TYPE_CHECKING:
    from diagnostics.advice import Places


OF_SUITE = f"{WITH}--suite"


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
    json: Json = False,
) -> None:
    """Show what a model makes of one term, or how a model is.

    Of a term: vocabulary, logits, weight and ranking, for the document that says it most. Of a model: its new tokens,
    which light where nobody says them, what its vectors cost, and how far it moved from a baseline.
    """
    if term is None:
        _diagnose_model(subject_of(model, corpus), baseline, json=json)
        return
    subject = subject_of(model, corpus)
    from diagnostics.report import render_token_report
    from diagnostics.token import diagnose as report_on
    from sparse_adapt.collection.readers import read_documents
    from sparse_adapt.model.sparse import SparseEncoder

    documents = list(read_documents(subject.corpus))
    encoder = SparseEncoder.load(subject.model)
    places = _places(subject, term)
    report = report_on(term, encoder, documents, document_id=document, places=places)
    if json:
        show_json({"model": subject.model, "collection": subject.corpus, **report.to_dict()})
    else:
        show(render_token_report(report))
    say(f"model {subject.model}, corpus {subject.corpus}")
    if not subject.adapted:
        then(["demo"])


def _diagnose_model(subject: Subject, baseline: str | None, *, json: bool) -> None:
    """Show the health of a whole model on a corpus."""
    from diagnostics.health import measure_health
    from sparse_adapt.collection.readers import read_documents
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.retrieve.encode import encode

    texts = [document.full_text for document in read_documents(subject.corpus)]
    encoder = SparseEncoder.load(subject.model)
    before = None if baseline is None else SparseEncoder.load(baseline)
    with Bars() as bars:
        vectors = encode(encoder, texts, "document", progress=bars.count("documents", len(texts)))
        old = (
            None
            if before is None
            else encode(before, texts, "document", progress=bars.count("baseline", len(texts)))
        )
    health = measure_health(encoder, texts, vectors, old)
    if json:
        show_json({"model": subject.model, "collection": subject.corpus, **health.to_dict()})
    else:
        for table in health.tables():
            show_table(table)
        say(f"function words and punctuation hold {health.function_share:.1%} of the documents' weight")
    for finding in health.findings():
        say(finding)
    say(f"model {subject.model}, corpus {subject.corpus}")
    if health.usage.tokens:
        files = ["--model", subject.model, "--corpus", subject.corpus]
        then(["diagnose", health.usage.tokens[0].token, *files])


def explain(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for, in words.")],
    model: OptionalModel = None,
    corpus: OptionalCorpus = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Documents to show.")] = 5,
    json: Json = False,
) -> None:
    """Show why documents match a query, token by token.

    The query's tokens, its top documents, and the shared tokens that made them match.
    """
    if not query.strip():
        raise InputError("QUERY", "is empty; say what to look for")
    subject = subject_of(model, corpus)
    from diagnostics.matches import explain as take_apart
    from diagnostics.report import render_query_report
    from sparse_adapt.collection.readers import read_documents
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.retrieve.encode import encode

    documents = list(read_documents(subject.corpus))
    encoder = SparseEncoder.load(subject.model)
    with Bars() as bars:
        texts = [document.full_text for document in documents]
        vectors = encode(encoder, texts, "document", progress=bars.count("documents", len(texts)))
    report = take_apart(query, encoder, documents, top, vectors=vectors)
    if json:
        show_json({"model": subject.model, "collection": subject.corpus, **report.to_dict()})
    else:
        show(render_query_report(report))
    say(f"model {subject.model}, corpus {subject.corpus}")
    if subject.adapted:
        files = ["--model", subject.model, "--corpus", subject.corpus]
        then(["export", "anserini", *files, "-o", free("export")])
    else:
        then(["demo"])


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
    json: Json = False,
) -> None:
    """Measure a model on judged queries, beside another model.

    With --suite, many models are measured on many collections.
    """
    if template:
        from sparse_adapt.suite.template import suite_template

        show(suite_template().rstrip("\n"))
        return
    if suite is not None:
        if any(each is not None for each in (model, collection, baseline, general)):
            raise ConfigError("--suite names its own models and collections; leave the other options out")
        measure_suite(
            suite, out, explain=explain, overwrite=overwrite, resume=resume, device=device, json=json
        )
        return
    if model is None or collection is None:
        raise ConfigError("evaluate needs --model and --collection, or --suite FILE")
    if out is not None or explain:
        raise ConfigError("-o and --explain are for a suite; name one: --suite FILE")
    check_split(collection, split)
    from sparse_adapt.api.measuring import measure_models
    from sparse_adapt.cli.devices import load_either
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.report.tables import tabulate_evaluation
    from sparse_adapt.retrieve.evaluate import read_collection
    from sparse_adapt.retrieve.keeping import general_collection

    judged = read_collection(collection, split)
    asked = None if general is None else general_collection(general)
    names = [name for name in (model, baseline) if name is not None]
    encoders = [load_either(name, device) for name in names]
    with Bars() as bars:
        content = measure_models(names, encoders, judged, asked, bars)
    if json:
        show_json(content)
    else:
        show_table(tabulate_evaluation(content, f"{model} on {collection}, {split}"))
    if baseline is None and model != BASE:
        parts = [] if split == "test" else ["--split", split]
        then(["evaluate", "--model", model, "--collection", collection, *parts, "--baseline", BASE])
    else:
        then(["explain", judged.queries[0].text, "--model", model, "--corpus", collection])


def measure_suite(
    path: Path, out: Path | None, *, explain: bool, overwrite: bool, resume: bool, device: str, json: bool
) -> None:
    """What `evaluate --suite` does: every row on every collection, in tables, a file for each form, a plot."""
    from sparse_adapt.model.devices import choose
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.suite.measure import run_suite
    from sparse_adapt.suite.settings import read_suite
    from sparse_adapt.suite.tables import suite_object, suite_tables, write_results

    suite = read_suite(path)
    with Bars() as bars:
        outcome = run_suite(
            suite,
            out,
            overwrite=overwrite,
            resume=resume,
            explain=explain,
            device=choose(device),
            watch=bars.count,
            finish=write_results,
        )
    if json:
        show_json(suite_object(outcome))
    else:
        for table in suite_tables(outcome):
            show_table(table)
    again = ["evaluate", "--suite", str(path), "-o", free("suite") if out is None else str(out)]
    if out is None:
        then(again)
        return
    wrote(out, "suite.json, suite.md, suite.png with matplotlib, vectors")
    then([*again, "--overwrite", "--explain"])


def _places(subject: Subject, term: str) -> "Places":
    """Paths for the commands that a report advises; a terms file only where it holds the term."""
    from diagnostics.advice import Places
    from sparse_adapt.collection.sources import bundled

    folder = bundled(subject.corpus)
    held = {name: folder / name for name in ("terms.json", "dictionary.jsonl", "candidates.jsonl")}
    paths = {name: str(path) if path.is_file() else name for name, path in held.items()}
    names_it = held["terms.json"].is_file() and _names(held["terms.json"], term)
    return Places(
        model=subject.model,
        corpus=subject.corpus,
        terms=paths["terms.json"] if names_it else "",
        dictionary=paths["dictionary.jsonl"],
        candidates=paths["candidates.jsonl"],
    )


def _names(path: Path, term: str) -> bool:
    from sparse_adapt.terms.mining import read_terms

    return term.casefold() in (entry.text.casefold() for entry in read_terms(path))


def verify(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="A folder that a command wrote: a model, vectors, an export, an index or a whole run.",
            callback=checked(a_folder),
        ),
    ],
    json: Json = False,
) -> None:
    """Check that a result is as it was written.

    Every file is held against its checksum, weights have to be numbers, and matrices sound.
    """
    from sparse_adapt.api.verifying import verify as look

    found = look(path)
    if json:
        show_json(found._asdict())
    kinds = ", ".join(
        f"{count:,} {kind}" for kind, count in found._asdict().items() if count and kind != "files"
    )
    say(f"{path}: all {found.files:,} files are as they were written{f' ({kinds})' if kinds else ''}")
