"""Contradictions as negatives: the loss, the batches, what is dropped out, what a kill leaves."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from dense_models import tiny_dense
from safetensors.torch import load_file
from torch.testing import assert_close

from sparse_adapt.collection.examples import Triplet, write_triplets
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.model.encoder import Encoder
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.pipeline.run import run
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.plugins.research.stages.triplets import Contradictions, Triplets, dropping_out
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.training import losses
from sparse_adapt.training.loop import random_at, train

TRIPLETS = [
    Triplet("the server sends a password", ("the client sends a password", "the server sends a log")),
    Triplet("a nightly backup of the database", ("a nightly report of the database",)),
    Triplet("The client refuses the server", ("the team refuses the server",)),
    Triplet("who signs for spending", ("who signs for wood",)),
    Triplet("the client  refuses the server", ("the client refuses the office",)),
]
LABELLED = [
    Triplet("a saw is a tool", ("a saw is a server",), "a tool of wood"),
    Triplet("a plane is a tool", ("no plane is a tool",), "a tool of wood"),
]
QUICK = {"device": "cpu", "steps": 4, "batch_size": 4, "checkpoint_every": 1, "learning_rate": 1e-3}


@pytest.fixture(params=["sparse", "dense"])
def base(request: pytest.FixtureRequest, tiny_model: Path, tmp_path: Path) -> Path:
    return tiny_model if request.param == "sparse" else tiny_dense(tiny_model, tmp_path / "dense")


@pytest.fixture
def encoder(base: Path) -> Encoder:
    return load_encoder(base)


def opposing(encoder: Encoder, triplets: list[Triplet] = TRIPLETS, **given: object) -> Contradictions:
    return Contradictions("triplets", encoder, triplets, Triplets.model_validate({**QUICK, **given}))


# -- the loss ----------------------------------------------------------------------------------


def nothing(count: int) -> torch.Tensor:
    return torch.zeros(count, 2 * count, dtype=torch.bool)


def test_contradict_by_hand():
    twins = torch.tensor([[2.0, 0.0], [1.0, 3.0]])
    opposites = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    # at temperature 2, own ones twice: e^1 of e^1 + e^0 + 2 e^.5 + e^0; e^1.5 of e^.5 + e^1.5 + e^0 + 2 e^1
    first = -math.log(math.e / (math.e + 1 + 2 * math.exp(0.5) + 1))
    second = -math.log(math.exp(1.5) / (math.exp(0.5) + math.exp(1.5) + 1 + 2 * math.e))
    found = losses.contradict(twins, opposites, nothing(2), 2.0, 2.0)
    assert_close(found, torch.tensor((first + second) / 2))
    left_out = nothing(2)
    left_out[0, 1] = left_out[0, 3] = True  # the first row keeps its twin and its contradiction
    first = -math.log(math.e / (math.e + 2 * math.exp(0.5)))
    found = losses.contradict(twins, opposites, left_out, 2.0, 2.0)
    assert_close(found, torch.tensor((first + second) / 2))


def test_contradict_sees_differences_only_and_no_order():
    random = torch.Generator().manual_seed(0)
    twins, opposites = torch.randn(2, 5, 5, generator=random)
    found = losses.contradict(twins, opposites, nothing(5), 0.5, 3.0)
    shift = torch.randn(5, 1, generator=random)
    assert_close(losses.contradict(twins + shift, opposites + shift, nothing(5), 0.5, 3.0), found)
    order = torch.tensor([3, 1, 4, 0, 2])
    moved = losses.contradict(twins[order][:, order], opposites[order][:, order], nothing(5), 0.5, 3.0)
    assert_close(moved, found)
    assert losses.contradict(twins, opposites, nothing(5), 0.5, 4.0) > found


def test_contradict_where_there_is_little_to_tell_apart():
    same = torch.ones(3, 3)
    assert_close(losses.contradict(same, same, nothing(3), 0.05), torch.tensor(math.log(6)))
    one = torch.ones(1, 1)
    assert_close(losses.contradict(one, one, nothing(1), 1.0, 1.0), torch.tensor(math.log(2)))
    assert losses.contradict(one, one, nothing(1), 1.0, 0.0) == 0.0  # nothing but its twin


# -- batches -----------------------------------------------------------------------------------


def test_a_batch_holds_each_anchor_once_with_a_contradiction_of_its_own(encoder):
    stage = opposing(encoder)
    assert len(stage.anchors) == 4  # two are the same but for spaces and case
    drawn = set()
    for step in range(40):
        batch = stage.batch(random_at(0, step))
        assert len(batch.ids) == 12
        texts = [encoder.tokenizer.decode(ids, skip_special_tokens=True) for ids in batch.ids]
        assert texts[:4] == texts[4:8]
        assert len(set(texts[:4])) == 4
        drawn |= set(zip(texts[:4], texts[8:], strict=True))
        assert not batch.left_out.any()
    assert len(drawn) == 6


def test_who_shares_a_twin_is_no_negative(encoder):
    batch = opposing(encoder, LABELLED).batch(random_at(0, 0))
    assert batch.left_out.tolist() == [[False, True, False, False], [True, False, False, False]]


def test_one_triplet_is_enough(encoder):
    stage = opposing(encoder, TRIPLETS[:1])
    terms = stage.terms(encoder, stage.batch(random_at(0, 0)))
    assert set(terms) == set(stage.weights)
    assert all(torch.isfinite(value) for value in terms.values())


def test_a_contradiction_beyond_the_cut_is_none(encoder):
    long = "the server sends the log to the team of the client and the office of the "
    same, other = Triplet(long + "saw", (long + "plane",)), Triplet("a log", ("a saw",))
    assert opposing(encoder, [same, other], longest=8).batch(random_at(0, 0)).left_out.shape == (1, 2)
    with pytest.raises(ConfigError, match="no contradiction differs from its anchor"):
        opposing(encoder, [same], longest=8)


def test_epochs_count_contradictions(encoder):
    assert opposing(encoder, epochs=2.0).steps == 4  # 6 by 4 are two batches


def test_a_sparse_encoder_stays_short_and_a_dense_one_has_cosines(encoder, base):
    stage = opposing(encoder)
    sparse = "dense" not in base.name
    assert ("sparsity" in stage.weights) == sparse
    assert stage.temperature == (3.0 if sparse else 0.05)


# -- dropout -----------------------------------------------------------------------------------


def test_the_same_text_read_twice_is_not_quite_the_same_and_the_seed_says_how(encoder):
    stage = opposing(encoder)
    batch = stage.batch(random_at(0, 0))
    before = torch.random.get_rng_state()
    first, second = (stage.terms(encoder, batch)["contradict"] for _ in range(2))
    assert_close(first, second, rtol=0, atol=0)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not encoder.training
    batch.ids[0] = batch.ids[4]
    ids = torch.tensor([batch.ids[0]] * 2)
    with dropping_out(encoder, 1):
        twins = encoder.vectors(encoder.hidden(ids, torch.ones_like(ids)), torch.ones_like(ids), ids)
    assert not torch.equal(twins[0], twins[1])
    still = encoder.vectors(encoder.hidden(ids, torch.ones_like(ids)), torch.ones_like(ids), ids)
    assert torch.equal(still[0], still[1])


# -- training ----------------------------------------------------------------------------------


def test_contradictions_move_away(encoder, tmp_path):
    settings = {"steps": 60, "learning_rate": 3e-3, "temperature": 0.5, "weights": {"sparsity": 0.0}}
    history = train(encoder, opposing(encoder, **settings), tmp_path)
    losses_ = [row["contradict"] for row in history]
    assert np.mean(losses_[-5:]) < 0.8 * np.mean(losses_[:5])


def teach(base: Path, folder: Path, resume: bool = False, **given: object) -> Path:
    write_triplets(folder / "triplets.jsonl", TRIPLETS)
    settings = Triplets.model_validate({**QUICK, **given})
    place = Place(folder / "out", resume=resume)
    carry_out_stage("triplets", str(base), {"triplets": folder / "triplets.jsonl"}, place, settings)
    return folder / "out"


def test_a_stopped_stage_goes_on_to_the_same_bits(base, tmp_path):
    class Stopped(Exception):
        pass

    def stop(step: int, *_: object) -> None:
        if step == 2:
            raise Stopped

    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    whole = teach(base, tmp_path / "whole")
    write_triplets(tmp_path / "parts" / "triplets.jsonl", TRIPLETS)
    settings = Triplets.model_validate(QUICK)
    place = Place(tmp_path / "parts" / "out")
    with pytest.raises(Stopped):
        named = {"triplets": tmp_path / "parts" / "triplets.jsonl"}
        carry_out_stage("triplets", str(base), named, place, settings, stop)
    parts = teach(base, tmp_path / "parts", resume=True)
    assert (whole / "history.jsonl").read_text() == (parts / "history.jsonl").read_text()
    for name, tensor in load_file(whole / "model.safetensors").items():
        assert torch.equal(tensor, load_file(parts / "model.safetensors")[name]), name


def test_a_run_file_takes_generated_triplets_and_then_labelled_ones(base, tmp_path):
    write_triplets(tmp_path / "made.jsonl", TRIPLETS)
    write_triplets(tmp_path / "pairs.jsonl", LABELLED)
    quick = "\n".join(f"{key} = {value!r}" for key, value in QUICK.items())
    (tmp_path / "run.toml").write_text(
        f'model = "{base}"\nstages = ["triplets", "labelled"]\n[triplets]\ntriplets = "made.jsonl"\n{quick}\n'
        f'[labelled]\nlabelled = "pairs.jsonl"\n{quick}\nown = 2.0\n'
    )
    plan = read_plan(tmp_path / "run.toml")
    finished = run(plan, Place(tmp_path / "run"))
    assert finished.model.name == "2-labelled"
    load_encoder(finished.model)
    assert run(plan, Place(tmp_path / "run", resume=True)) == finished
    (tmp_path / "run.toml").write_text(f'model = "{base}"\nstages = ["triplets"]\n')
    with pytest.raises(ConfigError, match="the stage triplets needs triplets"):
        read_plan(tmp_path / "run.toml")
