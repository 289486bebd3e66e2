"""The page of a run, put together and written."""

from contextlib import nullcontext
from pathlib import Path

from sparse_adapt.errors import SparseAdaptError
from sparse_adapt.files.marker import marker_of, vouching
from sparse_adapt.files.writing import write_text
from sparse_adapt.model.layout import is_dense
from sparse_adapt.pipeline.run import read_finished
from sparse_adapt.plugins.pages.html import written
from sparse_adapt.plugins.pages.queries import queries_section
from sparse_adapt.plugins.pages.reproduction import reproduction_section
from sparse_adapt.plugins.pages.stages import stages_section
from sparse_adapt.plugins.pages.subject import RunSubject, read_subject
from sparse_adapt.plugins.pages.terms import find_terms, provenance_section, terms_section
from sparse_adapt.plugins.pages.verdict import verdict_section
from sparse_adapt.report.messages import say
from sparse_adapt.report.progress import ProgressFor, no_progress_for
from sparse_adapt.report.sections import Facts, Section, WebPage

PAGE_FILE = "report.html"
EXACT_WORD = (
    "exact word",
    "a word of a text as it is written, but for its ending; = stands before it, and it counts as BM25 counts it",
)
WORDS = (
    ("token", "an entry of the model's vocabulary; a text is read as tokens"),
    ("weight", "how much a token counts in the vector of a text; 0 for most tokens"),
    (
        "score",
        "how well a document matches a query: the sum of query weight x document weight over shared tokens",
    ),
    ("expansion", "a token with weight in a text that doesn't say it"),
    ("background query", "words of general English, drawn as often as people use them; it means no document"),
)
OF_TERMS = (
    ("term", "a word of the domain that was given a token of its own; before, it was read as several pieces"),
    ("to activate a term", "to give it weight: texts that say the term should, and queries that mean it"),
    ("semantic query", "a query that means a term without saying it"),
    ("explicit query", "a query that says a term"),
    ("control query", "a query about other things, which should lose nothing"),
    (
        "false activation",
        "a background query, or another one that doesn't mean a term, that activates it all the same",
    ),
)
OF_MEASURES = (
    (
        "nDCG@10",
        "how good the first ten documents are: 1 for the best order, 0 where nothing relevant is among them",
    ),
    ("95 % interval", "where the true difference lies in 95 of 100 cases; one that holds 0 may be chance"),
)


def run_page(subject: RunSubject) -> WebPage:
    """The page of a run: the verdict first. Parts about terms stand there where the run added some."""
    findings, words = find_terms(subject), subject.final.model.words
    corpus, base = Path(str(subject.report["corpus"])).name, Path(str(subject.report["model"])).name
    of_terms = "1 new term" if len(findings) == 1 else f"{len(findings):,} new terms"
    brought = ([] if words is None else ["exact words"]) + ([of_terms] if findings else [])
    lead = f"{base}, adapted to {corpus}: {' and '.join(brought) or 'no new terms'}."
    if len(subject.documents) < subject.all_documents:
        lead += f" This page looks at {len(subject.documents):,} of {subject.all_documents:,} documents."
    explained = [
        *WORDS,
        *([] if words is None else [EXACT_WORD]),
        *(OF_TERMS if findings else ()),
        *OF_MEASURES,
    ]
    sections = [
        verdict_section(subject),
        stages_section(subject),
        *([terms_section(subject, findings)] if findings else []),
        queries_section(subject),
        *([provenance_section(subject, findings)] if findings else []),
        reproduction_section(subject),
        Section("words", "Words of this page", [Facts(explained)]),
    ]
    return WebPage(f"What adapting to {corpus} brought", sections, lead)


def write_run_page(
    folder: str | Path,
    out: str | Path | None = None,
    queries: str | None = None,
    progress_for: ProgressFor = no_progress_for,
) -> Path:
    """Write the page of a run, by default as `report.html` in its folder. Raises what `read_subject` raises."""
    place = Path(folder) / PAGE_FILE if out is None else Path(out)
    text = written(run_page(read_subject(folder, queries, progress_for)))
    with vouching(Path(folder)) if out is None and marker_of(Path(folder)) is not None else nullcontext():
        write_text(place, text)
    return place


def try_run_page(folder: Path, progress_for: ProgressFor = no_progress_for) -> Path | None:
    """The same at the end of a run: what keeps the page from being written is said, and the run stays whole.

    None for a run of dense models, which have no weights to show.
    """
    if is_dense(read_finished(folder).model):
        return None
    try:
        return write_run_page(folder, progress_for=progress_for)
    except SparseAdaptError as error:
        say(f"no {PAGE_FILE}: {error}")
        return None
