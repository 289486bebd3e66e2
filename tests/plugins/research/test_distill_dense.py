"""Distillation of a dense encoder: its terms by hand, what it learns, and what it leaves."""

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from dense_models import tiny_dense

from sparse_adapt.collection.examples import Candidates, write_candidates
from sparse_adapt.collection.readers import Document, write_documents
from sparse_adapt.files.place import Place
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.plugins.research.stages.dense import SCALE, DenseScores
from sparse_adapt.stages.distill import Distill
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.terms.mining import Term, write_terms
from sparse_adapt.training import losses
from sparse_adapt.training.loop import random_at, train

DOCUMENTS = {
    "a": "A zorvex report compares what a team spent.",
    "b": "A nightly backup copies the database to a second server.",
    "c": "The client refuses a certificate that the server sends.",
}
CANDIDATES = [
    Candidates("1", "what a team spent", ("a", "c", "b"), (9.0, 7.0, -8.0)),
    Candidates("2", "copies of the database", ("b", "a"), (8.0, -8.0)),
]
QUICK = {"device": "cpu", "steps": 3, "batch_size": 2, "learning_rate": 1e-3}
NO_ANCHOR = {"kd": 1.0, "rank": 1.0, "contrast": 1.0, "anchor": 0.0}


@pytest.fixture
def base(tiny_model: Path, tmp_path: Path) -> Path:
    return tiny_dense(tiny_model, tmp_path / "dense")


@pytest.fixture
def encoder(base: Path) -> SentenceEncoder:
    return SentenceEncoder.load(base)


def stage_of(encoder: SentenceEncoder, **given: object) -> DenseScores:
    wanted = {**QUICK, "kd": "kl", "weights": NO_ANCHOR, **given}
    return task_of(encoder, CANDIDATES, Distill.model_validate(wanted))


def task_of(encoder: SentenceEncoder, entries: list[Candidates], asked: Distill) -> DenseScores:
    """The task as the stage builds it, without a model before."""
    scored = asked.weights, None
    return DenseScores(
        "distill", encoder, entries, DOCUMENTS, asked, *scored, tau=asked.tau, margin=asked.margin
    )


def cosines(encoder: SentenceEncoder) -> torch.Tensor:
    """Of each query with its candidates, with a gap where it has none."""
    queries = encoder.encode([entry.query for entry in CANDIDATES])
    documents = dict(zip(DOCUMENTS, encoder.encode(list(DOCUMENTS.values())), strict=True))
    found = torch.zeros(2, 3)
    for row, entry in enumerate(CANDIDATES):
        for column, name in enumerate(entry.document_ids):
            found[row, column] = float(queries[row] @ documents[name])
    return found


def test_terms_are_those_of_cosines_times_a_constant(encoder):
    stage = stage_of(encoder, calibrate=False, temperature=2.0)
    present = torch.tensor([[True, True, True], [True, True, False]])
    positive = torch.tensor([[True, True, False], [True, False, False]])
    teacher, scores = torch.tensor([[9.0, 7.0, -8.0], [8.0, -8.0, 0.0]]), SCALE * cosines(encoder)
    wanted = {
        "kd": losses.kl(scores, teacher, present, 2.0),
        "rank": losses.rank_loss(scores, teacher, present, 1.0),
        "contrast": losses.contrast_loss(scores, positive, present, 5.0),
    }
    with torch.no_grad():
        terms = stage.terms(encoder, stage.batch(random_at(0, 0)))
    assert terms.keys() == stage.weights.keys() == wanted.keys()
    for key, value in wanted.items():
        assert float(terms[key]) == pytest.approx(float(value), rel=1e-4), key


def test_a_teacher_gets_the_spread_of_the_first_scores(encoder):
    stage = stage_of(encoder)
    scores = SCALE * torch.cat([cosines(encoder)[0], cosines(encoder)[1, :2]])
    teacher = torch.tensor([9.0, 7.0, -8.0, 8.0, -8.0])
    calibrated = teacher * stage.comparison.scale.slope + stage.comparison.scale.offset
    assert float(calibrated.mean()) == pytest.approx(float(scores.mean()), rel=1e-4)
    assert float(calibrated.std()) == pytest.approx(float(scores.std()), rel=1e-3)


def test_a_teacher_that_prefers_another_document_is_followed(encoder, tmp_path):
    """The same training example twice, the second time with the scores of one query turned round."""
    turned = [CANDIDATES[0], replace(CANDIDATES[1], teacher_scores=(-8.0, 8.0))]
    gaps = []
    for number, entries in enumerate((CANDIDATES, turned)):
        student = deepcopy(encoder)
        given = {**QUICK, "steps": 40, "kd": "kl", "calibrate": False, "weights": NO_ANCHOR}
        stage = task_of(student, entries, Distill.model_validate(given))
        (tmp_path / str(number)).mkdir()
        train(student, stage, tmp_path / str(number))
        first, second = cosines(student)[1, :2]
        gaps.append(float(first - second))
    assert gaps[0] > 0.1 > -0.1 > gaps[1]


def test_texts_are_cut_and_keep_their_end(encoder):
    stage = stage_of(encoder, longest=8)
    assert max(map(len, stage.documents)) == 8
    assert {ids[-1] for ids in stage.documents} == {encoder.tokenizer.sep_token_id}


def test_a_step_leaves_a_dense_model_and_holds_what_the_base_model_said(base, tmp_path):
    """With the stage that learns from a corpus alone, its weights balanced by gradients."""
    documents = [Document(name, text, "") for name, text in DOCUMENTS.items()]
    write_documents(tmp_path / "corpus.jsonl", documents)
    write_candidates(tmp_path / "candidates.jsonl", CANDIDATES)
    write_terms(tmp_path / "terms.json", [Term("zorvex", "jargon")])
    carry_out_stage("extend", str(base), {"terms": tmp_path / "terms.json"}, Place(tmp_path / "extended"))
    settings = settings_for("rank").model_copy(update=QUICK)
    named = {"candidates": tmp_path / "candidates.jsonl", "corpus": tmp_path / "corpus.jsonl"}
    carry_out_stage("rank", str(tmp_path / "extended"), named, Place(tmp_path / "taught"), settings)
    taught = load_encoder(tmp_path / "taught")
    assert isinstance(taught, SentenceEncoder)
    assert [token.term for token in taught.new_tokens] == ["zorvex"]
    history = [json.loads(line) for line in (tmp_path / "taught" / "history.jsonl").read_text().splitlines()]
    assert history[0].keys() == {"step", "kd", "anchor", "loss", "gradient_norm", "learning_rate"}
    assert history[0]["anchor"] < 1e-6 < history[-1]["anchor"]
