"""Collections in every layout come out the same, and whatever is wrong in them is named with its place."""

import gzip
import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corpora
from sparse_adapt.collection.examples import Candidates, read_candidates, write_candidates
from sparse_adapt.collection.readers import (
    Document,
    Query,
    read_documents,
    read_judgements,
    read_queries,
    read_run,
    write_documents,
    write_judgements,
    write_queries,
    write_run,
)
from sparse_adapt.collection.sources import file_beside
from sparse_adapt.errors import InputError, OutputError

GOOD_DOCUMENTS = '{"_id": "d1", "title": "T", "text": "one"}\n{"_id": "d2", "text": ""}\n'
DOCUMENTS = [Document("d1", "one", "T"), Document("d2", "")]
CANDIDATES = '{"query_id": "q1", "query": "what", "doc_ids": ["d1", "d2"], "teacher_scores": [9.5, -8]}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small collection in the BEIR layout."""
    (tmp_path / "corpus.jsonl").write_text(GOOD_DOCUMENTS)
    (tmp_path / "queries.jsonl").write_text('{"_id": 7, "text": "what", "kind": "control"}\n')
    (tmp_path / "candidates.jsonl").write_text(CANDIDATES)
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n7\td1\t2\n7\td2\t0\n")
    (tmp_path / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n7\td2\t1\n")
    return tmp_path


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def problem_of(read, path, *arguments, **options) -> str:
    """The message of the InputError that reading everything raises: always one line, led by the path."""
    with pytest.raises(InputError) as caught:
        list(read(path, *arguments, **options))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


ORDERS = "id, text or id, title, text or id, url, title, text"
NAMED = "name them in a first row, or by --columns"


class TestDocuments:
    def test_beir_folder_and_its_file(self, folder):
        assert list(read_documents(folder)) == DOCUMENTS
        assert list(read_documents(str(folder / "corpus.jsonl"))) == DOCUMENTS

    def test_full_text_joins_title_and_text(self):
        assert [document.full_text for document in DOCUMENTS] == ["T one", ""]

    @pytest.mark.parametrize(
        ("name", "content", "expected"),
        [
            ("two.tsv", "d1\tone\nd2\t\n", [Document("d1", "one"), Document("d2", "")]),
            ("three.tsv", "d1\tT\tone\n\nd2\t\t\n", DOCUMENTS),
            ("UPPER.NDJSON", GOOD_DOCUMENTS, DOCUMENTS),
            ("list.json", f"[{','.join(GOOD_DOCUMENTS.splitlines())}]", DOCUMENTS),
            ("floats.jsonl", '{"_id": 12.0, "text": ["one", "two"]}', [Document("12", "one\ntwo")]),
            ("windows.jsonl", b"\xef\xbb\xbf" + GOOD_DOCUMENTS.replace("\n", "\r\n").encode(), DOCUMENTS),
            ("windows.tsv", b"\xef\xbb\xbfd1\tT\tone\r\nd2\t\t\r\n", DOCUMENTS),
            ("integers.jsonl", '{"_id": 12, "title": null, "text": "one"}', [Document("12", "one")]),
            (
                "separators.jsonl",
                '{"_id": "a", "text": "one\u2028two\x85"}',
                [Document("a", "one\u2028two\x85")],
            ),
        ],
    )
    def test_layouts(self, tmp_path, name, content, expected):
        path = put(tmp_path, name, content)
        assert list(read_documents(path)) == expected
        packed = put(tmp_path, f"{name}.gz", gzip.compress(path.read_bytes()))
        assert list(read_documents(packed)) == expected

    def test_a_folder_may_hold_a_compressed_corpus(self, tmp_path):
        put(tmp_path, "corpus.jsonl.gz", gzip.compress(GOOD_DOCUMENTS.encode()))
        assert list(read_documents(tmp_path)) == DOCUMENTS

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("doc_id\tdoc_text\nd1\tone\n", [Document("d1", "one")]),
            ("id\ttext\ttitle\nd1\tone\tT\n", [Document("d1", "one", "T")]),
            ("url\tID\tbody\tTitle\nx.org\td1\tone\tT\n", [Document("d1", "one", "T")]),
        ],
    )
    def test_headings_of_a_table(self, tmp_path, content, expected):
        assert list(read_documents(put(tmp_path, "c.tsv", content))) == expected

    def test_headings_are_said(self, tmp_path, capsys):
        path = put(tmp_path, "c.tsv", "id\ttext\ttitle\nd1\tone\tT\n")
        list(read_documents(path))
        said = "line 1 taken for headings ('id' as id, 'title' as title, 'text' as text)"
        assert said in capsys.readouterr().err

    @pytest.mark.parametrize(
        "fields",
        [{"id": "d1", "contents": "one"}, {"doc_id": "d1", "text": "one"}, {"docid": "d1", "body": "one"}],
    )
    def test_fields_of_other_names(self, tmp_path, fields):
        assert list(read_documents(put(tmp_path, "c.jsonl", json.dumps(fields)))) == [Document("d1", "one")]

    def test_keywords_and_journal(self, tmp_path):
        expected = [
            Document("1", "text", "On wells", "pumps, wells", "Annals"),
            Document("2", "text", keywords="saws"),
        ]
        lines = [
            {
                "_id": "1",
                "title": "On wells",
                "text": "text",
                "keywords": ["pumps", "wells"],
                "venue": "Annals",
            },
            {"_id": "2", "text": "text", "keywords": "saws", "venue": {"name": "no text"}},
        ]
        (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert list(read_documents(tmp_path)) == expected
        assert expected[0].full_text == "On wells text"  # as without them
        write_documents(tmp_path / "again.jsonl", expected)
        assert list(read_documents(tmp_path / "again.jsonl")) == expected
        rows = "id\ttext\tJournal\tkeywords\ttitle\n1\ttext\tAnnals\tpumps, wells\tOn wells\n"
        (tmp_path / "corpus.tsv").write_text(rows)
        assert list(read_documents(tmp_path / "corpus.tsv")) == expected[:1]

    def test_streams(self, tmp_path):
        """The first documents are there before the broken line is reached."""
        path = put(tmp_path, "corpus.jsonl", GOOD_DOCUMENTS + "broken")
        assert list(itertools.islice(read_documents(path), 2)) == DOCUMENTS

    def test_a_missing_file_is_told_at_the_call(self, tmp_path):
        with pytest.raises(InputError, match="no such file"):
            read_documents(tmp_path / "missing.jsonl")

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("", ": holds no documents; check that it is the file you mean"),
            ("\n \n", ": holds no documents; check that it is the file you mean"),
            (
                GOOD_DOCUMENTS + '\n{"_id": "d3", "text": "x"',
                ":4: broken JSON (Expecting ',' delimiter, column 26); each line holds one object",
            ),
            ("[1, 2]\n", ":1: not an object (found: [1, 2]); each line holds one object"),
            ("[" * 100_000, ":1: broken JSON ("),
            ('{"_id": "d1"}', ':1: needs a string "text" (keys found: _id)'),
            ("{}", ':1: needs a string "_id" (keys found: none)'),
            ('{"name": "d1", "text": "x"}', ':1: needs a string "_id" (keys found: name, text)'),
            ('{"_id": "d1", "text": 5}', ':1: needs a string "text" (found: 5)'),
            ('{"_id": "d1", "text": null}', ':1: needs a string "text" (found: null)'),
            ('{"_id": "d1", "text": "x", "title": ["y"]}', ':1: needs a string "title" (found: ["y"])'),
            ('{"_id": 1.5, "text": "x"}', ':1: needs a string "_id" (found: 1.5)'),
            ('{"_id": true, "text": "x"}', ':1: needs a string "_id" (found: true)'),
            ('{"_id": " ", "text": "x"}', ':1: "_id" holds an empty id; give every entry an id'),
            (
                '\n{"_id": "d1", "text": "x"}\n{"_id": "d1", "text": "y"}',
                ':3: duplicate document id "d1" (first on line 2); remove or rename one of them',
            ),
            (
                '{"_id": 1, "text": "x"}\n{"_id": "1", "text": "y"}',
                ':2: duplicate document id "1" (first on line 1); remove or rename one of them',
            ),
            (
                b'{"_id": "d1", "text": "x"}\n{"_id": "d2", "text": "na\xefve"}\n',
                ":2: not UTF-8 (byte 0xef in column 26); save or convert the file as UTF-8",
            ),
            (
                '{"_id": "d1", "text": "\\ud83d"}',
                ":1: half of a surrogate pair (\\ud800 to \\udfff alone); remove it",
            ),
            (gzip.compress(b"x", mtime=0), ":1: is compressed; let its name end in .gz or decompress it"),
        ],
    )
    def test_bad_jsonl(self, tmp_path, content, problem):
        assert problem_of(read_documents, put(tmp_path, "corpus.jsonl", content)).startswith(problem)

    def test_a_whole_surrogate_pair_is_fine(self, tmp_path):
        path = put(tmp_path, "corpus.jsonl", '{"_id": "d1", "text": "\\ud83d\\ude00"}')
        assert next(read_documents(path)).text == "\N{GRINNING FACE}"

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("", ": holds no documents; check that it is the file you mean"),
            ("d1\n", f":1: needs columns: {ORDERS} (found: 1); {NAMED}"),
            ("d1\ta\tb\tc\td\n", f":1: needs columns: {ORDERS} (found: 5); {NAMED}"),
            (
                "d1\ta\nd2\tT\tb\n",
                ":2: has 3 cells for 2 columns; make them alike, or put a cell with separators in quotes",
            ),
            ("d1\ta\nd2\n", ':2: needs a string "text" (keys found: _id)'),
            ("d1\ta\n\td2\n", ':2: "_id" holds an empty id; give every entry an id'),
            (
                "d1\ta\nd1\tb\n",
                ':2: duplicate document id "d1" (first on line 1); remove or rename one of them',
            ),
        ],
    )
    def test_bad_tsv(self, tmp_path, content, problem):
        assert problem_of(read_documents, put(tmp_path, "corpus.tsv", content)) == problem

    @pytest.mark.parametrize(
        "damage", [lambda packed: packed[:-12], lambda packed: b"not gzip", lambda packed: b"x"]
    )
    def test_broken_gzip(self, tmp_path, damage):
        path = put(tmp_path, "corpus.jsonl.gz", damage(gzip.compress(GOOD_DOCUMENTS.encode() * 1)))
        problem = problem_of(read_documents, path)
        assert "broken gzip (" in problem and problem.endswith("; copy or compress it again")

    @pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
    def test_an_endless_line(self, tmp_path, monkeypatch, name):
        """A small compressed file may stand for gigabytes: no more of a line is held than the cap."""
        monkeypatch.setattr("sparse_adapt.collection.lines.LONGEST_LINE", 1000)
        content = (GOOD_DOCUMENTS + " " * 1_000_000).encode()
        path = put(tmp_path, name, gzip.compress(content) if name.endswith(".gz") else content)
        assert problem_of(read_documents, path) == (
            ":3: a line of over 1,000 bytes; break it, or check what the file is"
        )

    def test_gzip_damaged_in_the_middle(self, tmp_path):
        lines = "".join(
            json.dumps({"_id": str(i), "text": f"{i * 7919 % 1009} text"}) + "\n" for i in range(20_000)
        )
        packed = bytearray(gzip.compress(lines.encode()))
        packed[len(packed) // 2] ^= 0xFF
        assert "broken" in problem_of(read_documents, put(tmp_path, "corpus.jsonl.gz", bytes(packed)))

    def test_folders_without_a_corpus(self, folder):
        (folder / "corpus.jsonl").unlink()
        assert problem_of(read_documents, folder) == (
            ": holds no corpus.jsonl (found: candidates.jsonl, qrels, queries.jsonl); "
            "give a BEIR folder or the file itself"
        )


class TestQueries:
    def test_beir_folder(self, folder):
        assert list(read_queries(folder)) == [Query("7", "what", "control")]

    def test_tsv(self, tmp_path):
        assert list(read_queries(put(tmp_path, "q.tsv", "1\twhat\n2\twho\n"))) == [
            Query("1", "what"),
            Query("2", "who"),
        ]

    def test_headings_of_a_table(self, tmp_path):
        path = put(tmp_path, "q.tsv", "query\tqid\nwhat\t1\nwho\t2\n")
        assert list(read_queries(path)) == [Query("1", "what"), Query("2", "who")]

    @pytest.mark.parametrize("fields", [{"qid": 1, "query": "what"}, {"qid": "1", "text": "what"}])
    def test_fields_of_other_names(self, tmp_path, fields):
        assert list(read_queries(put(tmp_path, "q.jsonl", json.dumps(fields)))) == [Query("1", "what")]

    @pytest.mark.parametrize("name", ["topics.sgml", "topics.SGM", "topics.xml", "topics.trec"])
    @pytest.mark.parametrize(
        "content",
        [
            "<top>\n<num> Number: 301\n<title> Crime &amp;\n punishment\n<desc> Description:\nWhat?\n</top>\n"
            "<top>\n<num> Number: 302\n<desc> Description:\nWho?\n</top>\n",
            '<?xml version="1.0"?>\n<topics task="x">\n'
            '<topic number="301">\n<query>Crime &amp; punishment</query>\n'
            "<question>What?</question>\n</topic>\n"
            '<topic number="302"><question>Who?</question></topic>\n</topics>\n',
            "<xml><topic><number>301</number><title>Crime\n&amp; punishment</title></topic>\n"
            "<topic><number>302</number><title>Who?</title></topic></xml>",
        ],
    )
    def test_trec_topics(self, tmp_path, name, content):
        assert list(read_queries(put(tmp_path, name, content))) == [
            Query("301", "Crime & punishment"),
            Query("302", "Who?"),
        ]

    @pytest.mark.parametrize(
        ("name", "content", "problem"),
        [
            ("q.jsonl", "", ": holds no queries; check that it is the file you mean"),
            ("q.jsonl", '{"_id": "1"}', ':1: needs a string "text" (keys found: _id)'),
            ("q.jsonl", '{"_id": "1", "text": " "}', ':1: "text" is empty; fill it in or remove the line'),
            ("q.jsonl", '{"_id": "1", "text": "a", "kind": 2}', ':1: needs a string "kind" (found: 2)'),
            (
                "q.jsonl",
                '{"_id": "1", "text": "a"}\n{"_id": "1", "text": "b"}',
                ':2: duplicate query id "1" (first on line 1); remove or rename one of them',
            ),
            ("q.tsv", "1\n", f":1: needs columns: id, text (found: 1); {NAMED}"),
            ("q.tsv", "1\t\n", ':1: "text" is empty; fill it in or remove the line'),
            (
                "q.trec",
                "<top>\n<num> 1\n",
                ":1: this topic has no end (no </top>); is the file cut short?",
            ),
            (
                "q.trec",
                "<top>\n<num> 1\n<top>\n",
                ":3: a topic starts here and that of line 1 has no end; add the missing </top>",
            ),
            (
                "q.trec",
                "<top>\n<num> 1\n<narr> x\n</top>\n",
                ":1: needs a <num> and a <title> or <query> (found: num, narr)",
            ),
            (
                "q.trec",
                "<top><num>1<title>a</top>\n<top><num>1<title>b</top>\n",
                ':2: duplicate query id "1" (first on line 1); remove or rename one of them',
            ),
        ],
    )
    def test_bad_queries(self, tmp_path, name, content, problem):
        assert problem_of(read_queries, put(tmp_path, name, content)) == problem


class TestJudgements:
    def test_splits_of_a_folder(self, folder):
        assert read_judgements(folder) == {"7": {"d1": 2, "d2": 0}}
        assert read_judgements(folder, "train") == {"7": {"d2": 1}}

    @pytest.mark.parametrize(
        "content",
        [
            "query-id\tcorpus-id\tscore\n7\td1\t2\n7\td2\t-1\n",
            "7\td1\t2\n7\td2\t-1",
            "7 0 d1 2\r\n7 Q0 d2 -1\r\n",
            "# judged by two people\n7 0 d1 2\n#note\n# checked 3\n7 0 d2 -1\n",
            "score\tdocid\tqid\n2\td1\t7\n-1\td2\t7\n",
            "qid iter docno rel\n7 0 d1 2\n7 0 d2 -1\n",
        ],
    )
    def test_three_and_four_columns(self, tmp_path, content):
        assert read_judgements(put(tmp_path, "qrels", content)) == {"7": {"d1": 2, "d2": -1}}

    def test_ids_with_spaces_are_whole_in_tsv(self, tmp_path):
        path = put(tmp_path, "qrels.tsv", "my query\tdocument\t1.0\nmy\tquery document\t0\n")
        assert read_judgements(path) == {"my query": {"document": 1}, "my": {"query document": 0}}

    def test_a_missing_split_names_those_there(self, folder):
        assert problem_of(read_judgements, folder, "dev") == ': no split "dev"; there are test, train'

    def test_a_folder_without_judgements(self, tmp_path):
        assert problem_of(read_judgements, tmp_path) == (
            ": holds no judgements (no qrels/test.tsv); point to a BEIR folder or a qrels file"
        )

    def test_unknown_documents_when_the_ids_are_known(self, folder):
        path = folder / "qrels" / "test.tsv"
        assert problem_of(read_judgements, path, document_ids={"d1"}) == (
            ':3: document "d2" is not in the corpus; remove it or choose the corpus that has it'
        )

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("", ": holds no judgements; check that it is the file you mean"),
            ("query-id\tcorpus-id\tscore\n", ": holds no judgements; check that it is the file you mean"),
            (
                "1\td1\n",
                ":1: needs 3 or 4 columns: query, document, grade or, as TREC has it, "
                "query, 0, document, grade (found: 2)",
            ),
            ("1\td1\tgood\n", ":1: needs a number as grade (found: good)"),
            ("1\td1\t0.5\n", ":1: needs a whole number as grade (found: 0.5)"),
            ("1\td1\tnan\n", ":1: grade nan is not finite; remove the line"),
            ("1\t\t1\n", ":1: holds an empty id; give every judgement a query and a document"),
            (
                "1\td1\t1\n\n1\td1\t2\n",
                ':3: duplicate judgement of query and document "1 d1" (first on line 1); '
                "remove or rename one of them",
            ),
        ],
    )
    def test_bad_judgements(self, tmp_path, content, problem):
        assert problem_of(read_judgements, put(tmp_path, "qrels.tsv", content)) == problem


