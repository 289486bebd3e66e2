"""On a GPU: vectors are the processor's, every stage learns what it learns there, and a bound on memory holds."""

import pytest
import torch
from test_memory import CASES, TEXTS, extended_with_inputs
from torch.testing import assert_close

from sparse_adapt.files.place import Place
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.training.loop import HISTORY_FILE, read_history
from sparse_adapt.training.memory import Costs, held

pytestmark = pytest.mark.gpu
CARD = "cuda"


def test_vectors_are_those_of_the_processor(tiny_model):
    expected, found = (
        encode(SparseEncoder.load(tiny_model, device), TEXTS, "document").toarray()
        for device in ("cpu", CARD)
    )
    assert_close(torch.from_numpy(found), torch.from_numpy(expected), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("memory", [None, "6G"])
@pytest.mark.parametrize(("name", "given", "dense"), CASES)
def test_a_stage_learns_what_it_learns_on_the_processor(
    name, given, dense, memory, tiny_model, zorvex_collection, tmp_path
):
    model, named = extended_with_inputs(dense, tiny_model, zorvex_collection, tmp_path)
    histories = []
    for number, device in enumerate(("cpu", CARD)):
        own = {"device": device, "steps": 3, "train": "all", "batch_size": 4, "memory": memory, **given}
        settings = settings_for(name, overrides=own)
        made = carry_out_stage(name, model, named, Place(tmp_path / str(number)), settings)
        load_encoder(str(made.folder))
        histories.append(read_history(made.folder / HISTORY_FILE))
    for expected, found in zip(*histories, strict=True):
        assert found == pytest.approx(expected, rel=1e-2, abs=1e-3)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_learning_takes_no_more_memory_than_was_said(precision, tiny_model):
    settings = settings_for("preserve", overrides={"device": CARD, "precision": precision})
    encoder = SparseEncoder.load(tiny_model, CARD)
    said = Costs.of(encoder, settings).at_most(len(TEXTS), encoder.max_tokens)
    torch.cuda.reset_peak_memory_stats()
    with torch.autocast(CARD, getattr(torch, precision), enabled=precision != "float32"):
        encoder.weights(encoder.tokenize(TEXTS)).mean().backward()
    assert held(encoder.device) <= torch.cuda.max_memory_allocated() <= said
