"""Where a term stands in texts, as the model sees it: by token ids, whatever the case or accents.

A term is one token or several pieces. A sequence of pieces that goes on as a longer word is no occurrence.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import InputError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.printable import is_unicode

UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Spelling:
    """A term as token ids, and whether it is a vocabulary entry that no text spells, such as `##ing`."""

    token_ids: tuple[int, ...]
    entry: bool = False


@dataclass(frozen=True, slots=True)
class Sighting:
    """A document's text as token ids (L), and the positions at which the term starts, if it is there."""

    document: Document
    token_ids: list[int]
    starts: tuple[int, ...]


def spellings(model: SparseEncoder, term: str) -> tuple[Spelling, ...]:
    """The ways in which a text can spell a term: one as a rule, two where a leading space makes a difference.

    Raises InputError for a term that the tokenizer reduces to nothing.
    """
    if not is_unicode(term):
        raise InputError(f"term {term!r}", "isn't Unicode; give it as UTF-8")
    texts = (f" {term}", term)
    ways = [tuple(ids) for ids in model.tokenizer(texts, add_special_tokens=False)["input_ids"]]
    if not all(ways):
        raise InputError(f"term {term!r}", "the tokenizer reduces it to nothing; give a word or a token")
    entry = model.tokenizer.get_vocab().get(term)
    if entry is not None and all(len(way) > 1 for way in ways):
        return (Spelling((entry,), entry=True),)
    return tuple(Spelling(way) for way in dict.fromkeys(ways))


def sight(model: SparseEncoder, term: str, documents: Sequence[Document]) -> tuple[Spelling, list[Sighting]]:
    """The spelling that most documents use, and every document with where it stands in it."""
    tokenized = model.tokenize([document.full_text for document in documents])
    best: tuple[int, Spelling, list[Sighting]] | None = None
    for spelling in spellings(model, term):
        sightings = [
            sight_one(model, spelling, document, token_ids)
            for document, token_ids in zip(documents, tokenized, strict=True)
        ]
        holding = sum(1 for sighting in sightings if sighting.starts)
        if best is None or holding > best[0]:
            best = holding, spelling, sightings
    assert best is not None, term
    return best[1:]


def sight_one(
    model: SparseEncoder, spelling: Spelling, document: Document, token_ids: list[int] | None = None
) -> Sighting:
    """Where one spelling stands in one document; `token_ids` are the document's, if they are known."""
    if token_ids is None:
        token_ids = model.tokenize([document.full_text])[0]
    return Sighting(document, token_ids, _starts(model, spelling, document.full_text, token_ids))


def _starts(model: SparseEncoder, spelling: Spelling, text: str, token_ids: list[int]) -> tuple[int, ...]:
    wanted = list(spelling.token_ids)
    starts = [
        start
        for start, token_id in enumerate(token_ids)
        if token_id == wanted[0] and token_ids[start : start + len(wanted)] == wanted
    ]
    if not starts or spelling.entry:
        return tuple(starts)
    offsets = model.tokenizer(
        text, truncation=True, max_length=model.max_tokens, return_offsets_mapping=True
    )["offset_mapping"]
    spans = [(offsets[start][0], offsets[start + len(wanted) - 1][1]) for start in starts]
    return tuple(
        start
        for start, (first, last) in zip(starts, spans, strict=True)
        if not (_inside_word(text, first) or _inside_word(text, last))
    )


def _inside_word(text: str, at: int) -> bool:
    """Whether the characters before and at a place belong to one word, in scripts that put spaces between."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    return before.isalnum() and after.isalnum() and not UNSPACED.search(before + after)