def candidates(**changes) -> str:
    fields = {**json.loads(CANDIDATES), **changes}
    return json.dumps({key: value for key, value in fields.items() if value is not ...})


class TestCandidates:
    def test_file_and_folder(self, folder):
        expected = [Candidates("q1", "what", ("d1", "d2"), (9.5, -8.0))]
        assert list(read_candidates(folder)) == expected
        assert list(read_candidates(folder / "candidates.jsonl", document_ids={"d1", "d2"})) == expected

    def test_texts_and_integer_ids(self, tmp_path):
        path = put(tmp_path, "c.jsonl", candidates(query_id=1, doc_ids=[1, 2], doc_texts=["one", ""]))
        assert list(read_candidates(path)) == [Candidates("1", "what", ("1", "2"), (9.5, -8.0), ("one", ""))]

    def test_texts_make_unknown_ids_harmless(self, tmp_path):
        path = put(tmp_path, "c.jsonl", candidates(doc_texts=["one", "two"]))
        assert len(list(read_candidates(path, document_ids=set()))) == 1

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("", ": holds no candidates; check that it is the file you mean"),
            ("null", ":1: not an object (found: null); each line holds one object"),
            (
                candidates(query=...),
                ':1: needs a string "query" (keys found: query_id, doc_ids, teacher_scores)',
            ),
            (candidates(query=""), ':1: "query" is empty; fill it in or remove the line'),
            (candidates(doc_ids="d1"), ':1: needs a list of ids "doc_ids" (found: "d1")'),
            (candidates(doc_ids=["d1", None]), ':1: needs a list of ids "doc_ids" (found: ["d1", null])'),
            (
                candidates(doc_ids=[], teacher_scores=[]),
                ':1: "doc_ids" is empty; give the query a document or remove the line',
            ),
            (candidates(doc_ids=["d1", "d1"]), ':1: "doc_ids" holds "d1" twice; remove one of them'),
            (
                candidates(teacher_scores=[1.0]),
                ':1: 2 "doc_ids" but 1 "teacher_scores"; give every document one',
            ),
            (candidates(doc_texts=["a"]), ':1: 2 "doc_ids" but 1 "doc_texts"; give every document one'),
            (candidates(doc_texts=["a", 1]), ':1: needs a list of strings "doc_texts" (found: ["a", 1])'),
            (
                candidates(teacher_scores=...),
                ':1: needs a list of numbers "teacher_scores" (keys found: query_id, query, doc_ids)',
            ),
            (
                candidates(teacher_scores=[1.0, "2"]),
                ':1: needs a list of numbers "teacher_scores" (found: [1.0, "2"])',
            ),
            (
                candidates(teacher_scores=[True, 2]),
                ':1: needs a list of numbers "teacher_scores" (found: [true, 2])',
            ),
            (
                candidates(teacher_scores=[1.0, float("nan")]),
                ':1: "teacher_scores" holds nan; scores must be finite',
            ),
            (
                candidates(teacher_scores=[float("-inf"), 1.0]),
                ':1: "teacher_scores" holds -inf; scores must be finite',
            ),
            (
                candidates(teacher_scores=[10**400, 1.0]),
                ':1: "teacher_scores" holds a number that is too large; scores must be finite',
            ),
            (
                CANDIDATES + CANDIDATES,
                ':2: duplicate query id "q1" (first on line 1); remove or rename one of them',
            ),
        ],
    )
    def test_bad_candidates(self, tmp_path, content, problem):
        assert problem_of(read_candidates, put(tmp_path, "c.jsonl", content)) == problem

    def test_unknown_documents_when_the_ids_are_known(self, folder):
        path = folder / "candidates.jsonl"
        assert problem_of(read_candidates, path, document_ids={"d1"}) == (
            ':1: document "d2" is not in the corpus; remove it or choose the corpus that has it'
        )


