"""Rows fitted to a body that stands still: the model's own logits, the examples learnt, and nothing else moved."""

import copy

import numpy as np
import pytest
import torch
from families import build
from torch.testing import assert_close

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.objectives import rows
from sparse_adapt.objectives.meanings import recall
from sparse_adapt.objectives.rows import Fitting, FittingExamples, States, coordinates, fit_rows
from sparse_adapt.objectives.targets import Targets
from sparse_adapt.synthetic.windows import Samples
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


def examples(encoder: SparseEncoder) -> tuple[list[list[int]], FittingExamples]:
    texts, synthetic = encoder.tokenize([*SAYING, *OTHER]), encoder.tokenize(MEANING)
    says = np.array([[True, False], [False, True], [False, False], [False, False]])
    samples = Samples(synthetic, NEARNESS >= 0, NEARNESS < 0, NEARNESS)
    return [*texts, *synthetic], FittingExamples(says, ~says, samples, Targets(), 2.0)


def test_logits_of_remembered_states_are_the_models(encoder):
    ids, _ = examples(encoder)
    states = States(encoder, ids)
    new = slice(encoder.old_size, encoder.old_size + 2)
    bias = torch.zeros(2) if encoder.output_bias is None else encoder.output_bias[new]
    rows = np.array([5, 0, 0, 3])
    found = states.largest(rows, encoder.output_rows[new], bias)
    assert_close(found, new_logits(encoder, [ids[row] for row in rows]), rtol=1e-4, atol=1e-5)


def how(encoder: SparseEncoder, *, seed: int = 3, floor: float = 1.0, reread: int = 0) -> Fitting:
    return Fitting([encoder.old_size, encoder.old_size + 1], seed, floor, reread)


@pytest.mark.parametrize("floor", [1.0, 0.01], ids=["scaled", "whitened"])
def test_rows_learn_what_is_meant_and_nothing_else_moves(encoder, floor, monkeypatch):
    monkeypatch.setattr(rows, "STEPS", 300)
    ids, wanted = examples(encoder)
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}

    def missed() -> float:
        return float(
            recall(new_logits(encoder, ids)[4:], wanted.samples, wanted.targets, wanted.inactive_weight)
        )

    first = missed()
    again = copy.deepcopy(encoder)
    fit_rows(encoder, ids, wanted, how(encoder, floor=floor))
    assert missed() < 0.9 * first
    fit_rows(again, ids, wanted, how(again, floor=floor))
    for name, tensor in encoder.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name
        old = before[name]
        moved = (tensor != old).reshape(len(tensor), -1).any(dim=1) if tensor.dim() else tensor != old
        if len(tensor) >= encoder.old_size + 2:
            assert not moved[: encoder.old_size].any(), name
        else:
            assert not moved.any(), name


def test_one_term_is_fitted_and_the_other_keeps_its_bits(encoder, monkeypatch):
    monkeypatch.setattr(rows, "STEPS", 20)
    ids, wanted = examples(encoder)
    samples = Samples(wanted.samples.token_ids, NEARNESS[:, 1:] >= 0, NEARNESS[:, 1:] < 0, NEARNESS[:, 1:])
    second = FittingExamples(wanted.says[:, 1:], wanted.inactive[:, 1:], samples, Targets(), 2.0)
    before = encoder.output_rows.detach().clone()
    fit_rows(encoder, ids, second, Fitting([encoder.old_size + 1], 0, 0.01, 5))
    moved = (encoder.output_rows != before).any(dim=1)
    assert moved.nonzero().squeeze(1).tolist() == [encoder.old_size + 1]


def test_texts_that_say_a_tied_row_are_read_again(tmp_path, monkeypatch):
    """Their states at the end of the fit are those of the model that is saved, but for the last steps."""
    seen: list[States] = []
    monkeypatch.setattr(rows, "STEPS", 41)
    monkeypatch.setattr(rows, "RATE", 0.1)

    class Kept(States):
        def __init__(self, *read: object) -> None:
            super().__init__(*read)
            seen.append(self)

    monkeypatch.setattr(rows, "States", Kept)
    encoder = SparseEncoder.load(str(build(tmp_path / "model", "bert")))
    extend(encoder, [Term("zorvex", "jargon"), Term("kubectl", "jargon")])
    assert encoder.output_rows is encoder.input_rows
    ids, wanted = examples(encoder)
    first = States(encoder, ids).states
    fit_rows(encoder, ids, wanted, how(encoder, floor=0.01, reread=20))
    assert [len(each.lengths) for each in seen] == [
        len(ids),
        2,
        2,
    ]  # all texts, then twice the two that say a term
    saying = [row for row in range(len(ids)) if max(ids[row]) >= encoder.old_size]
    assert saying == [0, 1]
    now = States(encoder, [ids[row] for row in saying]).states
    begun = first[torch.from_numpy(States(encoder, ids).places(saying))]
    assert (seen[-1].states - now).norm() < 0.2 * (begun - now).norm()


def test_untied_rows_change_no_text(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "STEPS", 5)
    encoder = SparseEncoder.load(str(build(tmp_path / "model", "bert", tied=False)))
    extend(encoder, [Term("zorvex", "jargon"), Term("kubectl", "jargon")])
    ids, wanted = examples(encoder)
    before = States(encoder, ids).states
    fit_rows(encoder, ids, wanted, how(encoder, reread=1))
    assert torch.equal(States(encoder, ids).states, before)


class TestCoordinates:
    @pytest.fixture
    def states(self) -> torch.Tensor:
        random = torch.Generator().manual_seed(0)
        wide = torch.tensor([5.0, 1.0, 0.2, 0.001])
        turned = torch.linalg.qr(torch.randn(4, 4, generator=random)).Q
        return (torch.randn(2000, 4, generator=random) * wide + 3.0) @ turned

    def test_variance_is_1_down_to_the_floor(self, states):
        seen = coordinates(states, centred=True, floor=0.01)  # of a variance of 25: .25
        found = seen.of_states(states)
        assert_close(found.mean(dim=0), torch.zeros(4), atol=1e-4, rtol=0)
        variances = torch.linalg.eigvalsh(torch.cov(found.T))
        assert_close(variances[2:], torch.ones(2), rtol=1e-3, atol=0)
        assert_close(variances[1], torch.tensor(0.04 / 0.25), rtol=0.2, atol=0)
        assert variances[0] < 1e-4

    def test_scaled_the_widest_direction_has_variance_1(self, states):
        found = coordinates(states, centred=True, floor=1.0).of_states(states)
        assert_close(torch.linalg.eigvalsh(torch.cov(found.T))[-1], torch.tensor(1.0))

    @pytest.mark.parametrize("floor", [1.0, 0.01])
    def test_rows_there_and_back_have_the_same_logits(self, states, floor):
        rows, bias = torch.tensor([[1.0, -2.0, 0.5, 3.0], [0.0, 1.0, 1.0, -1.0]]), torch.tensor([0.5, -1.0])
        seen = coordinates(states, centred=True, floor=floor)
        there = seen.of_rows(rows)
        logits = seen.of_states(states) @ there.T + bias + seen.at_mean(there)
        assert_close(logits, states @ rows.T + bias, rtol=1e-4, atol=1e-3)
        assert_close(seen.plain_rows(there), rows, rtol=1e-4, atol=1e-4)
