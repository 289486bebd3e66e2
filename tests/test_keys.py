"""JSON as people have it: keys known as headings are, lists, parts of one corpus, judgements, endings of names."""

import json
import re

import pytest

from sparse_adapt.collection.arguments import Corpus, definitions_of, queries_of
from sparse_adapt.collection.examples import read_candidates, read_pairs, read_triplets
from sparse_adapt.collection.glossary import Definition, read_dictionary
from sparse_adapt.collection.readers import (
    Document,
    Query,
    read_documents,
    read_judgements,
    read_queries,
)
from sparse_adapt.collection.sources import of_collection
from sparse_adapt.errors import InputError
from sparse_adapt.files.steps import stamp

QUESTIONS = [{"QuestionID": "q1", "Question": "why does it leak", "Group": 1},
             {"QuestionID": "q2", "Question": "who shut it", "Group": 2}]  # fmt: skip
ASKED = [Query("q1", "why does it leak"), Query("q2", "who shut it")]
ENTRIES = [{"term": "brenkel", "definition": "a plate"}, {"term": "zorbula", "definition": "a gate"}]
DEFINED = [Definition("brenkel", "a plate"), Definition("zorbula", "a gate")]


def lines(items):
    return "".join(f"{json.dumps(item)}\n" for item in items)


def put(folder, name, content):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize(
    "content",
    [QUESTIONS, lines(QUESTIONS), "QuestionID,Question,Group\nq1,why does it leak,1\nq2,who shut it,2\n"],
)
def test_keys_are_known_as_headings_are(tmp_path, content):
    name = "q.json" if isinstance(content, list) else "q.csv" if content.startswith("Q") else "q.jsonl"
    assert list(read_queries(put(tmp_path, name, content))) == ASKED


@pytest.mark.parametrize(
    "keys", [("_ID", "Text", "Title"), ("docID", "passageText", "DOC TITLE"), ("Nr.", "Body*", "Name:")]
)
@pytest.mark.parametrize("write", [list, lines])
def test_keys_of_documents(tmp_path, keys, write):
    items = [dict(zip(keys, row, strict=True)) for row in (("a", "one", "T"), ("b", "two", None))]
    path = put(tmp_path, "c.json" if write is list else "c.jsonl", write(items))
    assert list(read_documents(path)) == [Document("a", "one", "T"), Document("b", "two")]
    assert list(Corpus.of(items).read()) == [Document("a", "one", "T"), Document("b", "two")]


def test_columns_name_keys_too(tmp_path):
    items = [{"id": 1, "Lfd": "a", "Was": "wer zahlt", "text": "no"}, {"id": 2, "Lfd": "b", "Was": "wann"}]
    for name, content in (("c.json", items), ("c.jsonl", lines(items))):
        path = put(tmp_path, name, content)
        assert [(each.document_id, each.text) for each in Corpus.of(path, ["id=lfd", "text=Was"]).read()] == [
            ("a", "wer zahlt"),
            ("b", "wann"),
        ]
        assert queries_of(path, ["query_id=Lfd", "query=Was"]) == [
            Query("a", "wer zahlt"),
            Query("b", "wann"),
        ]
        assert definitions_of(path, ["term=Lfd", "definition=Was"]) == [
            Definition("a", "wer zahlt"),
            Definition("b", "wann"),
        ]
        for columns in (["text=Wer", "id=Lfd"], ["text=Was", "id=Nr"]):
            with pytest.raises(
                InputError, match=r'needs a string "W?N?[er]+" \(keys found: id, Lfd, Was, text\)'
            ):
                list(Corpus.of(path, columns).read())


def test_ids_that_are_numbers_of_entries_are_said(tmp_path, capfd):
    path = put(tmp_path, "c.json", [{"text": "a", "Group": 1}, {"text": "b", "Group": 1}])
    assert [each.document_id for each in read_documents(path)] == ["1", "2"]
    assert capfd.readouterr().err == (
        f"{path}: no key is taken for id (there are 'Group'); each id is the entry's number\n"
    )


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (ENTRIES, DEFINED),
        (
            [{"Begriff": "brenkel", "Bedeutung": "a plate"}, {"Begriff": "zorbula", "Bedeutung": "a gate"}],
            DEFINED,
        ),
        (
            [
                {"acronym": "D", "expansion": "dog"},
                {"acronym": "ABC", "expansion": "a cat", "description": "what"},
            ],
            [Definition("D", "dog"), Definition("ABC", "a cat"), Definition("ABC", "what")],
        ),
    ],
)
def test_a_glossary_is_a_list_as_well_as_lines(tmp_path, content, found):
    assert read_dictionary(put(tmp_path, "g.json", content)) == found
    assert read_dictionary(put(tmp_path, "g.jsonl", lines(content))) == found
    assert definitions_of(content) == found


@pytest.mark.plugins("files")
@pytest.mark.parametrize("name", ["cards.txt", "onto.owl", "glossary", "g.docx", "g.txt.gz"])
def test_an_ending_that_no_glossary_has_is_refused_with_those_it_may_have(tmp_path, name):
    with pytest.raises(InputError) as caught:
        read_dictionary(put(tmp_path, name, "brenkel\ta plate\n"))
    known = ".tsv, .csv, .xlsx, .xlsm, .parquet, .jsonl, .ndjson, .json, .rdf, .skos, .ttl, .nt, .n3, .jsonld, .obo"
    assert "the end of its name doesn't say what it is" in str(caught.value) and known in str(caught.value)