class TestRuns:
    def test_a_query_may_be_named_by_a_number_sign(self, tmp_path):
        assert read_run(put(tmp_path, "run", "# Q0 d1 1 2.5 mine\n")) == {"#": {"d1": 2.5}}
        assert read_judgements(put(tmp_path, "qrels", "#\td1\t1\n")) == {"#": {"d1": 1}}

    def test_headings_and_comments_are_no_results(self, tmp_path):
        path = put(tmp_path, "run", "# ours\nqid Q0 docid rank score name\nq Q0 d1 1 2.5 mine\n")
        assert read_run(path) == {"q": {"d1": 2.5}}

    def test_best_first_and_ties_as_given(self, tmp_path):
        run = {"q": {"d1": 1.0, "d2": 2.5, "d3": 1.0}}
        assert write_run(tmp_path / "run.txt", run, "mine") == 3
        assert (tmp_path / "run.txt").read_text() == (
            "q Q0 d2 1 2.5 mine\nq Q0 d1 2 1.0 mine\nq Q0 d3 3 1.0 mine\n"
        )
        assert read_run(tmp_path / "run.txt") == run

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("", ": holds no results; check that it is the file you mean"),
            ("q d 1 2\n", ":1: needs 6 columns: query, Q0, document, rank, score, name (found: 4)"),
            ("q Q0 d 1 high x\n", ":1: needs a number as score (found: high)"),
            ("\nq Q0 d 1 inf x\n", ":2: score inf is not finite; remove the line"),
            (
                "q Q0 d 1 2 x\nq Q0 d 2 1 x\n",
                ':2: duplicate result for query and document "q d" (first on line 1); '
                "remove or rename one of them",
            ),
        ],
    )
    def test_bad_runs(self, tmp_path, content, problem):
        assert problem_of(read_run, put(tmp_path, "run.txt", content)) == problem

    def test_an_id_that_no_run_can_hold_is_refused_before_it_is_lost(self, tmp_path):
        write_run(tmp_path / "run.txt", {"q": {"d": 1.0}})
        for bad in ("a b", "a\tb", "", "a\u2003b"):
            with pytest.raises(OutputError, match=r"run.txt: can't hold the id"):
                write_run(tmp_path / "run.txt", {"q": {bad: 1.0}})
        assert read_run(tmp_path / "run.txt") == {"q": {"d": 1.0}}


