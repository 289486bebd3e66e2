"""A bound on memory: texts are read in parts, and what is learnt stays the same."""

from dataclasses import replace

import pytest
import torch
from dense_models import tiny_dense
from safetensors.torch import load_file
from torch import Tensor
from torch.testing import assert_close

from sparse_adapt.collection.examples import Pair, write_pairs
from sparse_adapt.files.place import Place
from sparse_adapt.model.encoder import Encoder
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import pad
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.training.loop import HISTORY_FILE, read_history

TEXTS = ["a log of the server", "who signs for it", "the backup", "test the database of the team", "a team"]
PAIRS = [Pair("who refuses the client", "d02", "q1"), Pair("test the backup", "d03", "q2")]
CPU = {"device": "cpu", "steps": 3, "train": "all", "batch_size": 4}
CASES = [
    ("warmup", {}, False),
    ("dictionary", {"labeller": "none"}, False),
    ("distill", {"labeller": "none"}, False),
    ("rank", {"weights": {"anchor": 1.0}}, False),
    ("joint", {}, False),
    ("query-table", {}, False),
    ("preserve", {}, True),
    ("contrast", {"form": "nt-xent"}, True),
    ("rank", {}, True),
]


@pytest.mark.parametrize(("name", "given", "dense"), CASES)
def test_a_stage_teaches_the_same_in_parts(
    name, given, dense, tiny_model, zorvex_collection, tmp_path, monkeypatch
):
    model, terms = tiny_model, {"terms": zorvex_collection / "terms.json"}
    if dense:
        model = tiny_dense(tiny_model, tmp_path / "dense")
    carry_out_stage("extend", str(model), terms, Place(tmp_path / "new"))
    write_pairs(tmp_path / "pairs.jsonl", PAIRS)
    named = {**dict.fromkeys(("corpus", "candidates", "dictionary"), zorvex_collection), "pairs": tmp_path}
    settings = settings_for(name, overrides={**CPU, **given})
    histories, weights = [], []
    for tokens in (None, 24):
        monkeypatch.setattr(Encoder, "tokens_at_once", tokens)
        made = carry_out_stage(name, str(tmp_path / "new"), named, Place(tmp_path / str(tokens)), settings)
        histories.append(read_history(made.folder / HISTORY_FILE))
        weights.append(load_file(made.folder / "model.safetensors"))
    for whole, in_parts in zip(*histories, strict=True):
        assert in_parts == pytest.approx(whole, rel=1e-4, abs=1e-6)
    for key, weight in weights[0].items():
        if not key.endswith("key.bias"):  # whose gradient is what sums round to
            assert (weights[1][key] - weight).norm() <= 1e-4 * weight.norm(), key


def gradients(encoder: Encoder, tokens: int | None, *, drops: bool = False) -> dict[str, Tensor]:
    """The gradient of a loss over the vectors of all texts, by its parameter."""
    encoder.tokens_at_once = tokens
    encoder.zero_grad()
    torch.manual_seed(0)
    encoder.train(drops)
    if isinstance(encoder, SparseEncoder):
        vectors = encoder.weights(encoder.tokenize(TEXTS))
    else:
        ids, mask = pad(encoder.tokenize(TEXTS), 0)
        vectors = encoder.vectors(encoder.hidden(ids, mask), mask, ids)
    encoder.eval()  # as it is by the time that texts are read again
    (vectors @ vectors.T).square().mean().backward()
    return {name: each.grad for name, each in encoder.named_parameters() if each.grad is not None}


@pytest.mark.parametrize("kind", ["max", "sum", "dense"])
def test_gradients_are_those_of_the_whole_batch(kind, tiny_model, tmp_path):
    if kind == "dense":
        encoder: Encoder = SentenceEncoder.load(tiny_dense(tiny_model, tmp_path / "dense"))
    else:
        encoder = SparseEncoder.load(tiny_model)
        encoder.form = replace(encoder.form, pooling=kind)
    whole = gradients(encoder, None)
    for tokens in (1, 20):  # a text at a time, some at a time
        in_parts = gradients(encoder, tokens)
        assert in_parts.keys() == whole.keys()
        for name, gradient in whole.items():
            assert_close(in_parts[name], gradient, rtol=1e-4, atol=1e-5 * float(gradient.abs().max()) + 1e-7)


def test_a_text_that_is_read_again_drops_out_the_same(tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    whole, same, other = (gradients(encoder, tokens, drops=True) for tokens in (None, 4096, 1))
    name = "masked_lm.bert.encoder.layer.0.output.dense.weight"
    assert torch.equal(whole[name], same[name])
    assert not torch.allclose(whole[name], other[name]), "each part drops out in its turn"
