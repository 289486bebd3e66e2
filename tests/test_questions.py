"""Files of queries, as text and as JSON, and `explain` on all of them at once."""

import json

import pytest

from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.collection.readers import read_documents, read_queries, read_questions
from sparse_adapt.errors import InputError


@pytest.mark.parametrize(
    ("name", "text", "ids"),
    [
        ("questions.txt", "who owns the server\n\n  a log  \n", ["1", "3"]),
        ("questions.json", '["who owns the server", "a log"]', ["1", "2"]),
        ("questions.json", '[{"qid": "x", "text": "who owns the server"}, {"query": "a log"}]', ["x", "2"]),
        (
            "questions.json",
            '{"qid": "x", "text": "who owns the server"}\n{"qid": 7, "query": "a log"}',
            ["x", "7"],
        ),
        ("questions.txt", "x\twho owns the server\ny\ta log\n", ["x", "y"]),
        (
            "topics.txt",
            "<top>\n<num> x\n<title> who owns the server\n</top>\n<top>\n<num> y\n<title> a log\n</top>",
            ["x", "y"],
        ),
        ("questions.tsv", "x\twho owns the server\ny\ta log\n", ["x", "y"]),
    ],
)
def test_queries_of_any_shape(tmp_path, name, text, ids):
    (tmp_path / name).write_text(text)
    found = read_questions(tmp_path / name)
    assert [query.text for query in found] == ["who owns the server", "a log"]
    assert [query.query_id for query in found] == ids


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("\n \n", "holds no queries"),
        ("[]", "holds no queries"),
        ('["a", 3]', "entry 2 of the list has no text"),
        ('[{"id": "a"}]', "entry 1 of the list has no text"),
        ('["a",\n"b" 3]', r":2: broken JSON"),
    ],
)
def test_what_is_no_file_of_queries_is_refused(tmp_path, text, problem):
    (tmp_path / "questions").write_text(text)
    with pytest.raises(InputError, match=problem):
        read_questions(tmp_path / "questions")


def test_files_as_the_published_recipes_name_their_fields(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "d1", "text": "a text"}\n')
    (tmp_path / "queries.jsonl").write_text('{"qid": "q1", "text": "a query"}\n')
    line = {
        "qid": "q1",
        "query": "a query",
        "doc_ids": ["d1"],
        "doc_texts": ["a text"],
        "teacher_scores": [9.3],
    }
    (tmp_path / "candidates.jsonl").write_text(json.dumps(line) + "\n")
    assert [(each.document_id, each.text) for each in read_documents(tmp_path)] == [("d1", "a text")]
    assert [(each.query_id, each.text) for each in read_queries(tmp_path)] == [("q1", "a query")]
    (found,) = read_candidates(tmp_path)
    assert (found.query_id, found.document_ids, found.texts, found.teacher_scores) == (
        "q1",
        ("d1",),
        ("a text",),
        (9.3,),
    )


def test_explain_takes_a_file_of_queries(sparse_adapt, tiny_model, zorvex_collection, tmp_path):
    file = tmp_path / "questions.txt"
    file.write_text("who owns the server\na log of the server\n")
    words = ["explain", "--queries", file, "--model", tiny_model, "--corpus", zorvex_collection, "--top", "1"]
    ran = sparse_adapt(*words, "--json")
    assert ran.status == 0, ran.err
    both = json.loads(ran.out)["queries"]
    assert [each["query"] for each in both] == ["who owns the server", "a log of the server"]
    one = sparse_adapt(*["explain", "a log of the server", *words[3:]], "--json")
    assert {**json.loads(one.out), "model": None, "collection": None} == {
        "model": None,
        "collection": None,
        **both[1],
    }
    assert sparse_adapt("explain", *words[3:]).errors == [
        "error: explain needs a QUERY, or a file of them: --queries FILE"
    ]
    assert sparse_adapt("explain", "x", *words[1:]).status == 2
