"""The training loop: what moves and what doesn't, how fast, and that an interruption leaves no trace."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from families import build
from forking import dying_at, forked, kill_this
from torch import Tensor
from torch.testing import assert_close

from sparse_adapt.errors import ConfigError, InputError, MissingExtraError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.stages.dictionary import Dictionary
from sparse_adapt.terms.mining import Term
from sparse_adapt.training import loop
from sparse_adapt.training.loop import HISTORY_FILE, epoch_means, random_at, schedule, train
from sparse_adapt.training.losses import flops
from sparse_adapt.training.parameters import Parameters
from sparse_adapt.training.settings import Training
from sparse_adapt.training.shared_steps import SharedFeatures
from sparse_adapt.training.state import BEFORE_FILE, STATE_FILE, forget

TEXTS = [
    "a zorvex report",
    "the server of kubectl",
    "log each refused client",
    "zorvex and kubectl",
    "a second server of the team",
    "who signs for zorvex",
    "test the backup",
    "the tools of kubectl and the team",
]
CPU = {"device": "cpu", "steps": 6, "ramp": 0.2, "checkpoint_every": 2}


class Pull:
    """Pulls the logits of some tokens to 3, and keeps vectors short."""

    name = "pull"

    def __init__(self, encoder: SparseEncoder, settings: Training, tokens: list[int] | None = None) -> None:
        self.settings, self.steps = settings, settings.steps
        self.weights: Mapping[str, float] = {"near": 1.0, "short": 0.1}
        self.ids = encoder.tokenize(TEXTS)
        self.tokens = tokens or [*(token.token_id for token in encoder.new_tokens), 60, 61]

    def batch(self, random: np.random.Generator) -> list[int]:
        return [int(row) for row in random.choice(len(self.ids), self.settings.batch_size)]

    def terms(self, encoder: SparseEncoder, batch: list[int]) -> dict[str, Tensor]:
        pooled = encoder([self.ids[row] for row in batch])
        near = (pooled.maximum[:, self.tokens].float() - 3.0).square().mean()
        return {"near": near, "short": flops(pooled.weights)}


def extended(folder: Path) -> SparseEncoder:
    encoder = SparseEncoder.load(folder)
    extend(encoder, [Term("zorvex", "jargon"), Term("kubectl", "jargon")])
    return encoder


def snapshot(encoder: SparseEncoder) -> dict[str, Tensor]:
    named = encoder.masked_lm.named_parameters(remove_duplicate=False)
    return {name: parameter.detach().clone() for name, parameter in named}


def settings(**given: object) -> Training:
    return Training.model_validate({**CPU, "batch_size": 3, **given})


@pytest.fixture(scope="module", params=["tied", "untied", "no-bias"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models whose new rows lie in two, three and one matrices. Read only."""
    family = "modernbert-no-bias" if request.param == "no-bias" else "bert"
    place = tmp_path_factory.mktemp(request.param) / "base"
    return build(place, family, tied=request.param != "untied", spare=5)


# -- what moves ----------------------------------------------------------------------------------


def test_new_rows_alone_move_even_with_weight_decay(folder, tmp_path):
    encoder = extended(folder)
    before = snapshot(encoder)
    train(encoder, Pull(encoder, settings(weight_decay=0.5)), tmp_path)
    first, count = encoder.old_size, 2
    moved = 0
    for name, after in snapshot(encoder).items():
        if after.shape[0] == encoder.vocabulary_size:
            others = [*range(first), *range(first + count, len(after))]  # old rows and spare ones
            assert torch.equal(after[others], before[name][others]), name
            moved += not torch.equal(after[first : first + count], before[name][first : first + count])
        else:
            assert torch.equal(after, before[name]), name
    assert moved >= 1
    assert not torch.equal(
        encoder.output_rows[first : first + count], before[decoder_name(encoder)][first : first + count]
    )


def decoder_name(encoder: SparseEncoder) -> str:
    return next(
        name
        for name, parameter in encoder.masked_lm.named_parameters(remove_duplicate=False)
        if parameter is encoder.output_rows
    )


