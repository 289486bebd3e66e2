"""Terms as a caller gives them: a file, or words in memory."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sparse_adapt.collection.sources import bundled
from sparse_adapt.errors import InputError
from sparse_adapt.report.printable import is_unicode
from sparse_adapt.terms.mining import Term, category_of, read_terms

TermsGiven = str | Path | Iterable[str | Term | Mapping[str, Any]] | Mapping[str, Iterable[str]]


def terms_of(given: TermsGiven) -> list[Term]:
    """Terms from a `terms.json` (a folder with one, a bundled name), a list of words, or lists of words by category.

    Raises InputError for a word that is empty or comes twice, and for a string that is no file.
    """
    if isinstance(given, str | Path):
        if isinstance(given, str) and not bundled(given).exists():
            raise InputError(given, f"no such file; terms themselves come in a list: [{given!r}]")
        return read_terms(given)
    items = given if not isinstance(given, Mapping) else _by_category(given)
    terms: dict[str, Term] = {}
    for number, item in enumerate(items, start=1):
        term = _term(number, item)
        if term.text in terms:
            raise InputError("terms", f"duplicate term {term.text!r}; remove one of them", line=number)
        terms[term.text] = term
    return list(terms.values())


def _by_category(given: Mapping[str, Iterable[str]]) -> Iterable[Term]:
    for category, texts in given.items():
        if isinstance(texts, str):
            raise InputError("terms", f"needs a list of terms under {category!r} (found: {texts!r})")
        yield from (Term(text, category) for text in texts)


def _term(number: int, item: object) -> Term:
    text = item.text if isinstance(item, Term) else item.get("term") if isinstance(item, Mapping) else item
    if not isinstance(text, str):
        raise InputError("terms", f"needs strings (found: {type(text).__name__})", line=number)
    if not is_unicode(text):
        raise InputError("terms", f"needs Unicode (found: {text!r})", line=number)
    if not text.strip():
        raise InputError("terms", "holds an empty term; remove it", line=number)
    if isinstance(item, Term):
        return item
    category = item.get("category") if isinstance(item, Mapping) else None
    return Term(text, category or category_of(text.strip()))
