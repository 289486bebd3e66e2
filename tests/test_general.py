"""The general questions that come with the package, and the background passages that stages learn from."""

import re
from collections import Counter

import numpy as np
import pytest

from sparse_adapt.collection.readers import Document, Query, write_documents, write_judgements, write_queries
from sparse_adapt.errors import InputError
from sparse_adapt.retrieve.evaluate import Collection
from sparse_adapt.selection.general import general_rows, general_sentences, general_table, question_word
from sparse_adapt.selection.questions import cautions, general_collection
from sparse_adapt.synthetic.background import DATA, background_pairs
from sparse_adapt.synthetic.general import general_measure

# -- the files ------------------------------------------------------------------------------------


def test_thousands_of_questions_of_three_kinds_measure_over_more_passages():
    documents, questions, judgements = general_measure()
    kinds = Counter(question.kind for question in questions)
    assert set(kinds) == {"forum", "wiki", "search"} and min(kinds.values()) >= 400
    assert len(documents) >= 8_000 and len(questions) >= 2_400
    names = {document.document_id for document in documents}
    assert len(names) == len(documents)
    assert len({question.query_id for question in questions}) == len(questions) == len(judgements)
    assert all(len(judged) == 1 and judged.keys() <= names for judged in judgements.values())


def test_background_passages_are_short_with_a_question_each():
    pairs = background_pairs()
    assert 2_000 < len(pairs) < 3_000
    assert all(passage.document_id == question.query_id for passage, question in pairs)
    assert len({question.text for _, question in pairs}) == len(pairs)
    lengths = [len(passage.text.split()) for passage, _ in pairs]
    assert min(lengths) >= 12 and max(lengths) <= 110


def test_nothing_that_measures_also_teaches():
    documents, questions, _ = general_measure()
    passages, asked = zip(*background_pairs(), strict=True)
    assert not {_plain(each.text) for each in questions} & {_plain(each.text) for each in asked}
    measured = set().union(*(_tens(each.text) for each in documents))
    assert not any(_tens(each.text) & measured for each in passages)


def _plain(text):
    return " ".join(text.lower().split())


def _tens(text):
    """Every ten words in a row."""
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[start : start + 10]) for start in range(len(words) - 9)}


def test_both_files_stay_small():
    assert len((DATA / "general_measure.jsonl.xz").read_bytes()) <= 4 * 2**20
    assert len((DATA / "background.jsonl.xz").read_bytes()) <= 3 * 2**20


# -- what is asked --------------------------------------------------------------------------------


def test_fewer_questions_are_an_even_share_of_each_kind_over_as_large_a_share_of_passages():
    few = general_collection(most=30)
    assert Counter(query.kind for query in few.queries) == {"forum": 10, "wiki": 10, "search": 10}
    documents, questions, _ = general_measure()
    assert len(few.documents) == round(30 / len(questions) * len(documents))
    names = {document.document_id for document in few.documents}
    assert all(few.judgements[query.query_id].keys() <= names for query in few.queries)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("What is a heptad?", "what"),
        ("in what year did it end", "what"),
        ("Whose idea was it?", "who"),
        ("is the butterfly effect real?", "yes or no"),
        ("working in the usa for living expenses only", "other"),
        ("the showhow of it", "other"),
    ],
)
def test_a_question_is_known_by_its_word(text, word):
    assert question_word(text) == word


QUERIES = [Query("a", "what", "forum"), Query("b", "how", "forum"), Query("c", "what", "wiki")]
OURS = {"ndcg@10": np.array([0.5, 1.0, 0.0]), "p@1": np.array([0.0, 1.0, 0.0])}
THEIRS = {"ndcg@10": np.array([1.0, 1.0, 0.3]), "p@1": np.array([1.0, 1.0, 0.0])}


