"""General passages among the candidates of queries, on the real model."""

import numpy as np
import pytest

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.objectives import general_candidates
from sparse_adapt.objectives.general_candidates import with_general
from sparse_adapt.objectives.scores import relevant_to
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.stages.distill import DISTILL, Distill
from sparse_adapt.stages.inputs import Inputs
from sparse_adapt.synthetic.background import background_pairs

DOCUMENTS = {"a": "The capital of the province has a port.", "b": "A baker shapes the loaves before dawn."}
ENTRIES = [
    Candidates("1", "which country has the longest coast", ("a", "b"), (4.0, -2.5)),
    Candidates("2", "bread before dawn", ("b", "a"), (9.0, 1.0)),
]


SOME = background_pairs()[:60]  # read in a fortieth of the time of all


@pytest.fixture(scope="module")
def model() -> SparseEncoder:
    return SparseEncoder.load("splade-tiny")


@pytest.fixture(autouse=True)
def few_passages(monkeypatch):
    monkeypatch.setattr(general_candidates, "background_pairs", lambda: SOME)


def test_passages_are_those_that_the_model_finds_first(model):
    entries, read = with_general(model, ENTRIES, DOCUMENTS, 3)
    passages = [passage.full_text for passage, _ in SOME]
    queries = encode(model, [entry.query for entry in ENTRIES], "query")
    scores = (queries @ encode(model, passages, "document").T).toarray()
    for entry, row in zip(entries, scores, strict=True):
        best = {passages[place] for place in np.argsort(-row)[:3]}
        assert {read[name] for name in entry.document_ids[2:]} == best


def test_passages_are_as_relevant_as_the_least_of_the_corpus(model):
    entries, read = with_general(model, ENTRIES, DOCUMENTS, 4)
    assert [entry.teacher_scores for entry in entries] == [(4.0, *[-2.5] * 5), (9.0, *[1.0] * 5)]
    assert [entry.document_ids[:2] for entry in entries] == [("a", "b"), ("b", "a")]
    assert [relevant_to(entry).tolist() for entry in entries] == [[True, *[False] * 5]] * 2
    assert read.keys() | DOCUMENTS.keys() == set().union(*(entry.document_ids for entry in entries))


def test_a_corpus_keeps_its_own_documents_whatever_they_are_called(model):
    taken = {f"general passage {number}": "A document of the corpus." for number in range(len(SOME))}
    _, read = with_general(model, ENTRIES, DOCUMENTS | taken, 2)
    assert read and not taken.keys() & read.keys()


def test_without_passages_candidates_are_as_given(model):
    assert with_general(model, ENTRIES, DOCUMENTS, 0) == (ENTRIES, {})


@pytest.mark.parametrize("most", [0, 4])
def test_distill_reads_them_beside_the_candidates(most, tmp_path):
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "a", "text": "The capital of the province has a port."}\n'
        '{"_id": "b", "text": "A baker shapes the loaves before dawn."}\n'
    )
    (tmp_path / "candidates.jsonl").write_text(
        '{"query_id": "1", "query": "bread before dawn", "doc_ids": ["b", "a"], "teacher_scores": [9.0, 1.0]}\n'
    )
    places = {"corpus": str(tmp_path), "candidates": str(tmp_path / "candidates.jsonl")}
    settings = Distill(general_candidates=most, steps=1, labeller="none")
    task = DISTILL.build(SparseEncoder.load("splade-tiny"), Inputs("splade-tiny", places), settings)
    assert len(task.matched.scored.candidates[0].document_ids) == 2 + most
