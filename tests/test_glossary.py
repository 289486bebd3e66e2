"""Definitions are read whole or named with their place, and make sentences with one stop each."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparse_adapt.collection.glossary import (
    CLOSING,
    STOPS,
    Definition,
    read_dictionary,
    sentence,
    write_dictionary,
)
from sparse_adapt.errors import InputError


class TestSentence:
    @pytest.mark.parametrize(
        ("definition", "expected"),
        [
            (
                Definition("Zorvex", "a way of deciding", ("a zorvex plan", "zorvex in small firms")),
                "Zorvex is defined as a way of deciding. "
                "Zorvex is used in contexts such as a zorvex plan; zorvex in small firms.",
            ),
            (Definition("Zorvex", "a way of deciding."), "Zorvex is defined as a way of deciding."),
            (Definition("Zorvex", "Deciding. Signing. "), "Zorvex is defined as Deciding. Signing."),
            (Definition("Zorvex", "who decides?"), "Zorvex is defined as who decides?"),
            (Definition("Zorvex", 'a "way."'), 'Zorvex is defined as a "way."'),
            (Definition("Zorvex", "deciding (and signing)"), "Zorvex is defined as deciding (and signing)."),
            (Definition("Zorvex", "deciding, etc."), "Zorvex is defined as deciding, etc."),
            (Definition("Zorvex", "deciding ..."), "Zorvex is defined as deciding ..."),
            (
                Definition("Zorvex", "deciding", ("It plans.", "It signs...", " It\n ends. ")),
                "Zorvex is defined as deciding. "
                "Zorvex is used in contexts such as It plans; It signs...; It ends.",
            ),
            (
                Definition("Zorvex", "deciding", ("why zorvex?",)),
                "Zorvex is defined as deciding. Zorvex is used in contexts such as why zorvex?",
            ),
            (
                Definition(" max\npool ", "a\tlimit", ("", " ")),
                "max pool is defined as a limit.",
            ),
        ],
    )
    def test_by_hand(self, definition, expected):
        assert sentence(definition) == expected

    @given(st.text().filter(str.strip), st.text().filter(str.strip), st.lists(st.text()))
    def test_always_one_line_that_ends(self, term, definition, examples):
        rendered = sentence(Definition(term, definition, tuple(examples)))
        assert rendered == " ".join(rendered.split())
        assert rendered.rstrip(CLOSING).endswith(STOPS)


def put(folder, *lines):
    path = folder / "dictionary.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


GOOD = {"term": "Zorvex", "definition": "deciding", "examples": ["a zorvex plan"]}


class TestReading:
    def test_examples_are_optional(self, tmp_path):
        path = put(tmp_path, GOOD, "", {"term": "kubectl", "definition": "a tool", "synonyms": ["k"]})
        expected = [Definition("Zorvex", "deciding", ("a zorvex plan",)), Definition("kubectl", "a tool")]
        assert read_dictionary(path) == read_dictionary(tmp_path) == expected

    def test_a_term_may_have_two_meanings(self, tmp_path):
        assert len(read_dictionary(put(tmp_path, GOOD, {**GOOD, "definition": "signing"}))) == 2

    def test_what_has_no_meaning_and_what_comes_again_is_counted_and_left_out(self, tmp_path, capfd):
        bare = [
            {"term": "a"},
            {"term": " ", "definition": "x"},
            {"definition": "x"},
            {**GOOD, "definition": ""},
        ]
        path = put(tmp_path, GOOD, *bare, GOOD, {**GOOD, "definition": "signing"})
        assert [entry.definition for entry in read_dictionary(path)] == ["deciding", "signing"]
        assert capfd.readouterr().err.splitlines() == [
            f"{path}: 4 entries have no term with a definition, and are left out (a, line 3, line 4, ...)",
            f"{path}: 1 entries come again, and are left out (Zorvex)",
        ]

    def test_bundled(self):
        assert [definition.term for definition in read_dictionary("gatrocraptic")] == ["Gatrocraptic"]

    @pytest.mark.parametrize(
        ("lines", "problem"),
        [
            ([""], ": holds no definitions; check that it is the file you mean"),
            (["{"], ":1: broken JSON ("),
            (['"Zorvex"'], ':1: not an object (found: "Zorvex"); each line holds one object'),
            ([{"term": "Zorvex"}], ':1: needs a string "definition" (keys found: term)'),
            ([{"x": "x", "definition": "y"}], ':1: needs a string "term" (keys found: x, definition)'),
            ([{"term": "x", "definition": 5}], ':1: needs a string "definition" (found: 5)'),
            (
                [{**GOOD, "examples": "a plan"}],
                ':1: needs a list of strings "examples" (found: "a plan")',
            ),
            ([{**GOOD, "examples": [1]}], ':1: needs a list of strings "examples" (found: [1])'),
            ([{**GOOD, "examples": [""]}], ':1: "examples" holds an empty text; fill it in or remove it'),
        ],
    )
    def test_bad_dictionaries(self, tmp_path, lines, problem):
        path = put(tmp_path, *lines)
        with pytest.raises(InputError) as caught:
            read_dictionary(path)
        assert str(caught.value).startswith(f"{path}{problem}")

    @pytest.mark.parametrize("name", ["missing.jsonl", "missing"])
    def test_missing(self, tmp_path, name):
        with pytest.raises(InputError, match=f"{name}: no such file; check the path"):
            read_dictionary(tmp_path / name)


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: bool(text.strip()))
definitions = st.builds(Definition, words.map(str.strip), words, st.lists(words, max_size=3).map(tuple))


@given(st.lists(definitions, min_size=1, unique_by=lambda each: (each.term, each.definition)))
def test_round_trip(tmp_path_factory, entries):
    path = tmp_path_factory.getbasetemp() / "dictionary.jsonl.gz"
    assert write_dictionary(path, entries) == len(entries)
    assert read_dictionary(path) == entries


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("glossary.csv", 'term,definition,examples\nzorvex,"how a team, any, spends",a zorvex; of zorvex\n'),
        ("glossary.csv", 'Examples;Word;Meaning\n"a zorvex; of zorvex";zorvex;how a team, any, spends\n'),
        ("glossary.tsv", "zorvex\thow a team, any, spends\ta zorvex;of zorvex\n\n"),
    ],
    ids=["commas", "semicolons, other headings", "tabs, no headings"],
)
def test_a_glossary_may_be_a_table(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    assert read_dictionary(path) == [
        Definition("zorvex", "how a team, any, spends", ("a zorvex", "of zorvex"))
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("term,definition\n\nzorvex,\n", 'glossary.csv:3: needs a string "definition" (found: "")'),
        ("term,definition\nzorvex,how, it spends\n", "glossary.csv:2: has 3 cells for 2 columns"),
        ('term,definition\nzorvex,"how\nit spends"\nzorvex,x,y,z', "glossary.csv:4: has 4 cells"),
        ('term,definition\nzorvex,"how', "glossary.csv:2: a broken table"),
        ("term,definition\n", "glossary.csv: holds no definitions"),
    ],
)
def test_a_bad_row_of_a_table_is_named_by_its_line(tmp_path, text, said):
    path = tmp_path / "glossary.csv"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_dictionary(path)
    assert said in str(raised.value)