def test_everything_moves_when_all_is_trained(folder, tmp_path):
    encoder = extended(folder)
    before = snapshot(encoder)
    train(encoder, Pull(encoder, settings(train="all")), tmp_path)
    after = snapshot(encoder)
    still = {name for name in before if torch.equal(before[name], after[name])}
    used = {name for name, parameter in encoder.masked_lm.named_parameters() if "pooler" not in name}
    assert not {name for name in still & used if "key.bias" not in name} - {"cls.predictions.bias"}


def test_weight_decay_spares_new_rows(folder, tmp_path):
    """Decay pulls every parameter that it is given towards zero, gradient or not."""
    encoder = extended(folder)
    before = snapshot(encoder)
    stage = Pull(encoder, settings(train="all", weight_decay=0.9, learning_rate=1e-2), tokens=[60, 61])
    stage.ids = encoder.tokenize(["the server", "a test"])  # no new token goes in
    stage.weights = {"near": 1.0, "short": 0.0}  # and none comes out
    train(encoder, stage, tmp_path)
    rows = slice(encoder.old_size, encoder.old_size + 2)
    after = snapshot(encoder)
    for name in before:
        if before[name].shape[0] == encoder.vocabulary_size and name != "cls.predictions.bias":
            assert torch.equal(after[name][rows], before[name][rows]), name
            assert not torch.equal(after[name][:60], before[name][:60]), name


def test_new_rows_have_a_learning_rate_of_their_own(folder, tmp_path):
    """Adam's first step is the learning rate in each coordinate, whatever the gradient."""
    encoder = extended(folder)
    before, first = snapshot(encoder), encoder.old_size
    given = settings(train="all", steps=1, ramp=0.0, learning_rate=1e-4, new_learning_rate=1e-2)
    train(encoder, Pull(encoder, given), tmp_path)
    moved = (encoder.output_rows - before[decoder_name(encoder)]).abs()
    assert_close(moved[first : first + 2].max(), torch.tensor(1e-2), rtol=1e-2, atol=0.0)
    assert_close(moved[:first].max(), torch.tensor(1e-4), rtol=2e-2, atol=0.0)
    assert moved[first + 2 :].max() < 2e-4


@pytest.mark.parametrize(("width", "share"), [(16, 1.0), (128, 1.0), (384, 1 / 3), (768, 1 / 6)])
def test_a_wider_body_learns_by_a_lower_rate_where_none_is_given(folder, monkeypatch, width, share):
    encoder, given = extended(folder), settings(train="all", new_learning_rate=1e-2)
    monkeypatch.setattr(type(encoder), "width", width)
    rates = [group["full_rate"] for group in Parameters(encoder, given).groups()]
    assert rates == [1e-2, pytest.approx(3e-5 * share)]
    one_given = settings(train="all", learning_rate=7e-4)
    assert Parameters(encoder, one_given).groups()[1]["full_rate"] == 7e-4


@pytest.mark.plugins("research")
def test_each_stage_says_its_own_rate():
    from sparse_adapt.plugins.research.stages.published import Published

    described = {
        kind: str(kind.model_fields["learning_rate"].description)
        for kind in (Training, Dictionary, Published)
    }
    assert "by default 3e-05 for a body 128 wide" in described[Training]
    assert "by default 0.0002 for a body 128 wide" in described[Dictionary]
    assert described[Published].endswith("brought, however wide it is.")


def test_the_loss_falls(folder, tmp_path):
    encoder = extended(folder)
    given = settings(steps=30, train="all", learning_rate=1e-2, batch_size=8)
    losses = [row["loss"] for row in train(encoder, Pull(encoder, given), tmp_path)]
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])


def test_a_model_without_new_tokens_trains_as_a_whole_only(tiny_model, tmp_path):
    encoder = SparseEncoder.load(tiny_model)
    with pytest.raises(ConfigError, match="no new tokens"):
        train(encoder, Pull(encoder, settings()), tmp_path)
    before = snapshot(encoder)
    train(encoder, Pull(encoder, settings(train="all")), tmp_path)
    assert not torch.equal(encoder.output_rows, before[decoder_name(encoder)])


# -- how fast ------------------------------------------------------------------------------------


