"""Candidates of a query: who is among them, what stays, what a teacher may not say."""

import math

import numpy as np
import pytest

from sparse_adapt.collection.examples import read_candidates, write_candidates
from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import InputError, ModelError
from sparse_adapt.synthetic.queries import SyntheticQuery
from sparse_adapt.teachers.candidates import gather
from sparse_adapt.teachers.settings import CandidateSettings as Settings
from sparse_adapt.teachers.teacher import (
    Ranker,
    RerankedQuery,
    Reranker,
    Teacher,
    is_cross_encoder,
    is_score_file,
    score_file,
)

DOCUMENTS = [Document(f"d{number}", f"text {number}") for number in range(10)]
QUERIES = [SyntheticQuery("q1", "one", "title", "d3"), SyntheticQuery("q2", "two", "given", "")]


def ranked_by(reranker: Reranker | None = None, **scores: list[float]) -> Teacher:
    """A teacher and a student that give these scores to the ten documents, whatever is asked."""

    def rank(name: str):
        return lambda queries: np.tile(np.array(scores[name], np.float32), (len(queries), 1))

    return Teacher(
        (Ranker("fake", rank("teacher")),), rank("student"), reranker, "reranker" if reranker else ""
    )


TEACHER = [0.0, 1.0, 2.0, 9.0, 8.9, 4.0, 3.0, 0.0, 0.0, 0.0]  # the source d3 first, then d4, d5, d6
STUDENT = [0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 9.0, 8.0, 7.0]  # it finds d7, d8, d9


def test_source_first_then_the_teachers_the_students_and_random_ones():
    settings = Settings(source="keep", count=7, depth=3, from_teacher=2, from_student=2)
    found = gather(QUERIES[:1], DOCUMENTS, ranked_by(teacher=TEACHER, student=STUDENT), settings).candidates[
        0
    ]
    assert found.document_ids[0] == "d3" and len(set(found.document_ids)) == 7
    assert set(found.document_ids[1:3]) <= {"d4", "d5", "d6"}
    assert set(found.document_ids[3:5]) <= {"d7", "d8", "d9"}
    # z-scores: mean 2.79, population deviation 3.3465
    deviation = np.std(TEACHER)
    assert found.teacher_scores[0] == pytest.approx((9.0 - 2.79) / deviation, abs=1e-5)


def test_what_the_teacher_scores_near_the_source_can_be_left_out():
    # from 9 down to the mean of 2.79 are 6.21; a tenth of it lets 8.379 and more count as near: d4
    for near_ones, there in (("keep", True), ("drop", False)):
        settings = Settings(source="keep", count=10, depth=10, from_teacher=9, near=0.1, near_ones=near_ones)
        found = gather(
            QUERIES[:1], DOCUMENTS, ranked_by(teacher=TEACHER, student=STUDENT), settings
        ).candidates[0]
        assert ("d4" in found.document_ids) is there


def test_the_source_is_left_out_and_the_teachers_best_other_stands_first():
    found = gather(
        QUERIES[:1], DOCUMENTS, ranked_by(teacher=TEACHER, student=STUDENT), Settings()
    ).candidates[0]
    assert found.document_ids[0] == "d4" and "d3" not in found.document_ids
    assert len(set(found.document_ids)) == Settings().count


def test_a_query_with_one_document_left_is_left_out(tmp_path):
    path = tmp_path / "teacher.run"
    path.write_text("q1 Q0 d3 1 7.5 x\nq1 Q0 d4 2 2.5 x\n")
    told = ranked_by(score_file(str(path)), teacher=TEACHER, student=STUDENT)
    gathered = gather(QUERIES[:1], DOCUMENTS, told, Settings())
    assert not gathered.candidates and gathered.left_out == QUERIES[:1]