@pytest.mark.parametrize("reader", [read_candidates, read_pairs, read_triplets])
def test_examples_for_training_are_json_by_their_names(tmp_path, reader):
    with pytest.raises(
        InputError, match=r"doesn't say what it is \(\.csv\).* one of \.jsonl, \.ndjson, \.json, which"
    ):
        list(reader(put(tmp_path, "x.csv", "query,doc_id\na,b\n")))


def test_pairs_may_be_a_list(tmp_path):
    assert [pair.query for pair in read_pairs(put(tmp_path, "p.json", [{"query": "a", "doc_id": 1}]))] == [
        "a"
    ]


# -- parts of one corpus --------------------------------------------------------------------------

PARTS = {"docs01.jsonl": lines([{"id": "d2", "contents": "the gate"}]),
         "docs00.jsonl": lines([{"id": "d1", "contents": "the pump"}])}  # fmt: skip
BOTH = [Document("d1", "the pump"), Document("d2", "the gate")]


def test_the_parts_of_a_corpus_are_read_in_the_order_of_their_names(tmp_path, capfd):
    for name, content in PARTS.items():
        put(tmp_path, name, content)
    put(tmp_path, "README.md", "# About the corpus")
    assert list(read_documents(tmp_path)) == BOTH
    assert f"{tmp_path}: no corpus.jsonl, so its 2 .jsonl files are read\n" in capfd.readouterr().err
    assert list(Corpus.of(tmp_path, {"id": "ID", "text": "contents"}).read()) == BOTH
    before = stamp(of_collection(tmp_path, ("corpus.jsonl",)))
    put(tmp_path, "docs02.jsonl", lines([{"id": "d1", "contents": "again"}]))
    assert stamp(of_collection(tmp_path, ("corpus.jsonl",))) != before
    problem = r'duplicate document id "d1" \(documents of its files 1 and 3\); remove or rename one of them'
    with pytest.raises(InputError, match=f"^{re.escape(str(tmp_path))}: {problem}"):
        list(read_documents(tmp_path))


@pytest.mark.plugins("files")
def test_parts_of_parquet_and_compressed_ones(tmp_path):
    pandas = pytest.importorskip("pandas")
    (tmp_path / "tables").mkdir()
    for number, document in enumerate(BOTH):
        frame = pandas.DataFrame({"_id": [document.document_id], "text": [document.text]})
        frame.to_parquet(tmp_path / "tables" / f"train-0000{number}-of-00002.parquet")
        frame.to_csv(tmp_path / f"part{number}.csv.gz", index=False)
    assert list(read_documents(tmp_path / "tables")) == list(read_documents(tmp_path)) == BOTH


@pytest.mark.parametrize(
    "others", [["queries.jsonl"], ["a.jsonl", "candidates.jsonl"], ["a.jsonl", "b.csv"], ["manifest.json"]]
)
def test_other_files_are_no_parts(tmp_path, others):
    for name in others:
        put(tmp_path, name, '{"_id": "a", "text": "b"}\n')
    with pytest.raises(InputError, match=r"holds no corpus\.jsonl \(found: "):
        read_documents(tmp_path)


@pytest.mark.plugins("files")
def test_texts_are_read_and_what_lies_beside_them_is_counted(tmp_path, capfd):
    put(tmp_path, "a.md", "# Title\n\ntext")
    put(tmp_path, "export.jsonl", '{"_id": "a", "text": "b"}\n')
    assert list(read_documents(tmp_path)) == [Document("a.md", "text", "Title")]
    assert "1 files of other kinds are left out (1 .jsonl)" in capfd.readouterr().err


# -- judgements -----------------------------------------------------------------------------------


JUDGED = [
    {"query-id": "q1", "corpus-id": "d1", "score": 2},
    {"query-id": "q1", "corpus-id": "d2", "score": 0.0},
]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("test.jsonl", lines(JUDGED)),
        ("test.json", [{"queryId": "q1", "docId": "d1", "Rel": "2"}, {"queryId": "q1", "docId": "d2", "Rel": 0}]),
        ("test.csv", "query-id,corpus-id,score\nq1,d1,2\nq1,d2,0\n"),
        ("test.jsonl.gz", None),
    ],
)  # fmt: skip
def test_judgements_of_a_folder_may_be_json_or_any_table(tmp_path, name, content):
    import gzip

    if content is None:
        (tmp_path / "qrels").mkdir()
        packed = gzip.compress(
            b'{"qid": "q1", "pid": "d1", "label": 2}\n{"qid": "q1", "pid": "d2", "label": 0}\n'
        )
        (tmp_path / "qrels" / name).write_bytes(packed)
    else:
        put(tmp_path, f"qrels/{name}", content)
    put(tmp_path, "qrels/train.tsv", "q9\td9\t1\n")
    assert read_judgements(tmp_path) == {"q1": {"d1": 2, "d2": 0}}
    with pytest.raises(InputError, match='no split "dev"; there are test, train'):
        read_judgements(tmp_path, "dev")


def test_a_tsv_counts_before_json_of_the_same_split(tmp_path):
    put(tmp_path, "qrels/test.jsonl", '{"query-id": "other", "corpus-id": "d1", "score": 1}\n')
    put(tmp_path, "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    assert read_judgements(tmp_path) == {"q1": {"d1": 1}}


@pytest.mark.parametrize("score", ["many", None, True, 1.5])
def test_a_grade_of_json_is_a_whole_number(tmp_path, score):
    path = put(tmp_path, "q.jsonl", lines([{"query-id": "q", "corpus-id": "d", "score": score}]))
    with pytest.raises(InputError, match=r"q\.jsonl:1: needs a (whole )?number as grade"):
        read_judgements(path)
