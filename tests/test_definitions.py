"""Definitions that a corpus gives of its own terms."""

import json

import pytest

from sparse_adapt.collection.glossary import Definition, read_dictionary
from sparse_adapt.collection.readers import Document
from sparse_adapt.terms.definitions import long_form, mine_definitions, write_mined


def mined(text: str, *terms: str) -> list[tuple[str, str, str]]:
    found = mine_definitions([Document("d1", text)], terms)
    return [(entry.form, entry.definition.term, entry.definition.definition) for entry in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "A semaphore is a counter that processes share.",
            ("is", "semaphore", "a counter that processes share"),
        ),
        (
            "We used splicing by overlap extension (SOE) here.",
            ("long form", "SOE", "splicing by overlap extension"),
        ),
        (
            "SOE (splicing by overlap extension) joins parts.",
            ("long form", "SOE", "splicing by overlap extension"),
        ),
        (
            "Calpain, a protease of the cytosol, cuts spectrin.",
            ("apposition", "Calpain", "a protease of the cytosol"),
        ),
        (
            "He wrote a program that prints itself, known as quine.",
            ("naming", "quine", "a program that prints itself"),
        ),
    ],
)
def test_each_form(text, expected):
    assert mined(text, expected[1]) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "A semaphore is red.",  # says nothing that defines
        "The semaphore is a semaphore of sorts.",  # defines itself by itself
        "Every counter is a thing that processes share.",  # another word
    ],
)
def test_what_defines_nothing(text):
    assert mined(text, "semaphore") == []


def test_two_definitions_at_most_and_long_forms_first():
    text = "SOE is a way of joining. SOE is a method of labs. We tried splicing by overlap extension (SOE)."
    assert [form for form, _, _ in mined(text, "soe")] == ["long form", "is"]


@pytest.mark.parametrize(
    ("short", "before", "expected"),
    [
        ("SOE", "we used splicing by overlap extension", "splicing by overlap extension"),
        ("IL-6", "levels of interleukin 6", "interleukin 6"),
        ("SOE", "we used some other thing", None),
        ("A1", "annexin", None),  # one word is no long form
        ("12", "ten and two", None),
    ],
)
def test_long_forms(short, before, expected):
    assert long_form(short, before) == expected


def test_evidence_is_written_and_the_file_reads_as_a_dictionary(tmp_path):
    found = mine_definitions(
        [Document("d7", "A semaphore is a counter that processes share.")], ["semaphore"]
    )
    path = tmp_path / "dictionary.jsonl"
    assert write_mined(path, found, [Definition("quine", "a program that prints itself")]) == 2
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert (
        rows[1]["doc_id"] == "d7"
        and rows[1]["sentence"].startswith("A semaphore")
        and rows[1]["form"] == "is"
    )
    assert [each.term for each in read_dictionary(path)] == ["quine", "semaphore"]