def test_schedule_by_hand():
    rates = [schedule(step, 10, 0.2) for step in range(10)]
    # rises over 2 steps, 1/2 and 2/2, then falls by 1/8 a step
    assert rates == pytest.approx([1 / 2, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])


@pytest.mark.parametrize("ramp", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("steps", [1, 2, 7, 100])
def test_schedule_stays_within_its_range(steps, ramp):
    rates = [schedule(step, steps, ramp) for step in range(steps)]
    assert all(0.0 < rate <= 1.0 for rate in rates)
    top = rates.index(max(rates))
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)


def test_history_holds_each_term_its_sum_and_the_rate(tiny_model, tmp_path):
    _, history, steps = teach(tiny_model, tmp_path, learning_rate=1e-3)
    assert [row["step"] for row in history] == steps == [1, 2, 3, 4, 5, 6]
    for step, row in enumerate(history):
        assert row["loss"] == pytest.approx(row["near"] + 0.1 * row["short"], rel=1e-5)
        assert row["learning_rate"] == pytest.approx(1e-3 * schedule(step, 6, 0.2))
    lines = (tmp_path / HISTORY_FILE).read_text().splitlines()
    assert [json.loads(line) for line in lines] == history


def test_gradients_are_cut_to_their_largest_norm(tiny_model, tmp_path, monkeypatch):
    seen: list[float] = []
    clip = torch.nn.utils.clip_grad_norm_

    def spy(parameters: list[Tensor], norm: float) -> Tensor:
        result = clip(parameters, norm)
        seen.append(float(torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]).norm()))
        return result

    monkeypatch.setattr(loop.nn.utils, "clip_grad_norm_", spy)
    history = teach(tiny_model, tmp_path, max_gradient_norm=0.25, steps=2).history
    assert seen == pytest.approx([0.25, 0.25], rel=1e-3)
    assert all(row["gradient_norm"] > 0.25 for row in history)  # told as it was before it was cut


class InParts(Pull):
    """The same eight texts in each step, in as many parts as the settings say; the loss is a mean over texts."""

    def batch(self, random: np.random.Generator) -> list[int]:
        parts = self.settings.gradient_accumulation
        drawn = random.random()
        number = next(n for n in range(99) if random_at(self.settings.seed, n).random() == drawn)
        size = len(TEXTS) // parts
        return list(range(number % parts * size, (number % parts + 1) * size))

    def terms(self, encoder: SparseEncoder, batch: list[int]) -> dict[str, Tensor]:
        terms = super().terms(encoder, batch)
        return {**terms, "short": terms["short"] * 0.0}  # a square of means is no mean over texts


