"""The stages in numbers: terms against the textbook, batches by seed, and every family of models."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from families import build
from torch.nn import functional
from torch.testing import assert_close

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.collection.glossary import Definition
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.objectives.meanings import new_logits
from sparse_adapt.objectives.texts import Remembered, Texts
from sparse_adapt.stages.dictionary import Dictionary, dictionary
from sparse_adapt.stages.distill import Distill, SixTerms
from sparse_adapt.stages.warmup import Warmup, domain_vocabulary, warmup
from sparse_adapt.terms.mining import Term
from sparse_adapt.training.loop import Task, random_at, train

TEXTS = [
    "A zorvex report compares what a team spent.",
    "kubectl logs show what the agent saw of zorvex.",
    "A nightly backup copies the database.",
    "Renew a certificate before it expires.",
    "",
]
QUICK = {"device": "cpu", "steps": 3, "batch_size": 4, "checkpoint_every": 2, "labeller": "none"}
DEFINITIONS = [
    Definition("zorvex", "the way in which a team decides what it may spend", ("a zorvex report",)),
    Definition("nonesuch", "a word that the model has no token for", ()),
]
CANDIDATES = [
    Candidates("q1", "who signs for spending", ("d0", "d2", "d3"), (9.0, -7.0, -8.0)),
    Candidates("q2", "kubectl logs", ("d1", "d0"), (8.0, -8.0)),
]
DOCUMENTS = {f"d{number}": text for number, text in enumerate(TEXTS)}


def extended(folder: Path) -> SparseEncoder:
    encoder = SparseEncoder.load(folder)
    extend(encoder, [Term("zorvex", "jargon"), Term("kubectl", "jargon")])
    return encoder


@pytest.fixture
def encoder(tiny_model) -> SparseEncoder:
    return extended(tiny_model)


def stages(encoder: SparseEncoder, **given: object) -> list[Task]:
    settings = {**QUICK, **given}
    return [
        warmup(encoder, TEXTS, Warmup.model_validate(settings)),
        dictionary(encoder, DEFINITIONS, TEXTS, Dictionary.model_validate(settings)),
        SixTerms(encoder, CANDIDATES, DOCUMENTS, Distill.model_validate(settings)),
    ]


def test_texts_know_what_they_say(encoder):
    texts = Texts(encoder, TEXTS)
    terms = [token.term for token in encoder.new_tokens]
    assert terms == ["zorvex", "kubectl"]
    assert texts.says.tolist() == [
        [True, False],
        [True, True],
        [False, False],
        [False, False],
        [False, False],
    ]
    assert texts.saying.tolist() == [0, 1]


def test_old_dimensions_are_comparable_but_for_the_pieces_of_what_is_said(encoder):
    texts = Texts(encoder, TEXTS)
    marks = texts.comparable([0, 2])
    pieces = sorted(set(encoder.new_tokens[0].pieces))
    assert (marks[0] == 0).nonzero().squeeze(1).tolist() == [*pieces, 200, 201]  # and the new tokens
    assert (marks[1] == 0).nonzero().squeeze(1).tolist() == [200, 201]


def test_remembered_vectors_are_those_of_the_frozen_encoder(encoder):
    ids = encoder.tokenize(TEXTS)
    frozen = Remembered(copy.deepcopy(encoder).requires_grad_(False), ids)
    with torch.no_grad():
        expected = encoder(ids).weights
        first = frozen.weights([3, 0, 3])
        encoder.output_rows.mul_(2.0)
    assert_close(first, expected[[3, 0, 3]], atol=1e-5, rtol=1e-5)
    assert torch.equal(frozen.weights([0, 3]), first[[1, 0]])


def test_new_logits_are_those_of_the_whole_head(encoder):
    texts = Texts(encoder, TEXTS)
    assert_close(new_logits(encoder, texts.ids, texts), encoder(texts.ids).maximum[:, 200:202])


def test_a_batch_is_a_function_of_the_seed_alone(encoder):
    for stage in stages(encoder):
        first = str(stage.batch(random_at(3, 7)))
        stage.batch(random_at(3, 8))
        assert str(stage.batch(random_at(3, 7))) == first
        assert str(stage.batch(random_at(4, 7))) != first


def test_masked_words_cost_what_the_whole_softmax_says(encoder):
    for softmax in ("full", "domain"):
        stage = warmup(encoder, TEXTS, Warmup.model_validate({**QUICK, "softmax": softmax}))
        batch = stage.batch(random_at(0, 1))
        kept = domain_vocabulary(stage.texts, softmax)
        costs = []
        with torch.no_grad():
            for masked, labels in zip(batch.masked, batch.labels, strict=True):
                logits = encoder.masked_lm(input_ids=torch.tensor([masked])).logits[0]
                for place, label in enumerate(labels):
                    if label >= 0:
                        costs.append(
                            -functional.log_softmax(logits[place, kept], dim=0)[kept == label].item()
                        )
            assert len(costs) > 1
            assert_close(
                stage.terms(encoder, batch)["mlm"].item(), float(np.mean(costs)), atol=1e-4, rtol=1e-4
            )
    assert len(domain_vocabulary(stage.texts, "full")) == 202
    assert {200, 201} <= set(kept.tolist())
    assert len(kept) < 100


def test_every_stage_has_a_finite_term_for_each_weight(encoder):
    for stage in stages(encoder):
        terms = stage.terms(encoder, stage.batch(random_at(0, 0)))
        assert terms.keys() == stage.weights.keys()
        assert all(term.isfinite() and term.dtype == torch.float32 for term in terms.values())


def test_scores_stay_in_float32_where_the_model_runs_in_bfloat16(encoder):
    """A score of 40 has steps of a quarter in bfloat16."""
    settings = Distill.model_validate({**QUICK, "kd": "mse", "calibrate": False})
    stage = SixTerms(encoder, CANDIDATES, DOCUMENTS, settings)
    batch = stage.batch(random_at(0, 0))
    ids = stage.matched.ids(batch)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        weights = encoder(ids).weights
        kd = stage.terms(encoder, batch)["kd"]
    scores = (weights[:2] @ weights[2:].T).gather(1, batch.places)
    assert scores.max() > 1.0
    assert_close(kd, (batch.teacher - scores)[batch.present].square().mean(), atol=0.0, rtol=1e-5)


FAMILIES = ("bert", "roberta", "modernbert-no-bias", "xlm-roberta", "deberta-v2-narrow")


@pytest.mark.parametrize(
    ("family", "precision"),
    [
        *((family, "float32") for family in FAMILIES),
        (FAMILIES[0], "bfloat16"),
        *(pytest.param(family, "bfloat16", marks=pytest.mark.nightly) for family in FAMILIES[1:]),
    ],
)
def test_stages_train_every_family(family, precision, tmp_path):
    encoder = extended(build(tmp_path / "model", family, tied=family != "bert"))
    first = encoder.old_size
    named = dict(encoder.masked_lm.named_parameters())
    for number, stage in enumerate(stages(encoder, precision=precision)):
        before = {name: parameter.detach().clone() for name, parameter in named.items()}
        (tmp_path / str(number)).mkdir()
        history = train(encoder, stage, tmp_path / str(number))
        assert len(history) == 3
        assert all(np.isfinite(row["loss"]) for row in history)
        assert history[0].keys() == {"step", "loss", "gradient_norm", "learning_rate", *stage.weights}
        still = [
            torch.equal(
                after[:first] if len(after) > first else after,
                before[name][:first] if len(after) > first else before[name],
            )
            for name, after in named.items()
        ]
        assert all(still) == (stage.name == "warmup")
        assert not torch.equal(encoder.output_rows[first:], before_rows(encoder, before)[first:])


def before_rows(encoder: SparseEncoder, before: dict[str, torch.Tensor]) -> torch.Tensor:
    named = encoder.masked_lm.named_parameters()
    return before[next(name for name, parameter in named if parameter is encoder.output_rows)]
