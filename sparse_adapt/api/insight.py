"""Why a document matches, and what a model makes of a term: `explain` and `diagnose`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sparse_adapt.api.checks import a_file_or_folder, some_words
from sparse_adapt.api.following import line
from sparse_adapt.api.options import (
    MODEL_HELP,
    Columns,
    Documents,
    Html,
    LatestCorpus,
    LatestModel,
    Model,
    OnCpu,
    Option,
    Reads,
    SomeModel,
    Words,
    declared,
    model_option,
)
from sparse_adapt.api.runs import Subject, subject_of
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.files.place import free
from sparse_adapt.report.progress import progress_bars
from sparse_adapt.report.results import Result, Shown

if TYPE_CHECKING:
    from diagnostics.advice import Places
    from diagnostics.glossary import InGlossary
    from diagnostics.health import Health
    from diagnostics.matches import QueryReport
    from diagnostics.token_report import TokenReport
    from sparse_adapt.api.models import ModelLike
    from sparse_adapt.collection.arguments import DocumentsLike
    from sparse_adapt.collection.readers import Query
    from sparse_adapt.model.sparse import SparseEncoder

Top = Annotated[int, Option("Documents to show.", ge=1)]


@declared
def explain(
    model: Model,
    query: Words,
    corpus: Documents,
    *,
    top: Top = 5,
    expansions: int = 20,
    device: str = "auto",
    progress: bool | None = None,
    **reading: Reads,
) -> "QueryReport":
    """A query's tokens, its `top` best documents, and the shared tokens whose contributions sum to each score.

    `.tokens` holds the query's tokens with their weights, at most `expansions` of those that its text doesn't hold;
    `.matches` the documents. Raises InputError for an empty query and for documents that can't be read.

    >>> import sparse_adapt as sa
    >>> found = sa.explain("splade-tiny", "saving money", ["we cut what we spend", "a bird sings"], device="cpu")
    >>> found.matches[0].document_id
    '1'
    >>> found.tokens[0].token, found.tokens[0].expansion
    ('money', False)
    """
    from sparse_adapt.collection.readers import Query

    (report,) = explain_each(
        model,
        [Query("", query)],
        corpus,
        top=top,
        expansions=expansions,
        device=device,
        progress=progress,
        **reading,
    )
    return report


def explain_each(
    model: "ModelLike",
    queries: "Sequence[Query]",
    corpus: "DocumentsLike",
    *,
    top: int = 5,
    expansions: int = 20,
    device: str = "auto",
    progress: bool | None = None,
    **reading: int | None,
) -> "list[QueryReport]":
    """What `explain` says of each of many queries, under its id, with the documents encoded once."""
    from diagnostics.matches import explain as take_apart
    from sparse_adapt.api.models import encoded_documents, load_sparse
    from sparse_adapt.collection.arguments import Corpus

    for query in queries:
        if not query.text.strip():
            raise InputError("query", "is empty; say what to look for")
    documents = list(Corpus.of(corpus).read())
    sparse_model, encoder = load_sparse(model, device, **reading)
    with progress_bars(progress) as bars:
        vectors = encoded_documents(sparse_model, documents, bars.count("documents", len(documents)))
    reports = (
        take_apart(each.text, encoder, documents, top, expansions, vectors=vectors) for each in queries
    )
    return [
        replace(report, query_id=each.query_id or None) for each, report in zip(queries, reports, strict=True)
    ]


@declared
def diagnose(
    model: Model,
    term: Annotated[str, Option("A word or a token.", metavar="TERM", place=True)],
    corpus: Documents,
    *,
    document_id: str | None = None,
    device: str = "auto",
    **reading: Reads,
) -> "TokenReport":
    """What a model makes of one term: vocabulary, logits, weight, ranking, and what to do next.

    The report is on the document that says the term most, or on the one with `document_id`. Raises InputError for a
    term that the tokenizer reduces to nothing, and for a document that isn't there.

    >>> import sparse_adapt as sa
    >>> sa.diagnose("splade-tiny", "gatrocraptic", "gatrocraptic", device="cpu").state
    'pieces'
    """
    from diagnostics.token import diagnose as report_on
    from sparse_adapt.api.models import load_sparse
    from sparse_adapt.collection.arguments import Corpus

    source = Corpus.of(corpus)
    documents = list(source.read())
    sparse_model, encoder = load_sparse(model, device, **reading)
    places = _places(sparse_model.source, source.place, term)
    listed, category = _listed(source.place, term)
    report = report_on(
        term,
        encoder,
        documents,
        document_id=document_id,
        places=places,
        listed=listed,
        category=category,
    )
    return replace(report, glossary=_in_glossary(sparse_model.source, term, encoder, device))


def _in_glossary(source: str, term: str, encoder: "SparseEncoder", device: str) -> "InGlossary | None":
    """What the glossary says of a term that the run behind a model was given; None where there is no such run."""
    from diagnostics.glossary import in_glossary
    from sparse_adapt.stages.record import extended_from, read_stage_record
    from sparse_adapt.terms.uses import ENTRIES_FILE, read_uses

    entries, record = Path(source).parent / ENTRIES_FILE, read_stage_record(source)
    if record is None or not entries.is_file():
        return None
    from sparse_adapt.api.models import load_sparse

    base = extended_from(source) or str(record["model"]["path"])
    return in_glossary(term, read_uses(entries), load_sparse(base, device)[1], encoder)


@declared
def diagnose_model(
    model: Model,
    corpus: Documents,
    *,
    baseline: SomeModel = None,
    device: str = "auto",
    progress: bool | None = None,
    **reading: Reads,
) -> "Health":
    """The health of a whole model on a corpus: its new tokens, what its vectors cost, how far it moved from a baseline.

    >>> import sparse_adapt as sa
    >>> sa.diagnose_model("splade-tiny", ["a bird sings", "a plane lands"], device="cpu")
    <Health: 0 new tokens; nothing wrong>
    """
    from diagnostics.health import measure_health
    from sparse_adapt.api.models import encoded_documents, load_sparse
    from sparse_adapt.collection.arguments import Corpus
    from sparse_adapt.synthetic.background import head_of

    documents = list(Corpus.of(corpus).read())
    sparse_model, encoder = load_sparse(model, device, **reading)
    before = None if baseline is None else load_sparse(baseline, device, **reading)[0]
    with progress_bars(progress) as bars:
        vectors = encoded_documents(sparse_model, documents, bars.count("documents", len(documents)))
        advance = bars.count("baseline", len(documents)) if before is not None else None
        old = None if before is None or advance is None else encoded_documents(before, documents, advance)
    texts = [document.full_text for document in documents]
    return measure_health(encoder, texts, vectors, old, head_of(encoder))


def _places(model: str, corpus: str | None, term: str) -> "Places":
    """Paths for the commands that a report advises; a file of terms only where it holds the term."""
    from diagnostics.advice import Places
    from sparse_adapt.collection.sources import file_beside

    if corpus is None:
        return Places(model)
    names = ("terms.json", "dictionary.jsonl", "candidates.jsonl")
    terms, dictionary, candidates = (file_beside(corpus, name) for name in names)
    if terms is not None and _listed(corpus, term)[0] is False:
        terms = None
    return Places(
        model, corpus, *("" if path is None else str(path) for path in (terms, dictionary, candidates))
    )


def _listed(corpus: str | None, term: str) -> tuple[bool | None, str]:
    """Whether the file of terms beside a corpus holds a term, and under which category; None without such a file."""
    from sparse_adapt.collection.sources import file_beside
    from sparse_adapt.terms.mining import read_terms

    terms = None if corpus is None else file_beside(corpus, "terms.json")
    if terms is None:
        return None, ""
    held = next((entry for entry in read_terms(terms) if entry.text.casefold() == term.casefold()), None)
    return held is not None, "" if held is None else held.category


# -- as commands show it ----------------------------------------------------------------------------


def _inspected(
    subject: Subject,
    found: Sequence[Shown],
    words: str = "",
    then: Sequence[str] = (),
    lead: str = "",
) -> Result:
    """Findings about a model on a corpus, one below the other; `words` are those of the request, empty for several."""
    named = f"model {subject.model}, corpus {subject.corpus}"
    plain = [each.to_dict() for each in found]
    return Result(
        named,
        {"model": subject.model, "collection": subject.corpus, **(plain[0] if words else {"queries": plain})},
        [part for each in found for part in each.sections()],
        then=then if subject.adapted else [line("demo")],
        rows=[row for each in found for row in each.rows()],
        notes=[named if words else f"{named}, {len(found):,} queries"],
        heading=words,
        lead=lead,
    )


@declared
def diagnose_either(
    term: Annotated[
        str | None,
        Option("A word or a token; without one, the whole model is looked at.", metavar="TERM", place=True),
    ] = None,
    model: LatestModel = None,
    corpus: LatestCorpus = None,
    *,
    document: Annotated[
        str | None,
        Option("Look at this document.", metavar="ID", shown="the one that says the term most"),
    ] = None,
    baseline: Annotated[
        "ModelLike | None", model_option(f"Without TERM: the model to compare with. {MODEL_HELP}")
    ] = None,
    html: Html = None,
    device: OnCpu = "cpu",
    progress: bool | None = None,
    **reading: Reads,
) -> Result:
    """Show what a model makes of one term, or of all its new tokens.

    Of a term: vocabulary, logits, weight and ranking, for the document that says it most. Of a model: its new tokens,
    which activate where nobody says them, what its vectors cost, and how far it moved from a baseline.
    """
    if term is None and html is not None:
        raise ConfigError("--html is for a term; name one")
    subject = _subject(model, corpus)
    if term is None:
        health = diagnose_model(
            subject.model, subject.corpus, baseline=baseline, device=device, progress=progress, **reading
        )
        tokens = health.usage.tokens
        steps = [line("diagnose", tokens[0].token, *subject.flags)] if tokens else []
        return _inspected(subject._replace(adapted=True), [health], "the model", steps)
    report = diagnose(subject.model, term, subject.corpus, document_id=document, device=device, **reading)
    lead = f"What {last_name(subject.model)} makes of it, on {last_name(subject.corpus)}."
    return _inspected(subject, [report], term, (), lead)


@declared
def look_for(
    query: Annotated[
        str | None, Option("What to look for, in words.", metavar="QUERY", place=True, check=some_words)
    ] = None,
    model: LatestModel = None,
    corpus: LatestCorpus = None,
    *,
    top: Top = 5,
    queries: Annotated[
        str | Path | None,
        Option(
            "Explain each query of this file instead: any file of queries, or a text with one a line.",
            metavar="FILE",
            check=a_file_or_folder,
        ),
    ] = None,
    columns: Columns = (),
    html: Html = None,
    device: OnCpu = "cpu",
    progress: bool | None = None,
    **reading: Reads,
) -> Result:
    """Show why documents match a query, token by token.

    The query's tokens, its top documents with their heaviest tokens, and the shared tokens that made them match.
    """
    if (query is None) == (queries is None):
        raise ConfigError("explain needs a QUERY, or a file of them: --queries FILE")
    if query is None and html is not None:
        raise ConfigError("--html is for one query; name it")
    subject = _subject(model, corpus)
    from sparse_adapt.collection.arguments import queries_of, with_columns
    from sparse_adapt.collection.readers import Query

    chosen_queries = [Query("", query or "")] if queries is None else queries_of(queries, columns)
    how: Any = {"device": device, "progress": progress, **reading}
    corpus = with_columns(subject.corpus, columns)
    reports = explain_each(subject.model, chosen_queries, corpus, top=top, **how)
    lead = f"What {last_name(subject.model)} finds for it in {last_name(subject.corpus)}."
    steps = [line("export", "anserini", *subject.flags, "-o", free("export"))]
    return _inspected(subject, reports, query or "", steps, lead)


def _subject(model: "ModelLike | None", corpus: "DocumentsLike | None") -> Subject:
    return subject_of(None if model is None else str(model), None if corpus is None else str(corpus))


def last_name(place: str) -> str:
    """A place by its last name: a page tells no folders of the machine that it was made on."""
    return Path(place).name or place