@pytest.mark.parametrize("which", ["new", "all"])
def test_two_parts_of_four_equal_one_of_eight(folder, tmp_path, which):
    given = {"train": which, "learning_rate": 1e-3, "task": InParts}
    one, *others = (
        teach(folder, tmp_path / str(parts), gradient_accumulation=parts, batch_size=8 // parts, **given)
        for parts in (1, 2, 4)
    )
    for end in others:
        assert_close(end.encoder.output_rows, one.encoder.output_rows, atol=1e-4, rtol=1e-3)
        assert [row["near"] for row in end.history] == pytest.approx(
            [row["near"] for row in one.history], rel=1e-4
        )


# -- words that learn together -------------------------------------------------------------------


class Kin(Pull):
    """Pulls the logits of words, of which the first and another have the same feature."""

    def __init__(self, encoder: SparseEncoder, settings: Training, features: list[list[float]]) -> None:
        super().__init__(encoder, settings)
        ids = torch.tensor([self.ids[0][1], 62, 63])  # the first is read, the others neither read nor pulled
        self.shared_features = SharedFeatures(ids, torch.tensor(features), pace=1e5)


def test_what_one_word_learns_those_like_it_learn(folder, tmp_path):
    moved = []
    for features in ([[1.0], [1.0], [0.0]], [[0.0], [1.0], [1.0]]):
        encoder = extended(folder)
        stage = Kin(encoder, settings(train="all", steps=1, ramp=0.0, learning_rate=1e-7), features)
        before = encoder.input_rows.detach().clone()
        place = tmp_path / str(len(moved))
        place.mkdir()
        train(encoder, stage, place)
        moved.append((encoder.input_rows - before)[stage.shared_features.token_ids].detach())
    like, unlike = moved
    assert like[0].abs().max() == pytest.approx(1e-2, rel=1e-2)  # a first step of Adam's
    assert_close(like[1], like[0], atol=1e-6, rtol=0.0)
    assert like[2].abs().max() < 1e-6
    if encoder.input_rows is not encoder.output_rows:  # else every row has a gradient, as a decoder's
        assert unlike.abs().max() < 1e-6


def test_words_learn_together_only_where_embeddings_learn(folder, tmp_path):
    rows = []
    for place, stage in (("alone", Pull), ("kin", lambda *given: Kin(*given, [[1.0], [1.0], [1.0]]))):
        encoder = extended(folder)
        (tmp_path / place).mkdir()
        train(encoder, stage(encoder, settings()), tmp_path / place)
        rows.append(encoder.input_rows.detach())
    assert torch.equal(*rows)


# -- interruptions -------------------------------------------------------------------------------


class Stopped(Exception):
    """Somebody pulled the plug."""


class Taught(NamedTuple):
    """A model, what its training gave, and the steps that it took this time."""

    encoder: SparseEncoder
    history: list[dict[str, float]] | None
    steps: list[int]

    def same_as(self, other: "Taught") -> bool:
        ours, theirs = snapshot(self.encoder), snapshot(other.encoder)
        return self.history == other.history and all(torch.equal(ours[name], theirs[name]) for name in theirs)


def teach(
    folder: Path, place: Path, stop: int = 0, task: Callable[..., Pull] = Pull, **given: object
) -> Taught:
    """Train a model anew or go on, up to the step of a stop."""
    place.mkdir(exist_ok=True)
    taught = Taught(extended(folder), None, [])

    def progress(done: int, *_: object) -> None:
        taught.steps.append(done)
        if done == stop:
            raise Stopped

    stage = task(taught.encoder, settings(**given))
    with pytest.raises(Stopped) if stop else nullcontext():
        return taught._replace(history=train(taught.encoder, stage, place, progress=progress))
    return taught


@pytest.mark.parametrize("which", ["new", "all"])
def test_a_resumed_training_ends_bit_for_bit_where_an_uninterrupted_one_does(folder, tmp_path, which):
    given = {"train": which, "weight_decay": 0.1, "gradient_accumulation": 2}
    whole = teach(folder, tmp_path / "whole", **given)
    for stop in (1, 2, 4, 5, 5, 6):
        teach(folder, tmp_path / "stopped", stop, **given)
    assert teach(folder, tmp_path / "stopped", **given).same_as(whole)
    histories = [(tmp_path / place / HISTORY_FILE).read_bytes() for place in ("whole", "stopped")]
    assert histories[0] == histories[1]


def test_words_that_learn_together_go_on_where_they_were(folder, tmp_path):
    features = [[1.0, 0.5], [0.3, -1.0], [0.1, 0.7]]
    given = {"train": "all", "weight_decay": 0.1, "task": lambda *two: Kin(*two, features)}
    whole = teach(folder, tmp_path / "whole", **given)
    teach(folder, tmp_path / "stopped", 5, **given)
    assert teach(folder, tmp_path / "stopped", **given).same_as(whole)


def test_a_finished_training_loses_nothing_until_it_is_forgotten(tiny_model, tmp_path):
    first = teach(tiny_model, tmp_path)
    again = teach(tiny_model, tmp_path)  # as after a disk that was full when the model was to be saved
    assert again.same_as(first) and again.steps == []
    forget(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [HISTORY_FILE]
    forget(tmp_path)


def test_the_state_of_another_model_is_refused(tiny_model, tmp_path):
    teach(tiny_model, tmp_path, 3)
    other = SparseEncoder.load(tiny_model)
    extend(other, [Term("quuxly", "jargon")])
    with pytest.raises(InputError, match="another model"):
        train(other, Pull(other, settings()), tmp_path)


def damaged(content: bytes | None = None) -> Callable[[Path], object]:
    """Damage to the newest state: other content, or half of it."""

    def damage(place: Path) -> None:
        path = place / STATE_FILE
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] if content is None else content)

    return damage