class TestSources:
    @pytest.mark.parametrize(
        "name", [name for name in corpora.NAMES if (corpora.path(name) / "corpus.jsonl").exists()]
    )
    def test_bundled_names_work_wherever_a_collection_does(self, name, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        ids = {document.document_id for document in read_documents(name)}
        queries = {query.query_id for query in read_queries(name)}
        assert len(ids) >= 26
        assert {"train", "test"} == {path.stem for path in (corpora.path(name) / "qrels").glob("*.tsv")}
        for split in ("train", "test"):
            assert read_judgements(name, split, document_ids=ids).keys() <= queries
        assert {entry.query_id for entry in read_candidates(name, document_ids=ids)} <= queries

    def test_a_local_collection_comes_before_a_bundled_one(self, folder, monkeypatch):
        monkeypatch.chdir(folder.parent)
        (folder.parent / "gatrocraptic").symlink_to(folder)
        assert list(read_documents("gatrocraptic")) == DOCUMENTS
        (folder.parent / "gatrocraptic").unlink()
        (folder.parent / "gatrocraptic").mkdir()  # say, the output of a run: no collection
        assert len(list(read_documents("gatrocraptic"))) == 26

    def test_a_file_beside_a_corpus(self, tmp_path, monkeypatch):
        corpus, candidates = tmp_path / "corpus.jsonl", tmp_path / "candidates.jsonl.gz"
        for path in (corpus, candidates):
            path.touch()
        monkeypatch.chdir(tmp_path)
        assert (
            file_beside(tmp_path, "candidates.jsonl") == file_beside(corpus, "candidates.jsonl") == candidates
        )
        assert file_beside(tmp_path, "dictionary.jsonl") is None
        assert (
            file_beside("gatrocraptic", "dictionary.jsonl")
            == corpora.path("gatrocraptic") / "dictionary.jsonl"
        )
        for elsewhere in ("cranfield", "beir/scifact", "s3://bucket/beir"):  # nothing of the current folder's
            assert file_beside(elsewhere, "corpus.jsonl") is None

    def test_names_of_nothing_say_what_was_tried(self):
        tried = (
            ": no such file or folder, bundled corpus (coined, gatrocraptic) or ir_datasets id; "
            "check the spelling"
        )
        assert problem_of(read_documents, "gatrocraptc") == tried
        assert problem_of(read_queries, "no-such/collection") == tried

    @pytest.mark.parametrize(
        "path", ["./missing", "missing.jsonl", "/missing/corpus.tsv", "missing.jsonl.gz", "../missing"]
    )
    def test_paths_are_not_asked_of_ir_datasets(self, path):
        assert problem_of(read_documents, path) == ": no such file; check the path"


class TestIrDatasets:
    @pytest.fixture(scope="class")
    def registered(self, tmp_path_factory) -> str:
        """A data set as a user registers one: local files for documents, queries and judgements."""
        import ir_datasets

        folder = tmp_path_factory.mktemp("registered")
        (folder / "docs.tsv").write_text("d1\tone\nd2\ttwo words\n")
        (folder / "queries.tsv").write_text("q1\twhat\nq2\twho\n")
        (folder / "test.qrels").write_text("q1 0 d1 2\nq2 0 d2 0\n")
        files = {"docs_tsv": str(folder / "docs.tsv"), "queries_tsv": str(folder / "queries.tsv")}
        texts = ir_datasets.create_dataset(**files)
        judged = ir_datasets.create_dataset(**files, qrels_trec=str(folder / "test.qrels"))
        ir_datasets.registry.register("sparse-adapt-local", texts)
        ir_datasets.registry.register("sparse-adapt-local/test", judged)
        return "sparse-adapt-local"

    def test_documents_queries_and_judgements(self, registered):
        for name in (registered, f"{registered}/test", Path(registered)):
            assert list(read_documents(name)) == [Document("d1", "one"), Document("d2", "two words")]
            assert list(read_queries(name)) == [Query("q1", "what"), Query("q2", "who")]
        expected = {"q1": {"d1": 2}, "q2": {"d2": 0}}
        assert read_judgements(f"{registered}/test", document_ids={"d1", "d2"}) == expected
        assert read_judgements(registered, "test") == expected

    def test_titles_stay_apart_from_texts(self):
        import ir_datasets
        from ir_datasets.datasets.base import Dataset
        from ir_datasets.formats import BaseDocs

        rows = [type("Row", (), {"doc_id": "d1", "title": "T", "text": "one"})()]

        class Docs(BaseDocs):
            def docs_iter(self):
                return iter(rows)

        ir_datasets.registry.register("sparse-adapt-titled", Dataset(Docs()))
        assert list(read_documents("sparse-adapt-titled")) == [Document("d1", "one", "T")]

    def test_an_entry_without_judgements(self, registered):
        assert problem_of(read_judgements, registered, "dev") == (
            ": this entry of ir_datasets has no qrels; choose one that has"
        )

    def test_a_failing_entry_gives_one_line(self, tmp_path):
        import ir_datasets

        broken = ir_datasets.create_dataset(docs_tsv=str(tmp_path / "missing.tsv"))
        ir_datasets.registry.register("sparse-adapt-broken", broken)
        assert problem_of(read_documents, "sparse-adapt-broken").startswith(
            ": ir_datasets can't read its docs ("
        )

    def test_duplicates_and_unknown_documents_are_found_here_too(self, registered, tmp_path):
        import ir_datasets

        path = put(tmp_path, "docs.tsv", "d1\tone\nd1\ttwo\n")
        ir_datasets.registry.register("sparse-adapt-double", ir_datasets.create_dataset(docs_tsv=str(path)))
        assert 'duplicate document id "d1"' in problem_of(read_documents, "sparse-adapt-double")
        assert 'document "d2" is not in the corpus' in problem_of(
            read_judgements, f"{registered}/test", document_ids={"d1"}
        )


# -- what is written is read back ----------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda text: bool(text.strip())
)
plain_ids = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=8)
scores = st.floats(allow_nan=False, allow_infinity=False)
compressed = st.sampled_from(["", ".gz"])


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("round")


