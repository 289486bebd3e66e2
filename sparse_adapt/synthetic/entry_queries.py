"""Queries that a glossary makes: what it calls a thing, the acronym, and the definition without the name.

The teacher reads all forms of the thing, or its name with the definition, so that a model which learns from its scores
finds by any of them what only the others say: documents of the long form by the acronym, of the name by the definition.
"""

import re
from collections.abc import Iterator, Sequence

from sparse_adapt.synthetic.queries import HELD, TRAIN, SyntheticQuery
from sparse_adapt.terms.entries import Entry
from sparse_adapt.terms.uses import Use

TERM, ACRONYM, DEFINITION = "term", "acronym", "definition"
MOST_HELD, HELD_ONE_IN = 60, 8  # entries whose queries are set aside: at most, and of how many one
QUERIES_AN_ENTRY = 2  # about
LONGEST = 32  # words of a definition in a query
SENSES = 3  # of one entry that get queries
MOST_OF_ENTRY = SENSES + 2  # queries
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def entry_queries(uses: Sequence[Use], most: int) -> list[SyntheticQuery]:
    """The queries of all entries, `most` of them to learn from.

    Those of some entries are set aside, none of which gets a token. Each entry has one query before any has a second.
    """
    useful = [use for use in uses if use.makes_queries]
    able = [use for use in useful if not use.token]
    step = max(HELD_ONE_IN, -(-len(able) // MOST_HELD))
    set_aside = {id(use) for use in able[::step]}
    seen, queries = set[str](), list[SyntheticQuery]()
    for turn in range(MOST_OF_ENTRY):
        for number, use in enumerate(useful):
            own = list(_of_entry(use.entry))
            if turn < len(own):
                query = own[(turn + number) % len(own)]._replace(
                    split=HELD if id(use) in set_aside else TRAIN
                )
                if query.text.casefold() not in seen:
                    seen.add(query.text.casefold())
                    queries.append(query)
    learnt = [query for query in queries if query.split == TRAIN][:most]
    chosen = [*learnt, *(query for query in queries if query.split == HELD)]
    return [query._replace(query_id=f"{query.kind}-{number}") for number, query in enumerate(chosen, start=1)]


def _of_entry(entry: Entry) -> Iterator[SyntheticQuery]:
    forms = ", ".join(entry.forms)
    yield SyntheticQuery("", entry.term, TERM, "", meaning=forms)
    if entry.acronym and entry.acronym != entry.term:
        yield SyntheticQuery("", entry.acronym, ACRONYM, "", meaning=forms)
    for sense in entry.senses[:SENSES]:
        text = _query_of(sense, entry)
        if text:
            yield SyntheticQuery("", text, DEFINITION, "", meaning=f"{entry.term}: {sense}")


def _query_of(sense: str, entry: Entry) -> str:
    """The first sentence of a sense that is no form of the entry, without the entry's forms; empty where none is."""
    pattern = re.compile(
        "|".join(rf"\b{re.escape(form)}\b" for form in sorted(entry.forms, key=len, reverse=True)), re.I
    )
    for sentence in SENTENCE_END.split(sense):
        text = " ".join(pattern.sub(" ", sentence).split()[:LONGEST])
        if len(text.split()) > len(entry.term.split()) + 2:
            return text
    return ""
