"""The one training loop: optimiser, schedule, checkpoints, exact resume, history.

Everything random in a step is a function of the seed and the step's number, and so is the learning rate; a
checkpoint therefore needs no more than the weights, the optimiser's moments and the number of steps done, and what
a stage keeps beside the encoder (`Accompanied`).
Trained without dropout: what is compared with the base model differs only by what was learnt. Several processes
(`accelerate launch`) do the same steps as one: `batch_size` is that of all of them together.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from numpy.random import Generator, default_rng
from torch import Tensor, nn
from torch.optim import Optimizer
from transformers import PreTrainedModel

from sparse_adapt.errors import ConfigError, MissingExtraError
from sparse_adapt.files.processes import check_environment, from_first, is_main, several
from sparse_adapt.files.writing import sync, write_text
from sparse_adapt.model.encoder import Encoder
from sparse_adapt.training.losses import total
from sparse_adapt.training.parameters import Parameters
from sparse_adapt.training.settings import Training
from sparse_adapt.training.shared_steps import SharedFeatures
from sparse_adapt.training.sharing import add_gradients, sharing
from sparse_adapt.training.state import load_state, save_state

if TYPE_CHECKING:  # tensorboard is an extra
    from torch.utils.tensorboard import SummaryWriter

HISTORY_FILE = "history.jsonl"
NO_TERMS = ("step", "gradient_norm", "learning_rate")  # columns of a history that are no part of the loss
StepProgress = Callable[[int, int, Mapping[str, float]], None]
Either = TypeVar("Either", bound=Encoder)
Student = TypeVar("Student", bound=Encoder, contravariant=True)


class Task(Protocol[Student]):
    """What a stage has to say to a kind of encoder; `train` says how it is done."""

    @property
    def name(self) -> str:
        """What its history and its messages call it."""

    @property
    def settings(self) -> Training:
        """How long, how fast, on what."""

    @property
    def steps(self) -> int:
        """Optimiser steps."""

    @property
    def weights(self) -> Mapping[str, float]:
        """Loss weights by term."""

    def batch(self, random: Generator) -> Any:  # noqa: ANN401 - each stage has its own
        """The next batch, a function of the generator alone."""

    def terms(self, encoder: Student, batch: Any) -> dict[str, Tensor]:  # noqa: ANN401
        """Unweighted loss terms under their keys, a scalar each: ()."""


@runtime_checkable
class Accompanied(Protocol):
    """A stage with a module beside the encoder: parameters that learn with it, buffers that a resumed stage needs.

    They learn as fast as new rows do, unless the module has a `learning_rate` of its own.
    """

    @property
    def beside(self) -> nn.Module | None:
        """The module, made anew by the same seed whenever the stage is; None where nothing learns beside."""


@runtime_checkable
class Related(Protocol):
    """A stage that knows which words are alike."""

    @property
    def shared_features(self) -> SharedFeatures | None:
        """What is known of words, so that their embeddings learn together; None where nothing is."""


@runtime_checkable
class Beginning(Protocol):
    """A stage that gives the encoder something before its first step."""

    def begin(self, encoder: Any) -> None:  # noqa: ANN401 - of the stage's own kind
        """Change the encoder in place, always alike, for a resumed stage may do it again."""


@runtime_checkable
class Concluding(Protocol):
    """A stage that has something to give or to tell once it has taught."""

    def conclude(self, encoder: Any) -> Mapping[str, object]:  # noqa: ANN401 - of the stage's own kind
        """Give the taught encoder what is to be saved with it; what the record says besides."""


@runtime_checkable
class Telling(Protocol):
    """A stage that has something to say to a reader once it has taught."""

    def tell(self, record: Mapping[str, Any]) -> str:
        """What its record shows, in words."""


def train(
    encoder: Either, stage: Task[Either], folder: Path, *, progress: StepProgress | None = None
) -> list[dict[str, float]]:
    """Train in place and return the history, a row a step. `folder` keeps history and state, and resumes from them.

    On one CPU the same seed gives the same bits, interrupted or not. The state of the last step stays there
    too, so that nothing is lost if the model can't be saved; `forget` removes it afterwards.
    """
    settings = stage.settings
    accelerator = accelerator_for(settings)
    encoder.to(accelerator.device).eval()
    choose_attention(encoder, accelerator)
    beside = beside_of(stage, accelerator.device)
    shared_features = stage.shared_features if isinstance(stage, Related) else None
    parameters = Parameters(encoder, settings, beside, shared_features)
    optimiser = torch.optim.AdamW(
        parameters.groups(), weight_decay=settings.weight_decay, eps=1e-8, fused=True
    )
    history = read_history(folder / HISTORY_FILE)
    done = load_state(folder, parameters, optimiser, history)
    if not done and isinstance(stage, Beginning):
        stage.begin(encoder)
        parameters.take_up()
    del history[done:]
    objective = accelerator.prepare_model(Objective(sharing(encoder), stage), evaluation_mode=True)
    prepared = accelerator.prepare_optimizer(optimiser)
    scalars = _scalars(folder, done) if settings.tensorboard and is_main() else None
    with _history_log(folder / HISTORY_FILE, history) as log:
        for step in range(done, stage.steps):
            rate = schedule(step, stage.steps, settings.ramp)
            parameters.set_rate(prepared, rate)
            values, norm = _step(accelerator, objective, stage, prepared, parameters, step)
            row = {"step": step + 1, **values, "gradient_norm": norm, "learning_rate": parameters.rate * rate}
            history.append(row)
            log.write(json.dumps(row) + "\n")
            if scalars is not None:
                for key in row.keys() - {"step"}:
                    scalars.add_scalar(f"{stage.name}/{key}", row[key], step + 1)
            if is_main() and ((step + 1) % settings.checkpoint_every == 0 or step + 1 == stage.steps):
                sync(folder / HISTORY_FILE)  # of which the state presumes a row a step
                save_state(folder, parameters, optimiser, step + 1)
            if progress is not None:
                progress(step + 1, stage.steps, values)
    if scalars is not None:
        scalars.close()
    return history


def beside_of(stage: Task[Any], device: torch.device) -> nn.Module:
    """The module that learns beside an encoder, brought to its device; an empty one where a stage has none."""
    beside = stage.beside if isinstance(stage, Accompanied) else None
    return nn.Module() if beside is None else beside.to(device)


def device_of(settings: Training) -> str:
    """Where a stage trains, and so where everything that it compares with has to be."""
    return str(accelerator_for(settings).device)


def schedule(step: int, steps: int, ramp: float) -> float:
    """Share of the full learning rate at a step: a linear rise over the first `ramp` of the steps, then a fall to 0."""
    rise = (step + 1) / max(1.0, ramp * steps)
    return min(1.0, rise, (steps - step) / max(1.0, (1.0 - ramp) * steps))


def random_at(seed: int, step: int) -> Generator:
    """The generator of one step; no step depends on those before it."""
    return default_rng([seed, step])


class Objective(nn.Module):
    """Encoder and stage as one module, so that wrappers for many devices see a single forward."""

    def __init__(self, encoder: Encoder, stage: Task[Any]) -> None:
        super().__init__()
        self.encoder = encoder
        self.stage = stage

    def forward(self, batch: Any) -> dict[str, Tensor]:  # noqa: ANN401 - each stage has its own batch
        """Unweighted terms of one batch, a scalar each: ()."""
        return self.stage.terms(self.encoder, batch)


def _step(
    accelerator: Accelerator,
    objective: nn.Module,
    stage: Task[Any],
    optimiser: Optimizer,
    parameters: Parameters,
    step: int,
) -> tuple[dict[str, float], float]:
    """One optimiser step: the mean of each term over its micro-batches and the weighted loss; the gradient's length.

    The length is that before the gradient is cut.
    """
    parts = stage.settings.gradient_accumulation
    sums: dict[str, float] = {}
    for part in range(parts):
        random = random_at(stage.settings.seed, step * parts + part)
        batch = from_first(stage.batch(random) if is_main() else None)
        with accelerator.autocast():
            terms = objective(batch)
        loss = total(terms, stage.weights)
        accelerator.backward(loss / parts)
        for key, value in (*terms.items(), ("loss", loss)):
            sums[key] = sums.get(key, 0.0) + float(value.detach()) / parts
    if not math.isfinite(sums["loss"]):
        raise ConfigError(
            f"{stage.name}: the loss is {sums['loss']} at step {step + 1}; lower --learning-rate or use float32"
        )
    parameters.collect()
    add_gradients(parameters.trained())
    accelerator.unscale_gradients()  # of float16, before they are measured
    norm = float(nn.utils.clip_grad_norm_(parameters.trained(), stage.settings.max_gradient_norm))
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    for parameter in parameters.whole:
        parameter.grad = None
    parameters.put_back()
    return sums, norm


def accelerator_for(settings: Training) -> Accelerator:
    """The device and the precision of a stage. Raises ConfigError for what there isn't here."""
    check_environment()
    if settings.device not in ("auto", "cpu", "cuda", "mps"):
        raise ConfigError(f"device = {settings.device!r}: choose auto, cpu, cuda or mps")
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device = 'cuda': no CUDA device is visible; use --device cpu")
    precision = {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}[settings.precision]
    cpu = settings.device == "cpu" or not (torch.cuda.is_available() or torch.backends.mps.is_available())
    if precision == "fp16" and cpu:
        raise ConfigError("precision = 'float16' needs a GPU; use bfloat16 or float32")
    AcceleratorState._reset_state()  # or the precision of an earlier stage in this process is held on to
    accelerator = Accelerator(mixed_precision=precision, cpu=cpu)
    if several() and cpu != (accelerator.device.type == "cpu"):
        raise ConfigError(
            f"device = {settings.device!r}, but these processes share a GPU's network; use: accelerate launch --cpu"
        )
    return accelerator