def unsound(place: Path) -> None:
    for name in (STATE_FILE, BEFORE_FILE):
        (place / name).write_bytes(b"")


def with_lines(rows: int) -> Callable[[Path], object]:
    """A history that lost the lines behind these, as on a disk that lost its power."""

    def cut(place: Path) -> None:
        lines = (place / HISTORY_FILE).read_bytes().splitlines(keepends=True)
        (place / HISTORY_FILE).write_bytes(b"".join(lines[:rows]) + b"\xff\xfe")

    return cut


def with_half_a_line(place: Path) -> None:
    with (place / HISTORY_FILE).open("a") as file:
        file.write('{"step": 6, "ne')


def test_what_an_interruption_leaves_is_gone_on_from_as_far_as_it_is_sound(tiny_model, tmp_path):
    """Stopped at step 5 it leaves the states of steps 2 and 4; no step is done again behind a sound one."""
    whole = teach(tiny_model, tmp_path / "whole")
    teach(tiny_model, tmp_path / "stopped", 5)
    cases = [(lambda _: None, 5), (with_half_a_line, 5), (unsound, 1)]
    cases += [(damaged(content), 3) for content in (b"", b"\x08", b"x" * 100, None)]
    cases += [(with_lines(rows), 3 if rows == 3 else 1) for rows in (0, 1, 3)]
    for number, (damage, first) in enumerate(cases):
        place = Path(shutil.copytree(tmp_path / "stopped", tmp_path / str(number)))
        damage(place)
        resumed = teach(tiny_model, place)
        assert resumed.steps == [*range(first, 7)], number
        assert resumed.same_as(whole), number


def test_a_state_is_on_the_disk_before_it_is_in_its_place(tiny_model, tmp_path, monkeypatch):
    """Every rename follows an fsync of what is renamed, and is followed by one of the folder."""
    events: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def syncing(descriptor: int) -> None:
        events.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        fsync(descriptor)

    def renaming(source: Any, target: Any, **options: Any) -> None:
        events.append(("rename", str(source)))
        replace(source, target, **options)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "replace", renaming)
    encoder = extended(tiny_model)
    train(encoder, Pull(encoder, settings()), tmp_path)
    renamed = [place for place, (kind, path) in enumerate(events) if kind == "rename" and ".partial" in path]
    assert len(renamed) == 4  # the history once, and a state every 2 steps
    for place in renamed:
        assert ("sync", events[place][1]) in events[:place]
        assert ("sync", str(tmp_path)) in events[place:]


def teach_dying(model: Path, place: Path, step: int, saving: bool) -> None:
    """Train, and die behind a step, or while a state is saved."""
    if saving:
        Path.replace = lambda *_: kill_this()  # the state is written, but not yet in its place
    encoder = extended(model)
    train(encoder, Pull(encoder, settings(train="all")), place, progress=dying_at(step))


def test_a_killed_process_leaves_no_trace_in_the_result(tiny_model, tmp_path):
    torch.set_num_threads(1)
    whole, place = teach(tiny_model, tmp_path / "whole", train="all"), tmp_path / "killed"
    place.mkdir()
    for step, saving in ((3, False), (5, False), (99, True)):
        ended = forked(partial(teach_dying, tiny_model, place, step, saving))
        assert ended.status == -signal.SIGKILL, ended.messages
        assert (place / STATE_FILE).is_file()
    assert teach(tiny_model, place, train="all").same_as(whole)
    assert (place / HISTORY_FILE).read_bytes() == (tmp_path / "whole" / HISTORY_FILE).read_bytes()


def test_the_same_seed_gives_the_same_bits_and_another_one_others(tiny_model, tmp_path):
    ends = []
    for number, seed in enumerate((0, 0, 1)):
        torch.manual_seed(number)  # the global generator is nothing to it
        ends.append(teach(tiny_model, tmp_path / str(number), seed=seed, train="all"))
    assert ends[0].same_as(ends[1]) and not ends[0].same_as(ends[2])


# -- precision, devices, what goes wrong ---------------------------------------------------------