def test_the_others_of_a_panel_are_all_but_the_base_model():
    base, statistics = Ranker("base", lambda queries: 0, True), Ranker("BM25", lambda queries: 1)
    both = Teacher((base, statistics), lambda queries: 2)
    assert both.others.members == (statistics,) and both.others.name == "BM25"
    assert Teacher((base,), lambda queries: 2).others.members == (base,)


def test_a_pair_stays_only_where_the_teacher_finds_the_source():
    low = [9.0, 8.0, 7.0, 6.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0]  # d3 is fourth
    for consistent, kept in ((4, 1), (3, 0)):
        settings = Settings(count=4, consistent=consistent)
        gathered = gather(QUERIES[:1], DOCUMENTS, ranked_by(teacher=low, student=low), settings)
        assert (len(gathered.candidates), len(gathered.left_out)) == (kept, 1 - kept)


def test_a_query_without_a_source_takes_the_teachers_best():
    found = gather(
        QUERIES[1:], DOCUMENTS, ranked_by(teacher=TEACHER, student=STUDENT), Settings()
    ).candidates[0]
    assert found.document_ids[0] == "d3"


def test_candidates_don_t_depend_on_the_other_queries(tmp_path):
    both = gather(QUERIES, DOCUMENTS, ranked_by(teacher=TEACHER, student=STUDENT), Settings()).candidates
    alone = gather(QUERIES[1:], DOCUMENTS, ranked_by(teacher=TEACHER, student=STUDENT), Settings()).candidates
    assert both[1:] == alone
    write_candidates(tmp_path / "candidates.jsonl", both)
    assert list(read_candidates(tmp_path / "candidates.jsonl")) == both


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_a_score_that_is_no_number_is_refused_with_query_and_document(score):
    broken = [*TEACHER[:6], score, *TEACHER[7:]]
    with pytest.raises(InputError, match=r"fake: gives (nan|inf) for query q1 \('one'\) and document d6"):
        gather(QUERIES[:1], DOCUMENTS, ranked_by(teacher=broken, student=STUDENT), Settings())


def test_a_reranker_decides_and_may_not_give_nan_either():
    def prefers_last(query: RerankedQuery, documents):
        return [
            float(document.document_id == "d3") + int(document.document_id[1:]) / 100
            for document in documents
        ]

    reranked = ranked_by(Reranker(prefers_last), teacher=TEACHER, student=STUDENT)
    found = gather(QUERIES[:1], DOCUMENTS, reranked, Settings(source="keep")).candidates[0]
    assert found.teacher_scores[0] == pytest.approx(1.03)
    with pytest.raises(InputError, match="reranker: gives nan for query q1"):
        broken = Reranker(lambda query, documents: [math.nan] * len(documents))
        gather(QUERIES[:1], DOCUMENTS, ranked_by(broken, teacher=TEACHER, student=STUDENT), Settings())


def test_a_file_of_scores_orders_the_pairs_it_names(tmp_path):
    path = tmp_path / "teacher.run"
    path.write_text("q1 Q0 d3 1 7.5 x\nq1 Q0 d4 2 2.5 x\n")
    reranker = score_file(str(path))
    told = ranked_by(reranker, teacher=TEACHER, student=STUDENT)
    found = gather(QUERIES[:1], DOCUMENTS, told, Settings(source="keep")).candidates[0]
    assert dict(zip(found.document_ids, found.teacher_scores, strict=True)) == {"d3": 7.5, "d4": 2.5}


def test_teachers_are_told_apart(tmp_path):
    assert is_score_file("scores.jsonl") and not is_score_file("owner/model")
    (tmp_path / "config.json").write_text('{"architectures": ["BertForSequenceClassification"]}')
    assert is_cross_encoder(str(tmp_path)) and is_cross_encoder("cross-encoder/ms-marco")
    (tmp_path / "config.json").write_text('{"architectures": ["BertModel"]}')
    assert not is_cross_encoder(str(tmp_path))
    (tmp_path / "config.json").write_text("[")
    with pytest.raises(ModelError, match="not a model's configuration"):
        is_cross_encoder(str(tmp_path))
