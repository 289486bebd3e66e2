"""Files of queries, as text and as JSON, and `explain` on all of them at once."""

import json

import pytest

from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.collection.readers import Query, read_documents, read_queries
from sparse_adapt.errors import InputError


@pytest.mark.parametrize(
    ("name", "text", "ids"),
    [
        ("questions.txt", "who owns the server\n\n  a log  \n", ["1", "3"]),
        ("questions.json", '["who owns the server", "a log"]', ["1", "2"]),
        ("questions.json", '[{"qid": "x", "query": "who owns the server"}, {"query": "a log"}]', ["x", "2"]),
        (
            "questions.ndjson",
            '{"qid": "x", "query": "who owns the server"}\n{"qid": 7, "query": "a log"}',
            ["x", "7"],
        ),
        (
            "TOPICS.TREC",
            "<top>\n<num> x\n<title> who owns the server\n</top>\n<top>\n<num> y\n<title> a log\n</top>",
            ["x", "y"],
        ),
        ("questions.tsv", "x\twho owns the server\ny\ta log\n", ["x", "y"]),
    ],
)
def test_queries_of_any_shape(tmp_path, name, text, ids):
    (tmp_path / name).write_text(text)
    found = list(read_queries(tmp_path / name))
    assert [query.text for query in found] == ["who owns the server", "a log"]
    assert [query.query_id for query in found] == ids


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("q.txt", "\n \n", "holds no queries"),
        (
            "q.txt",
            "what\n1\twho\n",
            r":2: holds tabs between columns, where a \.txt has one a line; let its name end",
        ),
        ("q.txt", "<top>\n<num> 1\n", r":1: holds what looks like JSON or markup"),
        ("q.txt", '{"_id": "1", "text": "a"}', r":1: holds what looks like JSON or markup"),
        ("q.txt", '[\n"a"]', r":1: holds what looks like JSON or markup"),
        ("q.json", "[]", "holds no queries"),
        ("q.json", '["a", 3]', r"entry 2 of the list: no text and no object in Unicode \(found: 3\)"),
        ("q.json", '[{"id": "a"}]', r'entry 1 of the list: needs a string "text" \(keys found: id\)'),
        ("q.json", '["a",\n"b" 3]', r":2: broken JSON"),
        (
            "q.json",
            '{"_id": "1"}\n{"_id": "2"}',
            r":2: broken JSON .* let the name of JSON lines end in \.jsonl",
        ),
        ("q.json", '{"_id": "1"}', r"needs a JSON list \(found: \{\"_id\": \"1\"\}\)"),
        ("q.trec", '{"_id": "1"}', "holds no queries"),
        ("topics.301-350", "<top>", r"the end of its name doesn't say what it is \(\.301-350\); rename it"),
        ("topics", "<top>", r"doesn't say what it is \(none\).*\.trec.*, whichever the queries are"),
    ],
)
def test_the_name_decides_what_a_file_is_and_what_lies_is_refused(tmp_path, name, text, problem):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=problem):
        list(read_queries(tmp_path / name))


@pytest.mark.parametrize("text", ["<b> or <strong>?", "[object Object]", "{x} in a template", "a < b"])
def test_a_question_may_hold_signs_of_markup(tmp_path, text):
    (tmp_path / "q.txt").write_text(text)
    assert list(read_queries(tmp_path / "q.txt")) == [Query("1", text)]


@pytest.mark.parametrize("lines", [("text", "question"), ("question", "text")])
def test_a_passage_beside_its_question_is_never_the_query(tmp_path, lines, capfd):
    said = {"text": "Pumps lift water.", "question": "What lifts water?"}
    line = json.dumps({"_id": "1", **{key: said[key] for key in lines}})
    (tmp_path / "q.jsonl").write_text(line + "\n" + json.dumps({"_id": "2", "question": "Why?"}))
    assert [query.text for query in read_queries(tmp_path / "q.jsonl")] == ["What lifts water?", "Why?"]
    assert '"question" taken for text' in capfd.readouterr().err


def test_one_key_for_a_field_in_all_lines(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text(
        '{"id": 1, "body": "a", "title": null}\n{"id": 2, "body": "b", "text": "c", "title": "T"}'
    )
    assert [(each.text, each.title) for each in read_documents(path)] == [("a", ""), ("b", "T")]
    path.write_text('{"id": 1, "body": "a"}\n{"id": 2, "text": "b"}')
    with pytest.raises(
        InputError, match=r':2: has its text under "text", those before under "body"; give all the same'
    ):
        list(read_documents(path))


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
    assert [each.pop("query_id") for each in both] == ["1", "2"]
    shown = sparse_adapt(*words).out.splitlines()
    assert [text.strip("\u2500 ") for text in shown if text.startswith(("1 \u2500", "2 \u2500"))] == [
        "1",
        "2",
    ]
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
