"""Which entries of a glossary a corpus says, and what becomes of each."""

import json

import pytest

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.errors import InputError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.terms.entries import EntryKeys, read_entries
from sparse_adapt.terms.uses import Finder, read_uses, summary, uses, write_uses

ROWS = [
    ("access control list (ACL)", "Who may what."),
    ("security group", "A named set of rules."),
    ("zorvex", "How a team decides."),
    ("bucket", "A container of objects."),
    ("audit log", "Never said."),
    ("the of", "Only stop words."),
    ("SG", "See security group"),
]
TEXTS = [
    "Each Access-Control List of zorvex; the bucket, the buckets.",
    "ACLs and security groups; zorvex.",
    "An ACL, an e-mail.",
]


@pytest.fixture(scope="module")
def keys(tiny_model):
    return EntryKeys(SparseEncoder.load(tiny_model).tokenizer)


@pytest.fixture
def found(keys):
    entries = read_entries([Definition(*row) for row in ROWS], keys).entries
    return uses(entries, TEXTS, keys, lambda word: word == "bucket")


def test_what_becomes_of_each_entry(found):
    assert [(use.kind, use.documents, use.token, use.refused) for use in found] == [
        ("phrase with an acronym", 3, "ACL", ""),  # two documents say the acronym itself
        ("phrase", 1, "", ""),
        ("new word", 2, "zorvex", ""),
        ("word with a token", 1, "", ""),
        ("phrase", 0, "", "the corpus never says it"),
        ("phrase", 0, "", "it is only stop words or signs"),
        ("reference", 0, "", ""),
    ]
    assert [use.makes_queries for use in found] == [True, True, True, True, False, False, False]


def test_a_word_of_one_document_gets_no_token(keys):
    entries = read_entries([Definition("zorvex", "How a team decides.")], keys).entries
    assert [use.token for use in uses(entries, TEXTS[:1], keys, lambda _: False)] == [""]


def test_the_summary_counts_every_entry(found):
    assert list(summary(found)) == [
        "7 entries: 1 phrase with an acronym, 3 phrases, 1 new word, 1 word with a token, 1 only refers to another",
        "2 words of them get a token, 4 entries make queries",
        "1 aren't used, for the corpus never says it: audit log",
        "1 aren't used, for it is only stop words or signs: the of",
    ]


def test_a_text_says_an_entry_as_often_as_its_forms_stand_there(keys):
    entries = read_entries(
        [Definition("email", "A letter."), Definition("list", "A row of things.")], keys
    ).entries
    found = Finder(entries, keys).in_text("E-mail, emails and lists: a list.")
    assert {entries[number].term: found[number, key] for number, key in found} == {"email": 2, "list": 2}


@pytest.mark.parametrize("sign", ["\u200b", "\u2010", "\u2011", "\u2013", "-\u200b", "-"])
def test_a_phrase_is_said_whatever_joins_its_words(keys, sign):
    rows = [
        Definition("flux gate", "A sensor."),
        Definition("email", "A letter."),
        Definition("10-20", "Some."),
    ]
    finder = Finder(read_entries(rows, keys).entries, keys)
    said = finder.in_text(f"One flux{sign}gate, an e{sign}mail, pages 10\u201320.")
    assert {number: found for (number, _), found in said.items()} == {0: 1, 1: 1, 2: 1}


def test_the_file_reads_back_and_an_odd_line_is_refused(found, tmp_path):
    path = tmp_path / "entries.jsonl"
    write_uses(path, found)
    assert read_uses(path) == found
    line = {**json.loads(path.read_text().splitlines()[0]), "kind": "word"}
    path.write_text(json.dumps(line))
    with pytest.raises(InputError, match=r"entries.jsonl:1: \"kind\" is none of .*\(found: 'word'\)"):
        read_uses(path)


def test_odd_entries_are_remarked_on_and_none_is_lost(keys):
    rows = [
        ("zorvex", "One."),
        ("Zorvex", "Two."),  # again, with another sense
        ("***", "Stars."),
        ("IT (information technology)", "Machines."),  # an acronym that is a stop word
        ("who may read or write or list what in a bucket", "Ten words."),
        ("access list (AL)", "Who."),
        ("audit log (AL)", "When."),
        ("x y", "See y x"),
        ("y x", "See x y"),
    ]
    read = read_entries([Definition(*row) for row in rows], keys)
    assert len(read.entries) == 8 and len(read.remarks) == 2
    found = uses(
        read.entries, [*TEXTS, "It is who may read or write or list what in a bucket."], keys, lambda _: True
    )
    refused = {use.entry.written: use.refused for use in found}
    assert refused == {
        "zorvex": "",
        "***": "it is only stop words or signs",
        "IT (information technology)": "the corpus never says it",
        "who may read or write or list what in a bucket": "",
        "access list (AL)": "the corpus never says it",
        "audit log (AL)": "the corpus never says it",
        "x y": "nothing defines it",
        "y x": "nothing defines it",
    }