def test_bfloat16_trains_float32_weights_to_nearly_the_same_place(folder, tmp_path):
    ends = []
    for precision in ("float32", "bfloat16"):
        given = {"precision": precision, "train": "all", "learning_rate": 1e-3}
        ends.append(teach(folder, tmp_path / precision, **given))
        assert all(parameter.dtype == torch.float32 for parameter in ends[-1].encoder.parameters())
    full, half = ([row["loss"] for row in taught.history] for taught in ends)
    assert half == pytest.approx(full, rel=0.1)
    assert half != full


def test_settings_that_no_machine_here_can_follow_are_refused():
    for given in ({"device": "tpu"}, {"device": "cpu", "precision": "float16"}):
        with pytest.raises(ConfigError):
            loop.device_of(settings(**given))
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no CUDA device"):
            loop.device_of(settings(device="cuda"))
    assert loop.device_of(settings()) == "cpu"


class Broken(Pull):
    """Gives something that is no number at the third step."""

    calls = 0

    def terms(self, encoder: SparseEncoder, batch: list[int]) -> dict[str, Tensor]:
        self.calls += 1
        terms = super().terms(encoder, batch)
        return {**terms, "near": terms["near"] * (float("nan") if self.calls == 3 else 1.0)}


def test_a_loss_that_is_no_number_ends_the_training_in_one_line(tiny_model, tmp_path):
    encoder = extended(tiny_model)
    with pytest.raises(ConfigError) as caught:
        train(encoder, Broken(encoder, settings()), tmp_path)
    message = str(caught.value)
    assert message.startswith("pull: the loss is nan at step 3")
    assert "--learning-rate" in message
    assert "\n" not in message
    assert encoder.output_rows.isfinite().all()


def test_scalars_are_written_when_asked_for(tiny_model, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    teach(tiny_model, tmp_path, 5, tensorboard=True)
    history = teach(tiny_model, tmp_path, tensorboard=True).history
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert set(events.Tags()["scalars"]) == {
        f"pull/{key}" for key in ("near", "short", "loss", "gradient_norm", "learning_rate")
    }
    found = {event.step: event.value for event in events.Scalars("pull/near")}
    assert found == pytest.approx({row["step"]: row["near"] for row in history})
    assert len(events.Scalars("pull/near")) == 6  # what was done twice counts once


def test_no_scalars_unless_asked_for(tiny_model, tmp_path):
    teach(tiny_model, tmp_path)
    assert not (tmp_path / "tensorboard").exists()


def test_without_tensorboard_the_error_says_what_to_install(tiny_model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sparse-adapt\[tensorboard\]'"):
        teach(tiny_model, tmp_path, tensorboard=True)


@pytest.mark.parametrize(
    ("epochs", "texts", "steps"),
    # 24/6; a pass over 25 is ceil(25/6) = 5 batches; ceil(1/2) and ceil(1/100) of one; 2 1/2 passes of 5
    [(None, 5, 77), (1.0, 24, 4), (2.0, 25, 10), (0.5, 6, 1), (0.01, 3, 1), (2.5, 25, 13)],
)
def test_epochs_to_steps_by_hand(epochs, texts, steps):
    given = settings(steps=77, epochs=epochs, batch_size=3, gradient_accumulation=2)
    assert given.steps_for(texts) == steps


@pytest.mark.parametrize(
    ("epochs", "losses", "means"),
    [
        (2.0, [1.0, 3.0, 5.0, 7.0], [2.0, 6.0]),
        (1.5, [1.0, 3.0, 5.0], [2.0, 5.0]),  # the second is half of one
        (0.5, [1.0, 3.0], [2.0]),
    ],
)
def test_the_mean_of_each_epoch_by_hand(epochs, losses, means):
    history = [{"step": step, "loss": loss} for step, loss in enumerate(losses, start=1)]
    assert [each["loss"] for each in epoch_means(history, epochs)] == means


def test_a_model_without_biases_cant_learn_by_them(tmp_path):
    encoder = extended(build(tmp_path / "model", "modernbert-no-bias", tied=True))
    with pytest.raises(ConfigError, match='nothing that train = "biases" could move; set train = "all"'):
        train(encoder, Pull(encoder, settings(train="biases")), tmp_path)
    assert len(train(encoder, Pull(encoder, settings(train="attention")), tmp_path)) == 6