def test_figures_stand_for_all_for_each_kind_and_for_each_word():
    rows = general_rows(QUERIES, OURS, THEIRS)
    assert [(row.by, row.group, row.questions) for row in rows] == [
        ("all", "all", 3),
        ("kind", "forum", 2),
        ("kind", "wiki", 1),
        ("word", "what", 2),
        ("word", "how", 1),
    ]
    assert rows[0].model == pytest.approx(0.5) and rows[0].baseline == pytest.approx(2.3 / 3)
    assert rows[1].change == pytest.approx(-0.25) and rows[3].change == pytest.approx(-0.4)
    assert (rows[0].first, rows[0].first_baseline) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    # changes of -.5, 0 and -.3: a standard error of .1453, 1.96 of them to either side; of one, nothing is known
    assert (rows[0].low, rows[0].high) == (pytest.approx(-0.5514, abs=1e-4), pytest.approx(0.0181, abs=1e-4))
    assert (rows[2].low, rows[2].high) == (pytest.approx(-0.3 - 1.96), pytest.approx(-0.3 + 1.96))


def test_without_a_baseline_the_interval_is_of_the_mean():
    whole = general_rows(QUERIES, OURS, None)[0]
    assert whole.baseline is None and whole.low < 0.5 < whole.high
    keys = [column.key for column in general_table([whole]).columns]
    assert keys == ["group", "questions", "model", "low", "high", "first"]


def test_what_is_said_is_as_much_as_may_be_lost_and_of_how_many_questions():
    rows = general_rows(QUERIES, OURS, THEIRS)
    most = f"{-100 * rows[0].low:.1f}"
    said, by_kind = general_sentences(rows)
    assert said == f"loses at most {most} points of nDCG@10 on 3 general questions (forum and wiki), at 95 %"
    assert (
        by_kind
        == "nDCG@10 by kind: forum 1.000 -> 0.750; wiki 0.300 -> 0.000; first passage right 66.7% -> 33.3%"
    )
    gained = general_rows(QUERIES, THEIRS, OURS)
    assert next(general_sentences(gained)).startswith("loses at most 0.0 points")


# -- a collection of one's own --------------------------------------------------------------------


def own(passage="A text of mine.", question="what is mine"):
    documents = (Document("a", passage), Document("b", "Another."))
    return Collection(documents, (Query("q", question),), {"q": {"a": 1}})


def test_what_lessens_a_collection_of_ones_own_is_said():
    passage, question = background_pairs()[0]
    (shared,) = cautions(own(f" {passage.text.upper()}", question.text), 0.5)
    assert shared.startswith("1 of 1 questions and 1 of 2 passages are among those that teach")
    (easy,) = cautions(own(), 0.93)
    assert easy.startswith("nDCG@10 of the first model is 0.930: questions so easy hardly show a loss")
    assert not list(cautions(own(), 0.9)) and not list(cautions(own(), None))


def test_evaluate_says_what_a_collection_of_ones_own_shares(
    tmp_path, tiny_model, zorvex_collection, sparse_adapt
):
    passage, question = background_pairs()[0]
    write_documents(tmp_path / "corpus.jsonl", [Document("a", passage.text), Document("b", "Another.")])
    write_queries(tmp_path / "queries.jsonl", [Query("q", question.text, "mine")])
    write_judgements(tmp_path / "qrels" / "test.tsv", {"q": {"a": 1}})
    asked = ["--collection", str(zorvex_collection), "--general", str(tmp_path)]
    ran = sparse_adapt("evaluate", "--model", str(tiny_model), *asked)
    (said,) = [line for line in ran.messages if "that teach" in line]
    assert said.startswith(f"{tmp_path}: 1 of 1 questions and 1 of 2 passages are among those that teach")
    assert "mine" in ran.out  # a row by kind


def test_a_collection_without_judgements_is_refused_in_one_line(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "a", "text": "x"}\n')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "x"}\n')
    with pytest.raises(InputError) as caught:
        general_collection(str(tmp_path))
    assert "\n" not in str(caught.value) and "qrels" in str(caught.value)