@given(
    st.lists(st.builds(Document, ids, texts, texts), min_size=1, unique_by=lambda d: d.document_id),
    compressed,
)
def test_documents_round_trip(place, documents, ending):
    assert write_documents(place / f"corpus.jsonl{ending}", documents) == len(documents)
    assert list(read_documents(place / f"corpus.jsonl{ending}")) == documents


@given(
    st.lists(
        st.builds(Query, ids, texts.filter(str.strip), texts),
        min_size=1,
        unique_by=lambda query: query.query_id,
    )
)
def test_queries_round_trip(place, queries):
    write_queries(place / "queries.jsonl", queries)
    assert list(read_queries(place / "queries.jsonl")) == queries


@st.composite
def candidate_lists(draw) -> Candidates:
    document_ids = draw(st.lists(ids, min_size=1, max_size=5, unique=True))
    count = len(document_ids)
    return Candidates(
        draw(ids),
        draw(texts.filter(str.strip)),
        tuple(document_ids),
        tuple(draw(st.lists(scores, min_size=count, max_size=count))),
        tuple(draw(st.lists(texts, min_size=count, max_size=count))) if draw(st.booleans()) else (),
    )


@given(st.lists(candidate_lists(), min_size=1, max_size=4))
def test_candidates_round_trip(place, entries):
    entries = [replace(entry, query_id=f"{number} {entry.query_id}") for number, entry in enumerate(entries)]
    write_candidates(place / "candidates.jsonl", entries)
    assert list(read_candidates(place / "candidates.jsonl")) == entries


