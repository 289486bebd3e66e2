"""Queries that a glossary makes, and what the teacher reads in their place."""

import re

from sparse_adapt.synthetic.entry_queries import ACRONYM, DEFINITION, TERM, entry_queries
from sparse_adapt.synthetic.queries import HELD, TRAIN, Collected, read_synthetic_queries, write_collection
from sparse_adapt.terms.entries import Entry
from sparse_adapt.terms.uses import Use

SENSE = "An ACL is a document that defines who may what. More."
ACL = Entry("access control list", ("access control list", "ACL"), "ACL", (SENSE,))
FORMS = "access control list, ACL"


def test_term_acronym_and_definition_are_asked_and_the_teacher_reads_the_meaning():
    asked = entry_queries([Use(ACL, "phrase with an acronym", 3, "ACL")], 9)
    assert [(query.kind, query.text, query.meaning, query.split) for query in asked] == [
        (TERM, "access control list", FORMS, TRAIN),
        (ACRONYM, "ACL", FORMS, TRAIN),
        (
            DEFINITION,
            "An is a document that defines who may what.",
            f"access control list: {SENSE}",
            TRAIN,
        ),
    ]


def test_some_entries_without_a_new_token_are_set_aside_whole():
    made = [
        Use(
            Entry(f"word{n} group", (f"word{n} group",), "", (f"The group number {n} of many others.",)),
            "phrase",
            2,
        )
        for n in range(16)
    ]
    asked = entry_queries([Use(ACL, "phrase with an acronym", 3, "ACL"), *made], 99)
    held = {re.match(r"\w+", query.meaning)[0] for query in asked if query.split == HELD}
    assert held == {"word0", "word8"} and len({query.query_id for query in asked}) == len(asked)
    assert sum(query.split == HELD for query in asked) == 4


def test_what_is_not_used_is_not_asked():
    assert entry_queries([Use(ACL, "phrase with an acronym", 0, refused="the corpus never says it")], 9) == []


def test_the_collection_keeps_meaning_and_split(tmp_path):
    asked = entry_queries([Use(ACL, "phrase with an acronym", 3)], 9)
    write_collection(tmp_path, Collected([], asked))
    assert asked[0].split == HELD and read_synthetic_queries(tmp_path) == asked


def test_each_entry_has_one_query_before_any_has_a_second():
    entries = [
        Entry(f"a{n} list", (f"a{n} list",), "", (f"The row number {n} of many things.",)) for n in range(4)
    ]
    asked = entry_queries([Use(each, "phrase", 2, "token") for each in entries], 5)
    assert [re.match(r"\w+", query.meaning)[0] for query in asked] == ["a0", "a1", "a2", "a3", "a0"]
    assert [query.kind for query in asked] == [TERM, DEFINITION, TERM, DEFINITION, DEFINITION]
