"""The words that deserve a token of their own: read from `terms.json`, mined from a corpus, or given in memory.

`terms.json` maps categories to lists of terms. What mining writes holds the evidence beside them, under the
key `evidence`, which a person may leave alone, edit or delete:

    {
      "acronyms": [
        "OAuth2"
      ],
      "jargon": [
        "gatrocraptic"
      ],
      "evidence": {
        "OAuth2": {"gain": 10.3, "pieces": ["o", "##au", "##th", "##2"], "occurrences": 3, ...},
        "gatrocraptic": {"gain": 124.9, ...}
      }
    }

Terms come in the order of the file. Evidence of a term that was deleted from the lists is passed over, and a
term that was added by hand has none.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sparse_adapt.collection.columns import OF_GLOSSARIES, Layout
from sparse_adapt.collection.lines import read_lines, read_words
from sparse_adapt.collection.opening import Location, bare
from sparse_adapt.collection.readers import Document
from sparse_adapt.collection.sheets import is_table
from sparse_adapt.collection.sources import bundled, file_of
from sparse_adapt.collection.streams import Unique, at_least_one
from sparse_adapt.collection.tables import read_sheet
from sparse_adapt.errors import InputError
from sparse_adapt.files.folders import write_text
from sparse_adapt.files.records import JsonObject
from sparse_adapt.report.printable import is_unicode
from sparse_adapt.terms.evidence import TermEvidence, weigh_words
from sparse_adapt.terms.words import SPACE_MARK, VisibleText, Words

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

TERM_FILES = ("terms.json",)
IN_TABLES = Layout(
    {"term": OF_GLOSSARIES["term"], "category": ("category", "kind", "type", "kategorie")},
    ("term",),
    {1: ("term",)},
)
EVIDENCE = "evidence"
CRITERION = "terms save more nats over the corpus than their tokens cost (gain above 0)"
SHARE = 0.25
FEW = 100  # so many terms cost too little to count
CAMEL_CASE = re.compile(r"[^\W\d_A-Z][A-Z]")


TermsLike = str | Path | Iterable["str | Term | Mapping[str, object]"] | Mapping[str, Iterable[str]]


@dataclass(frozen=True, slots=True)
class Term:
    """A surface string, the category it was filed under, and the evidence for it if it was mined."""

    text: str
    category: str
    evidence: TermEvidence | None = None


def mine_terms(
    documents: Iterable[Document], tokenizer: "PreTrainedTokenizerFast", top: int | None = None
) -> list[Term]:
    """The words of a corpus that deserve a token of their own, best first, each with its evidence.

    Without `top`, those that meet `CRITERION`; with it, the best `top` whether they meet it or not. Words
    that are one token already, inflections of one, and compounds of ordinary words are never among them.
    The documents are read once.
    """
    words = Words(_normaliser(tokenizer), VisibleText(tokenizer))
    for document in documents:
        words.add(document.full_text)
    weighed = sorted(weigh_words(words, tokenizer), key=lambda pair: (-pair[1].gain, pair[0].key))
    chosen = weighed[:top] if top is not None else [pair for pair in weighed if pair[1].gain > 0]
    return [Term(word.surfaces[0], category_of(word.surfaces[0]), evidence) for word, evidence in chosen]


def paying(terms: Sequence[Term], share: float = SHARE, few: int = FEW) -> tuple[list[Term], str]:
    """The terms before the first whose gain is below `share` of the mean gain of those before it, best first.

    Most of thousands of mined terms save next to nothing, and each costs rows that have to be taught, memory, and
    old pieces to match by. Gains fall off smoothly, so a threshold in nats would mean another thing for every corpus;
    a share of the mean gain doesn't. The first `few` stay in any case. The sentence says where it stopped.
    """
    total = 0.0
    for number, term in enumerate(terms):
        gain = term.evidence.gain if term.evidence is not None else 0.0
        if number >= few and gain < share * total / number:
            reason = f"the next would save less than {share:.0%} of what each of these saves on average"
            return list(terms[:number]), f"{number:,} of {len(terms):,} words that save anything; {reason}"
        total += gain
    if not terms:
        return [], "no word that deserves a token; the vocabulary stays as it is"
    return list(terms), f"all {len(terms):,} words that save anything"


def category_of(surface: str) -> str:
    """Which kind of word this is by its looks: acronyms, identifiers, hyphenated or jargon."""
    capitals, digits = sum(map(str.isupper, surface)), sum(map(str.isdigit, surface))
    if "_" in surface or "." in surface or surface[-1] in "+#":
        return "identifiers"
    if "-" in surface:
        return "hyphenated"
    if capitals > 1 and 2 * (capitals + digits) >= len(surface):
        return "acronyms"
    if digits or CAMEL_CASE.search(surface):
        return "identifiers"
    return "jargon"


def _normaliser(tokenizer: "PreTrainedTokenizerFast") -> Callable[[str], str]:
    """A word as the tokenizer sees it; nothing where it drops the word or breaks it in two."""
    normalizer = tokenizer.backend_tokenizer.normalizer

    def normalise(word: str) -> str:
        if normalizer is None:
            return word
        key = str(normalizer.normalize_str(word)).replace(SPACE_MARK, " ").strip()
        return "" if " " in key else key

    return normalise


def read_terms(source: str | Path) -> list[Term]:
    """The terms of `terms.json`, of a folder that holds one, or of a bundled corpus; of a JSON list, a text file with a
    term a line, or a table with a column of terms and perhaps one of categories.

    Raises InputError, with the line where it can be told, for whatever is wrong, a term that occurs twice
    included.
    """
    path = file_of(source, TERM_FILES)
    if is_table(path) or bare(path.name.lower()).endswith(".txt"):
        return _listed(path)
    lines = [text for _, text in read_lines(path)]
    content = _parse(path, "\n".join(lines))
    evidence = content.pop(EVIDENCE) if isinstance(content.get(EVIDENCE), dict) else {}
    terms: dict[str, Term] = {}
    for category, entries in content.items():
        for text in _checked(entries, category, path, lines):
            if text in terms:
                raise _duplicate(text, path, lines)
            terms[text] = Term(text, category, _evidence(evidence.get(text), text, path, lines))
    if not terms:
        raise InputError(path, 'holds no terms; it maps categories to lists, such as {"jargon": ["kubectl"]}')
    return list(terms.values())


def _listed(path: Location) -> list[Term]:
    """The terms of a table, or of a text file with one a line."""
    unique, terms = Unique(path, "term"), list[Term]()
    records = read_sheet(path, IN_TABLES) if is_table(path) else read_words(path)
    for record in at_least_one(records, path, "terms"):
        text = record.words("term" if is_table(path) else "text").strip()
        unique.add(text, record.line)
        terms.append(Term(text, record.string("category", default="") or category_of(text)))
    return terms


def terms_of(source: TermsLike) -> list[Term]:
    """Terms from a `terms.json` (a folder with one, a bundled name), a list of words, or lists of words by category.

    Raises InputError for a word that is empty or comes twice, and for a string that is no file.
    """
    if isinstance(source, str | Path):
        if isinstance(source, str) and not bundled(source).exists():
            raise InputError(source, f"no such file; terms themselves come in a list: [{source!r}]")
        return read_terms(source)
    if not isinstance(source, Iterable):
        raise InputError(
            "terms", f"can't be read from {type(source).__name__}; give a path or a list of words"
        )
    items = source if not isinstance(source, Mapping) else _by_category(source)
    terms: dict[str, Term] = {}
    for number, item in enumerate(items, start=1):
        term = _term(number, item)
        if term.text in terms:
            raise InputError("terms", f"duplicate term {term.text!r}; remove one of them", line=number)
        terms[term.text] = term
    return list(terms.values())


def write_terms(path: str | Path, terms: Iterable[Term]) -> None:
    """Write `terms.json`, a term a line, in the order given within each category."""
    groups: dict[str, list[Term]] = {}
    for term in terms:
        groups.setdefault(term.category, []).append(term)
    blocks = [
        f"  {_json(category)}: [\n" + ",\n".join(f"    {_json(term.text)}" for term in group) + "\n  ]"
        for category, group in groups.items()
    ]
    rows = [
        f"    {_json(term.text)}: {_json(asdict(term.evidence))}"
        for group in groups.values()
        for term in group
        if term.evidence is not None
    ]
    if rows:
        blocks.append(f"  {_json(EVIDENCE)}: {{\n" + ",\n".join(rows) + "\n  }")
    write_text(path, "{\n" + ",\n".join(blocks) + "\n}\n")


def _by_category(categories: Mapping[str, Iterable[str]]) -> Iterable[Term]:
    for category, texts in categories.items():
        if isinstance(texts, str) or not isinstance(texts, Iterable):
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


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _parse(path: Location, text: str) -> JsonObject:
    if not text.strip():
        raise InputError(path, 'is empty; it maps categories to lists, such as {"jargon": ["kubectl"]}')
    try:
        content = json.loads(
            text, object_pairs_hook=lambda pairs: _object(pairs, path), parse_constant=_refuse
        )
    except json.JSONDecodeError as error:
        problem = f"broken JSON ({error.msg}, column {error.colno}); mend it or write it again with `terms`"
        raise InputError(path, problem, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"broken JSON ({error}); mend it or write it again with `terms`") from error
    if isinstance(content, list):
        by_category: dict[str, list[object]] = {}
        for each in content:
            by_category.setdefault(
                category_of(each) if isinstance(each, str) and each else "jargon", []
            ).append(each)
        return dict(by_category)
    if not isinstance(content, dict):
        raise InputError(
            path, 'not an object; it maps categories to lists, such as {"jargon": ["kubectl"]}', line=1
        )
    return content


def _object(pairs: list[tuple[str, object]], path: Location) -> JsonObject:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        double = next(key for key in keys if keys.count(key) > 1)
        raise InputError(path, f'holds the key "{double}" twice; join the two')
    return content


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def _checked(entries: object, category: str, path: Location, lines: list[str]) -> list[str]:
    """The terms of one category, each a string with something in it."""

    def wrong(problem: str, value: object) -> InputError:
        return InputError(path, problem, line=next(iter(_lines_with(value, lines)), None))

    if not isinstance(entries, list):
        kind = type(entries).__name__.replace("dict", "object").replace("str", "string")
        raise wrong(f'needs a list of terms under "{category}" (found: {kind})', category)
    for entry in entries:
        if not isinstance(entry, str):
            raise wrong(f'needs strings under "{category}" (found: {_json(entry)[:40]})', entry)
        if not is_unicode(entry):
            half = "half of a surrogate pair (\\ud800 to \\udfff alone)"
            raise InputError(path, f'holds {half} under "{category}"; remove it')
        if not entry.strip():
            raise wrong(f'holds an empty term under "{category}"; remove it', entry)
    return entries


def _duplicate(text: str, path: Location, lines: list[str]) -> InputError:
    first, *others = _lines_with(text, lines) or [1]
    where = f" (first on line {first})" if others else ""
    problem = f'duplicate term "{text}"{where}; remove one of them'
    return InputError(path, problem, line=others[0] if others else first)


def _lines_with(value: object, lines: list[str]) -> list[int]:
    """Numbers of the lines before the evidence that hold a value, one for each time."""
    wanted, marker = _json(value), f'"{EVIDENCE}": {{'
    end = next((number for number, text in enumerate(lines) if marker in text), len(lines))
    return [
        number for number, text in enumerate(lines[:end] or lines, start=1) for _ in range(text.count(wanted))
    ]


def _evidence(fields: object, text: str, path: Location, lines: list[str]) -> TermEvidence | None:
    """Evidence as mining wrote it; a person who edits it must leave numbers numbers."""
    if fields is None:
        return None
    try:
        if not isinstance(fields, dict):
            raise TypeError(fields)
        return TermEvidence(
            gain=float(fields["gain"]),
            pieces=tuple(map(str, fields["pieces"])),
            occurrences=int(fields["occurrences"]),
            documents=int(fields["documents"]),
            zipf=float(fields["zipf"]),
            log_odds=float(fields["log_odds"]),
            variants=tuple(map(str, fields.get("variants", ()))),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        line = next((number for number, row in enumerate(lines, start=1) if f"{_json(text)}:" in row), None)
        problem = f'the evidence of "{text}" is not as `terms` writes it; mend or delete it'
        raise InputError(path, problem, line=line) from error
