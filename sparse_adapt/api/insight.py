"""Why a document matches, and what a model makes of a term: `explain` and `diagnose`."""

from collections.abc import Sequence
from pathlib import Path

from diagnostics.advice import Places
from diagnostics.health import Health, measure_health
from diagnostics.matches import QueryReport
from diagnostics.matches import explain as take_apart
from diagnostics.token import diagnose as report_on
from diagnostics.token_report import TokenReport
from sparse_adapt.api.models import ModelGiven, load_sparse
from sparse_adapt.collection.given import Corpus, DocumentsGiven
from sparse_adapt.collection.sources import file_beside
from sparse_adapt.errors import InputError
from sparse_adapt.report.progress import watching
from sparse_adapt.synthetic.background import head_of
from sparse_adapt.terms.mining import read_terms


def explain(
    model: ModelGiven,
    query: str,
    corpus: DocumentsGiven,
    *,
    top: int = 5,
    expansions: int = 20,
    device: str = "auto",
    progress: bool | None = None,
) -> QueryReport:
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
    return explain_each(
        model, [query], corpus, top=top, expansions=expansions, device=device, progress=progress
    )[0]


def explain_each(
    model: ModelGiven,
    queries: Sequence[str],
    corpus: DocumentsGiven,
    *,
    top: int = 5,
    expansions: int = 20,
    device: str = "auto",
    progress: bool | None = None,
) -> list[QueryReport]:
    """What `explain` says of each of many queries, with the documents encoded once."""
    for query in queries:
        if not query.strip():
            raise InputError("query", "is empty; say what to look for")
    documents = list(Corpus.of(corpus).read())
    held, encoder = load_sparse(model, device)
    with watching(progress) as bars:
        vectors = held.encode_documents(documents, bars.count("documents", len(documents)))
    return [take_apart(query, encoder, documents, top, expansions, vectors=vectors) for query in queries]


def diagnose(
    model: ModelGiven,
    term: str,
    corpus: DocumentsGiven,
    *,
    document_id: str | None = None,
    device: str = "auto",
) -> TokenReport:
    """What a model makes of one term: vocabulary, logits, weight, ranking, and what to do next.

    The report is on the document that says the term most, or on the one with `document_id`. Raises InputError for a
    term that the tokenizer reduces to nothing, and for a document that isn't there.

    >>> import sparse_adapt as sa
    >>> sa.diagnose("splade-tiny", "gatrocraptic", "gatrocraptic", device="cpu").state
    'pieces'
    """
    given = Corpus.of(corpus)
    documents = list(given.read())
    held, encoder = load_sparse(model, device)
    places = _places(held.source, given.place, term)
    return report_on(
        term, encoder, documents, document_id=document_id, places=places, listed=_listed(given.place, term)
    )


def diagnose_model(
    model: ModelGiven,
    corpus: DocumentsGiven,
    *,
    baseline: ModelGiven | None = None,
    device: str = "auto",
    progress: bool | None = None,
) -> Health:
    """The health of a whole model on a corpus: its new tokens, what its vectors cost, how far it moved from a baseline.

    >>> import sparse_adapt as sa
    >>> sa.diagnose_model("splade-tiny", ["a bird sings", "a plane lands"], device="cpu")
    <Health: 0 new tokens; nothing wrong>
    """
    documents = list(Corpus.of(corpus).read())
    held, encoder = load_sparse(model, device)
    before = None if baseline is None else load_sparse(baseline, device)[0]
    with watching(progress) as bars:
        vectors = held.encode_documents(documents, bars.count("documents", len(documents)))
        heard = bars.count("baseline", len(documents)) if before is not None else None
        old = None if before is None or heard is None else before.encode_documents(documents, heard)
    texts = [document.full_text for document in documents]
    return measure_health(encoder, texts, vectors, old, head_of(encoder))


def _places(model: str, corpus: str | None, term: str) -> Places:
    """Paths for the commands that a report advises; a file of terms only where it holds the term."""
    if corpus is None:
        return Places(model)
    names = ("terms.json", "dictionary.jsonl", "candidates.jsonl")
    terms, dictionary, candidates = (file_beside(corpus, name) for name in names)
    if terms is not None and not _holds(terms, term):
        terms = None
    return Places(
        model, corpus, *("" if path is None else str(path) for path in (terms, dictionary, candidates))
    )


def _listed(corpus: str | None, term: str) -> bool | None:
    """Whether the file of terms beside a corpus holds a term; None where there is no such file."""
    terms = None if corpus is None else file_beside(corpus, "terms.json")
    return None if terms is None else _holds(terms, term)


def _holds(path: Path, term: str) -> bool:
    return term.casefold() in (entry.text.casefold() for entry in read_terms(path))
