"""Pairs as files, and which of them hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparse_adapt.collection.examples import Pair, read_pairs, write_pairs
from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import InputError
from sparse_adapt.synthetic.queries import SyntheticQuery
from sparse_adapt.teachers.pairs import consistent

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1).filter(str.strip)
PAIRS = st.lists(st.builds(Pair, TEXT, TEXT, TEXT | st.just("")), min_size=1, unique_by=lambda pair: pair[:2])


@given(PAIRS)
def test_pairs_come_back_as_they_were_written(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    assert write_pairs(path, pairs) == len(pairs)
    assert list(read_pairs(path)) == pairs


def test_pairs_of_a_folder_are_found(tmp_path):
    write_pairs(tmp_path / "pairs.jsonl", [Pair("a wing", "1", "q1"), Pair("a wing", "2")])
    assert [pair.document_id for pair in read_pairs(tmp_path, document_ids={"1", "2"})] == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"query": "a wing", "doc_id": "1"}\n{"query": "a", "doc_id": "9"}\n', ':2: no document "9"'),
        ('{"query": "a wing"}\n', ':1: needs a string "doc_id" (keys found: query)'),
        ('{"query": " ", "doc_id": "1"}\n', ':1: "query" is empty'),
        ('{"query": 3, "doc_id": "1"}\n', ':1: needs a string "query" (found: 3)'),
        ('{"query": "a", "doc_id": "1"}\n\n{"query": "a", "doc_id": "1"}\n', ":3: the pair on line 1 again"),
        ('{"query": "a", "doc_id": "1", "query_id": [1]}\n', ':1: needs a string "query_id"'),
        ("nothing\n", ":1: "),
        ("", "pairs"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, problem):
    path = tmp_path / "pairs.jsonl"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        list(read_pairs(path, document_ids={"1"}))
    assert str(caught.value).startswith(f"{path}")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def query(name: str, document: str) -> SyntheticQuery:
    return SyntheticQuery(name, f"text of {name}", "title", document)


def test_a_pair_stays_where_few_documents_score_higher():
    documents = [Document(name, "", "") for name in "abcd"]
    scores = np.array([[1.0, 3.0, 2.0, 2.0], [5.0, 4.0, 4.0, 9.0], [0.0, 0.0, 0.0, 0.0]])
    queries = [query("q1", "c"), query("q2", "b"), query("q3", "d"), query("q4", "gone")]

    def rank(texts):
        rows = [int(text[-1]) - 1 for text in texts]
        return np.array([scores[row % 3] for row in rows])

    def names(depth):
        return [pair.query_id for pair in consistent(queries, documents, rank, depth)]

    assert names(1) == ["q3"]  # nothing scores higher; ties don't count
    assert names(2) == ["q1", "q3"]  # b before c
    assert names(3) == ["q1", "q2", "q3"]  # d and a before b
    assert consistent(queries, documents, rank, 2)[0] == Pair("text of q1", "c", "q1")
    assert consistent([], documents, rank, 2) == []
    near = consistent(queries, documents, rank, 3, least=2.0)
    assert [pair.query_id for pair in near] == ["q1", "q2"]  # q3's document scores 0
