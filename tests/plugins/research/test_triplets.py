"""Triplets as files."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparse_adapt.collection.examples import Triplet, read_triplets, write_triplets
from sparse_adapt.errors import InputError

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1).filter(str.strip)
MANY = st.lists(TEXT, min_size=1, max_size=3).map(tuple)
TRIPLETS = st.builds(Triplet, TEXT, MANY, TEXT | st.just(""), MANY | st.just(()))


def as_key(text: str) -> str:
    return " ".join(text.split()).casefold()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        TRIPLETS.filter(lambda each: as_key(each.anchor) not in map(as_key, each.contradictions)), min_size=1
    )
)
def test_triplets_come_back_as_they_were_written(tmp_path_factory, triplets):
    path = tmp_path_factory.mktemp("triplets") / "triplets.jsonl"
    assert write_triplets(path, triplets) == len(triplets)
    assert list(read_triplets(path)) == triplets


def test_a_labelled_pair_is_a_triplet_with_one_contradiction(tmp_path):
    path = tmp_path / "labelled.jsonl"
    path.write_text('{"anchor": "a boy plays", "entailment": "a child plays", "contradiction": "nobody"}\n')
    assert list(read_triplets(path)) == [Triplet("a boy plays", ("nobody",), "a child plays")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '{"anchor": "a"}\n',
            ':1: needs a list of strings "contradictions" (keys found: anchor)',
        ),
        (
            '{"anchor": "a", "contradictions": ["b"]}\n{"contradictions": ["b"]}\n',
            ':2: needs a string "anchor"',
        ),
        ('{"anchor": " ", "contradictions": ["b"]}\n', ':1: "anchor" is empty'),
        ('{"anchor": "a", "contradictions": []}\n', ':1: "contradictions" is empty'),
        ('{"anchor": "a", "contradictions": null}\n', ':1: "contradictions" is empty'),
        ('{"anchor": "a", "contradictions": "b"}\n', ':1: needs a list of strings "contradictions"'),
        ('{"anchor": "a", "contradictions": ["b", 3]}\n', ':1: needs a list of strings "contradictions"'),
        ('{"anchor": "a", "contradictions": ["b", " "]}\n', ":1: a contradiction is empty"),
        ('{"anchor": "A b", "contradictions": ["a  b"]}\n', ":1: a contradiction is the anchor itself"),
        ('{"anchor": "a", "contradiction": 3}\n', ':1: needs a string "contradiction" (found: 3)'),
        ('{"anchor": "a", "entailment": "", "contradiction": "b"}\n', ':1: "entailment" is empty'),
        (
            '{"anchor": "a", "contradiction": "b", "replaced": "b"}\n',
            ':1: needs a list of strings "replaced"',
        ),
        ("nothing\n", ":1: broken JSON"),
        ("\n", "holds no triplets"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, problem):
    path = tmp_path / "triplets.jsonl"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        list(read_triplets(path))
    assert problem in str(caught.value)