@given(st.dictionaries(plain_ids, st.dictionaries(plain_ids, scores, min_size=1), min_size=1))
@settings(max_examples=50)
def test_runs_round_trip(place, run):
    assert write_run(place / "run.txt.gz", run) == sum(map(len, run.values()))
    assert read_run(place / "run.txt.gz") == run


@given(st.dictionaries(plain_ids, st.dictionaries(plain_ids, st.integers(-1, 5), min_size=1), min_size=1))
def test_judgements_round_trip(place, judgements):
    path = place / "qrels" / "test.tsv"
    assert write_judgements(path, judgements) == sum(map(len, judgements.values()))
    assert read_judgements(path) == judgements


@given(st.binary(max_size=60))
def test_any_bytes_give_documents_or_one_line(place, content):
    for name, read in itertools.product(
        ("x.jsonl", "x.tsv", "x", "x.gz"), (read_documents, read_queries, read_run)
    ):
        path = put(place, name, content)
        try:
            list(read(path))
        except InputError as error:
            assert "\n" not in str(error)


class TestAsPeopleHaveThem:
    def test_csv(self, tmp_path):
        path = put(tmp_path, "corpus.csv", 'docid,contents,title\n1,"a, b",T\n2,c,\n')
        assert list(read_documents(path)) == [Document("1", "a, b", "T"), Document("2", "c")]
        assert list(read_queries(put(tmp_path, "q.csv", "qid;question\n1;a, b\n"))) == [Query("1", "a, b")]
