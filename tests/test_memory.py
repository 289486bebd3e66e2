"""A bound on memory: texts are read in parts, and what is learnt stays the same."""

import platform
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from dense_models import tiny_dense
from safetensors.torch import load_file
from torch import Tensor
from torch.testing import assert_close

from sparse_adapt.collection.examples import Pair, write_pairs
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.model.encoder import Encoder
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import pad
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.stages.record import read_stage_record
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.training.loop import HISTORY_FILE, read_history
from sparse_adapt.training.memory import Costs, saved_bytes

TEXTS = ["a log of the server", "who signs for it", "the backup", "test the database of the team", "a team"]
PAIRS = [Pair("who refuses the client", "d02", "q1"), Pair("test the backup", "d03", "q2")]
CPU = {"device": "cpu", "steps": 3, "train": "all", "batch_size": 4}
CASES = [
    ("warmup", {}, False),
    ("dictionary", {"labeller": "none"}, False),
    ("distill", {"labeller": "none"}, False),
    ("rank", {"weights": {"anchor": 1.0}}, False),
    ("joint", {}, False),
    ("preserve", {}, True),
    ("contrast", {"form": "nt-xent"}, True),
    ("rank", {}, True),
]


def extended_with_inputs(
    dense: bool, tiny_model: Path, collection: Path, folder: Path
) -> tuple[str, dict[str, Path]]:
    """A model with new tokens in a folder, and all that the stages of CASES read."""
    model = tiny_dense(tiny_model, folder / "dense") if dense else tiny_model
    carry_out_stage("extend", str(model), {"terms": collection / "terms.json"}, Place(folder / "new"))
    write_pairs(folder / "pairs.jsonl", PAIRS)
    named = {**dict.fromkeys(("corpus", "candidates", "dictionary"), collection), "pairs": folder}
    return str(folder / "new"), named


@pytest.mark.plugins("research")
@pytest.mark.parametrize(("name", "given", "dense"), CASES)
def test_a_stage_teaches_the_same_in_parts(
    name, given, dense, tiny_model, zorvex_collection, tmp_path, monkeypatch
):
    model, named = extended_with_inputs(dense, tiny_model, zorvex_collection, tmp_path)
    settings = settings_for(name, overrides={**CPU, **given})
    histories, weights = [], []
    for tokens in (None, 24):
        monkeypatch.setattr(Encoder, "tokens_at_once", tokens)
        made = carry_out_stage(name, model, named, Place(tmp_path / str(tokens)), settings)
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


# -- how much a bound allows ------------------------------------------------------------------------


def test_what_autograd_saves_is_counted_once():
    logits, factor = torch.zeros(3, 4, requires_grad=True), torch.ones(4, requires_grad=True)
    own = {factor.untyped_storage().data_ptr()}
    squares = saved_bytes(lambda: (logits.exp() * factor).square(), own)
    assert squares == 2 * 3 * 4 * 4  # the exponentials, saved for both steps, and the products


def test_tokens_within_a_bound():
    costs = Costs(fixed=100.0, a_text=10.0, kept=1.0, a_token=5.0, longest=8)
    assert costs.at_most(2, 6) == 100 + 2 * (10 + 6 * 6)
    assert costs.tokens_within(200.0, 2) == 8  # 180 - 100 - 2 * 18 leave room for 44 / 5 tokens
    assert costs.tokens_within(150.0, 2) == 0
    assert costs.least(2) == pytest.approx((136 + 40) / 0.9)
    assert costs.tokens_within(costs.least(2) + 1e-6, 2) == 8


def test_parts_keep_less(tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    ids, mask = pad(encoder.tokenize(TEXTS * 8), 0)
    own = {each.untyped_storage().data_ptr() for each in encoder.parameters()}
    whole = saved_bytes(lambda: encoder.hidden(ids, mask), own)
    encoder.tokens_at_once = 2 * ids.shape[1]
    assert saved_bytes(lambda: encoder.hidden(ids, mask), own) < whole / 20


@pytest.mark.parametrize(
    ("memory", "found"), [("8G", 8e9), ("6.5G", 6.5e9), ("900M", 9e8), (None, float("inf"))]
)
def test_amounts_of_memory(memory, found):
    settings = settings_for("rank", overrides={"memory": memory})
    assert settings.memory_bytes == found
    assert settings.model_dump().get("memory") == memory
    assert ("memory" in settings.model_dump(mode="json")) == (memory is not None)


@pytest.mark.parametrize("memory", ["8", "G", "8,5G", "-1G", "8 G", "8g", "1e3G", "\u0668G", "", 8])
def test_other_amounts_are_refused(memory):
    with pytest.raises(
        ConfigError,
        match=r"^rank: memory should be (an amount of memory such as 8G|a valid string)",
    ):
        settings_for("rank", overrides={"memory": memory})


def test_a_bound_that_one_text_doesnt_fit_is_refused(tiny_model, zorvex_collection, tmp_path):
    named = {"corpus": zorvex_collection, "candidates": zorvex_collection}
    given = settings_for("rank", overrides={**CPU, "memory": "20M"})
    with pytest.raises(
        ConfigError, match=r"rank: memory = '20M' is too little .* takes \d\.\d GB at least; give"
    ):
        carry_out_stage("rank", str(tiny_model), named, Place(tmp_path / "out"), given)
    assert not list(tmp_path.iterdir())


def test_a_stage_keeps_to_its_bound_and_goes_on_with_another(
    tiny_model, zorvex_collection, tmp_path, monkeypatch
):
    """The bound isn't what a model is made from."""
    read = []
    states = SparseEncoder.states
    monkeypatch.setattr(
        SparseEncoder,
        "states",
        lambda encoder, ids, mask: read.append(ids.numel()) or states(encoder, ids, mask),
    )
    monkeypatch.setattr(Costs, "of", lambda *_: Costs(1.5e9, 0.0, 0.0, 1e6, 48))
    named = {"corpus": zorvex_collection, "candidates": zorvex_collection}

    def teach(memory: str | None, resume: bool = False, stops: int = 9) -> None:
        def stop(step: int, *_: object) -> None:
            if step == stops:
                raise KeyboardInterrupt

        given = settings_for(
            "rank", overrides={**CPU, "checkpoint_every": 1, "memory": memory, "max_tokens": 48}
        )
        carry_out_stage("rank", str(tiny_model), named, Place(tmp_path / "out", resume=resume), given, stop)

    with suppress(KeyboardInterrupt):
        teach(None, stops=2)
    assert max(read) > 64
    read.clear()
    teach("1.74G", resume=True)  # nine tenths less 1.5 are 66 million bytes
    assert max(read[-20:]) <= 64
    assert len(read_history(tmp_path / "out" / HISTORY_FILE)) == 3
    assert read_stage_record(tmp_path / "out")["settings"]["memory"] == "1.74G"


HEAP = """
import psutil
from sparse_adapt.heap import return_large_blocks, trim_heap
return_large_blocks()
held = lambda: psutil.Process().memory_info().rss >> 20
before = held()
blocks = [bytearray(b"a" * (1 << 20)) for _ in range(400)]
kept = blocks[1::2]
del blocks
full = held()
trim_heap()
print(full - before, held() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the heap of glibc")
def test_what_is_freed_between_others_returns_to_the_system():
    said = subprocess.check_output([sys.executable, "-c", HEAP], text=True)
    full, trimmed = map(int, said.split())
    assert full >= 380 and trimmed <= 240  # megabytes