def choose_attention(encoder: Encoder, accelerator: Accelerator) -> None:
    """Let a body that learns in bfloat16 on a processor attend by plain products.

    The way back through torch's fused attention takes twice as long there, at 128 tokens and 384 wide.
    """
    if accelerator.device.type == "cpu" and accelerator.mixed_precision == "bf16":
        for module in encoder.children():
            if isinstance(module, PreTrainedModel):
                module.set_attn_implementation("eager")


@contextmanager
def _history_log(path: Path, history: Sequence[Mapping[str, float]]) -> Iterator[IO[str]]:
    """A file that begins with the steps done before and takes a line a step; only the first process has one."""
    if is_main():
        write_text(path, "".join(json.dumps(row) + "\n" for row in history))
    with path.open("a", encoding="utf-8", buffering=1) if is_main() else StringIO() as log:
        yield log


def read_history(path: Path) -> list[dict[str, float]]:
    """Rows of a history, up to the first line that isn't one: a kill may have cut the last."""
    rows: list[dict[str, float]] = []
    for line in path.read_bytes().split(b"\n") if path.is_file() else ():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(row, dict) or not all(isinstance(value, int | float) for value in row.values()):
            break
        rows.append(row)
    return rows


def epoch_means(history: Sequence[Mapping[str, float]], epochs: float) -> list[dict[str, float]]:
    """The mean of each column of a history over every epoch, of which there are so many; the last may be a part."""
    steps = math.floor(len(history) / max(1.0, epochs))
    parts = [history[start : start + steps] for start in range(0, len(history), steps)]
    return [{key: fmean(row[key] for row in part) for key in part[0]} for part in parts]


def _scalars(folder: Path, done: int) -> "SummaryWriter":
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError("tensorboard", "tensorboard") from error
    return SummaryWriter(str(folder / "tensorboard"), purge_step=done + 1)
