"""The page of a run, put together and written."""

from contextlib import nullcontext
from pathlib import Path

from sparse_adapt.errors import SparseAdaptError
from sparse_adapt.files.marker import marker_of, vouching
from sparse_adapt.files.writing import write_text
from sparse_adapt.model.layout import is_dense
from sparse_adapt.pages.back import back_section
from sparse_adapt.pages.provenance import provenance_section
from sparse_adapt.pages.queries import queries_section
from sparse_adapt.pages.stages import stages_section
from sparse_adapt.pages.subject import Subject, read_subject
from sparse_adapt.pages.terms import find_terms, terms_section
from sparse_adapt.pages.verdict import verdict_section
from sparse_adapt.pages.words import words_section
from sparse_adapt.pipeline.run import read_finished
from sparse_adapt.report.html import written
from sparse_adapt.report.messages import say
from sparse_adapt.report.sections import Page
from sparse_adapt.report.watching import Heard, silent

PAGE_FILE = "report.html"
PARTS = 6  # that whoever waits hears of, with the reading of the run


def run_page(subject: Subject, heard: Heard = silent) -> Page:
    """The page of a run: the verdict first."""
    verdict = verdict_section(subject)
    heard(1)
    stages = stages_section(subject)
    heard(1)
    findings = find_terms(subject)
    terms = terms_section(subject, findings)
    heard(1)
    queries = queries_section(subject)
    heard(1)
    provenance = provenance_section(subject, findings)
    heard(1)
    corpus, base = Path(str(subject.report["corpus"])).name, Path(str(subject.report["model"])).name
    terms_told = "1 new term" if len(findings) == 1 else f"{len(findings):,} new terms"
    lead = f"{base}, adapted to {corpus}: {terms_told}."
    if len(subject.documents) < subject.all_documents:
        lead += f" This page looks at {len(subject.documents):,} of {subject.all_documents:,} documents."
    sections = [verdict, stages, terms, queries, provenance, back_section(subject), words_section()]
    return Page(
        f"What adapting to {corpus} brought", sections, lead, f"Written {subject.report.get('written', '')}."
    )


def write_run_page(
    folder: str | Path, out: str | Path | None = None, queries: str | None = None, heard: Heard = silent
) -> Path:
    """Write the page of a run, by default as `report.html` in its folder. Raises what `read_subject` raises."""
    place = Path(folder) / PAGE_FILE if out is None else Path(out)
    subject = read_subject(folder, queries, heard)
    text = written(run_page(subject, heard))
    with vouching(Path(folder)) if out is None and marker_of(Path(folder)) is not None else nullcontext():
        write_text(place, text)
    return place


def try_run_page(folder: Path, heard: Heard = silent) -> Path | None:
    """The same at the end of a run: what keeps the page from being written is said, and the run stays whole.

    None for a run of dense models, which have no weights to show.
    """
    if is_dense(read_finished(folder).model):
        return None
    try:
        return write_run_page(folder, heard=heard)
    except SparseAdaptError as error:
        say(f"no {PAGE_FILE}: {error}")
        return None
