"""The general questions that come with the package, and the background passages that stages learn from."""

import re
from collections import Counter

import numpy as np
import pytest

from sparse_adapt.collection.readers import Query
from sparse_adapt.selection.general import general_rows, general_table, question_word
from sparse_adapt.selection.questions import general_collection
from sparse_adapt.selection.ruling import at_most
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
    lost = at_most(general_rows(QUERIES, OURS, THEIRS)[0].evidence())
    assert lost == "at most 55.1 points of nDCG@10 on 3 general questions, at 95 % (0.767 to 0.500)"
    assert at_most(general_rows(QUERIES, THEIRS, THEIRS)[0].evidence()).startswith("nothing of nDCG@10")
