"""Rows fitted to a body that stands still: the model's own logits, the lessons learnt, and nothing else moved."""

import copy

import numpy as np
import pytest
import torch
from families import build
from torch.testing import assert_close

from sparse_adapt.made_up.samples import Samples
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.stages.parts import fitted_rows
from sparse_adapt.stages.parts.fitted_rows import FittedLessons, States, fit_rows
from sparse_adapt.stages.parts.made_up_lessons import recall
from sparse_adapt.stages.parts.targets import Targets
from sparse_adapt.terms.mining import Term

SAYING = ["A zorvex report compares what the team spent.", "The server of kubectl."]
OTHER = ["A nightly backup copies the database to a second server.", "Renew a certificate."]
MEANING = [
    "what the team spent each month",
    "who compares a report",
    "logs of the second server",
    "the wood shop",
]
NEARNESS = torch.tensor([[0.2, -0.3], [0.15, -0.3], [-0.3, 0.2], [-0.3, -0.3]])


@pytest.fixture(params=["bert", "roberta", "modernbert-no-bias"])
def encoder(request: pytest.FixtureRequest, tmp_path: object) -> SparseEncoder:
    found = SparseEncoder.load(str(build(tmp_path / "model", request.param)))
    extend(found, [Term("zorvex", "jargon"), Term("kubectl", "jargon")])
    return found


def new_logits(encoder: SparseEncoder, ids: list[list[int]]) -> torch.Tensor:
    with torch.no_grad():
        return encoder(
            ids, encoder.no_token() | (torch.arange(encoder.vocabulary_size) >= encoder.old_size)
        ).maximum[:, encoder.old_size : encoder.old_size + 2]


def lessons(encoder: SparseEncoder) -> tuple[list[list[int]], FittedLessons]:
    texts, made_up = encoder.tokenize([*SAYING, *OTHER]), encoder.tokenize(MEANING)
    says = np.array([[True, False], [False, True], [False, False], [False, False]])
    samples = Samples(made_up, NEARNESS >= 0, NEARNESS < 0, NEARNESS)
    return [*texts, *made_up], FittedLessons(says, ~says, samples, Targets(), 2.0)


def test_logits_of_remembered_states_are_the_models(encoder):
    ids, _ = lessons(encoder)
    states = States(encoder, ids)
    new = slice(encoder.old_size, encoder.old_size + 2)
    bias = torch.zeros(2) if encoder.output_bias is None else encoder.output_bias[new]
    rows = np.array([5, 0, 0, 3])
    found = states.largest(rows, encoder.output_rows[new], bias)
    assert_close(found, new_logits(encoder, [ids[row] for row in rows]), rtol=1e-4, atol=1e-5)


def test_rows_learn_what_is_meant_and_nothing_else_moves(encoder, monkeypatch):
    monkeypatch.setattr(fitted_rows, "STEPS", 300)
    ids, wanted = lessons(encoder)
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}

    def missed() -> float:
        return float(recall(new_logits(encoder, ids)[4:], wanted.samples, wanted.targets, wanted.silence))

    first = missed()
    again = copy.deepcopy(encoder)
    fit_rows(encoder, ids, wanted, seed=3)
    assert missed() < 0.85 * first
    fit_rows(again, ids, wanted, seed=3)
    for name, tensor in encoder.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name
        old = before[name]
        moved = (tensor != old).reshape(len(tensor), -1).any(dim=1) if tensor.dim() else tensor != old
        if len(tensor) >= encoder.old_size + 2:
            assert not moved[: encoder.old_size].any(), name
        else:
            assert not moved.any(), name
