"""What a caller gives, in memory or as a path, becomes the same records."""

from dataclasses import dataclass

import pandas
import pytest

from sparse_adapt.collection.arguments import (
    Corpus,
    definitions_of,
    judgements_of,
    queries_of,
)
from sparse_adapt.collection.glossary import Definition
from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.errors import InputError

PAIR = [Document("a", "A saw.", "Tools"), Document("b", "A plane.")]


@dataclass
class Row:
    """As ir_datasets gives its documents."""

    doc_id: str
    text: str
    title: str = ""


@pytest.mark.parametrize(
    "given",
    [
        [{"_id": "a", "title": "Tools", "text": "A saw."}, {"_id": "b", "text": "A plane."}],
        pandas.DataFrame({"id": ["a", "b"], "title": ["Tools", None], "text": ["A saw.", "A plane."]}),
        iter(PAIR),
        [Row("a", "A saw.", "Tools"), Row("b", "A plane.")],
        Corpus.of(PAIR),
    ],
    ids=["dictionaries", "a data frame", "documents, once", "objects", "a corpus"],
)
def test_documents_in_memory_are_the_same_as_in_a_file(given):
    assert list(Corpus.of(given).read()) == PAIR


def test_a_data_frame_of_polars_gives_its_rows():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": ["a", "b"], "title": ["Tools", ""], "text": ["A saw.", "A plane."]})
    assert list(Corpus.of(frame).read()) == PAIR


def test_texts_are_counted_and_a_dictionary_has_ids():
    assert list(Corpus.of(["A saw.", ""]).read()) == [Document("1", "A saw."), Document("2", "")]
    assert list(Corpus.of({"a": "A saw.", 7: "A plane."}).read()) == [
        Document("a", "A saw."),
        Document("7", "A plane."),
    ]
    assert list(Corpus.of([{"text": "A saw."}]).read()) == [Document("1", "A saw.")]


def test_integers_of_a_data_frame_are_ids():
    assert [
        each.document_id for each in Corpus.of(pandas.DataFrame({"id": [4, 9], "text": ["x", "y"]})).read()
    ] == [
        "4",
        "9",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([{"_id": "a", "text": "x"}, {"_id": "b"}], 'documents:2: needs a string "text" (keys found: _id)'),
        ([{"_id": "a", "text": 5}], 'documents:1: needs a string "text" (found: 5)'),
        ([{"_id": "a", "text": "x"}, {"_id": "a", "text": "y"}], 'documents:2: duplicate document id "a"'),
        ([], "documents: holds no documents"),
        ([object()], 'documents:1: needs a string "text" (keys found: none)'),
        ({"_id": "a", "text": "x"}, "documents: one dictionary, where a list of them is needed"),
        (7, "documents: can't be read from int"),
        (b"text", "documents: can't be read from bytes"),
        ([Document("a", "x"), Document("b", None)], "documents:2: needs a string text (found: None)"),
        ([Document("a", "x", None)], "documents:1: needs a string title (found: None)"),
        ([Document(7, "x")], "documents:1: needs a string document_id (found: 7)"),
        (pandas.DataFrame({"text": ["x", None]}), 'documents:2: needs a string "text" (found: null)'),
    ],
)
def test_a_bad_document_is_named_by_its_place(given, said):
    with pytest.raises(InputError) as raised:
        list(Corpus.of(given).read())
    assert str(raised.value).startswith(said)


def test_a_place_is_read_anew_and_things_in_memory_are_held(zorvex_collection, tmp_path, twelve_documents):
    named = Corpus.of(zorvex_collection)
    assert (named.name, named.placed(tmp_path)) == (str(zorvex_collection), str(zorvex_collection))
    held = Corpus.of(iter(twelve_documents))
    assert list(held.read()) == list(held.read()) == twelve_documents
    assert list(Corpus.of(held.placed(tmp_path / "given")).read()) == twelve_documents


def test_queries_are_texts_pairs_or_dictionaries(zorvex_collection):
    assert queries_of(["who pays"]) == [Query("1", "who pays")]
    assert queries_of({"q": "who pays"}) == [Query("q", "who pays")]
    assert queries_of([{"_id": "q", "text": "who pays", "kind": "semantic"}]) == [
        Query("q", "who pays", "semantic")
    ]
    assert len(queries_of(zorvex_collection)) == 6
    with pytest.raises(InputError, match='queries:1: "text" is empty'):
        queries_of([" "])


def test_judgements_are_grades_lists_or_rows(zorvex_collection):
    wanted = {"q": {"a": 1, "b": 1}}
    assert judgements_of({"q": {"a": 1, "b": 1}}) == judgements_of({"q": ["a", "b"]}) == wanted
    rows = pandas.DataFrame({"query-id": ["q", "q"], "corpus-id": ["a", "b"], "score": [1, 1]})
    assert judgements_of(rows) == wanted
    assert judgements_of([{"query_id": "q", "document_id": d, "grade": 1} for d in "ab"]) == wanted
    assert set(judgements_of(zorvex_collection)) == {"q4", "q5", "q6"}
    with pytest.raises(InputError, match='judgements:1: needs a number "grade"'):
        judgements_of([{"query_id": "q", "document_id": "a"}])


def test_definitions_are_a_dictionary_pairs_or_rows(zorvex_collection):
    wanted = [Definition("zorvex", "how a team spends")]
    assert definitions_of({"zorvex": "how a team spends"}) == wanted
    assert definitions_of([("zorvex", "how a team spends")]) == wanted
    assert definitions_of(
        [{"term": "zorvex", "definition": "how a team spends", "examples": ["a zorvex"]}]
    ) == [Definition("zorvex", "how a team spends", ("a zorvex",))]
    assert definitions_of(zorvex_collection)[0].term == "zorvex"
    with pytest.raises(InputError, match='definitions:1: needs a string "definition"'):
        definitions_of([{"term": "zorvex"}])
