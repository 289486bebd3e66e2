"""Settings of every training stage: how long it learns, how fast, on what."""

import math
import re
from typing import Any, ClassVar, Literal, Self

from pydantic import SerializerFunctionWrapHandler, field_validator, model_serializer
from pydantic_core import PydanticCustomError

from sparse_adapt.errors import ConfigError
from sparse_adapt.settings import AUTO, Settings, setting

Trained = Literal["new", "rows", "all", "biases", "attention"]
UNITS = {"M": 1_000_000, "G": 1_000_000_000}  # bytes
GENTLE = 3e-5  # learning rate of what has been taught before, in a narrow model
NARROW = 128  # width of the model whose learning rates were measured
RATE_HELP = (
    "Highest learning rate of the weights that the base model brought; by default {:g} for a body "
    f"{NARROW} wide, times {NARROW} / width for a wider one."
)


def at_width(rate: float, width: int, measured_at: int = NARROW) -> float:
    """A learning rate that was measured on a body of one width, for a body of another.

    A step of Adam moves every weight as far, so that what a wider layer adds up moves further. Yang et al. 2022,
    arXiv:2203.03466.
    """
    return rate * min(1.0, measured_at / width)


class Training(Settings):
    """How long a stage learns, how fast, and on what machine."""

    fits_rows: ClassVar[bool] = (
        False  # whether rows fitted to a body that stands still can be all that it teaches
    )
    narrow_rate: ClassVar[float] = GENTLE  # learning rate of a model NARROW wide

    seed: int = setting(
        0, "Seed of every random draw. On one CPU the same seed gives the same model, bit for bit.", ge=0
    )
    learning_rate: float | None = setting(
        None,
        RATE_HELP.format(GENTLE),
        source="Yang et al. 2022, arXiv:2203.03466",
        gt=0,
    )
    new_learning_rate: float = setting(
        1e-2, "Highest learning rate of the rows and biases of new tokens.", gt=0
    )
    steps: int | None = setting(
        200, "How many times the weights move. Ignored where `epochs` is given.", unit="steps", ge=1
    )
    epochs: float | None = setting(
        None,
        "How often the stage goes over its texts, in place of a number of steps.",
        unit="passes",
        gt=0,
        le=1e6,
    )
    batch_size: int = setting(16, "How many texts teach in one step.", unit="texts", ge=1, le=1_000_000)
    gradient_accumulation: int = setting(
        1, "How many batches are read before the weights move by the mean of them.", unit="batches", ge=1
    )
    ramp: float = setting(
        0.1,
        "First part of the steps, in which the learning rate rises. In the rest it falls to nothing.",
        unit="share of the steps",
        ge=0,
        le=1,
    )
    max_gradient_norm: float = setting(1.0, "Length to which the gradient of a step is cut.", gt=0)
    weight_decay: float = setting(
        0.0,
        "Share by which a step at full learning rate shrinks the weights. New rows don't shrink.",
        source="Loshchilov and Hutter 2019, arXiv:1711.05101",
        ge=0,
    )
    train: Trained = setting(
        "new",
        "What learns beside the rows of new tokens: all weights, biases or attention alone, or nothing (`new`). "
        "With `rows` the output rows of taught terms are fitted at once, without steps: in `dictionary` alone.",
        source="biases: Ben Zaken et al. 2022, arXiv:2106.10199",
    )
    device: str = setting("auto", "Where the stage trains: auto, cpu, cuda or mps.")
    precision: Literal["float32", "bfloat16", "float16"] = setting(
        "float32", "Number format in which texts are read. Losses and weights are float32 always."
    )
    memory: str | None = setting(
        None,
        "Memory that the stage may take, such as 8G or 900M: texts are read in parts, for the same result in up to "
        "twice the time. By default all texts of a step are read at once.",
        source="Chen et al. 2016, arXiv:1604.06174",
    )
    max_tokens: int | None = setting(
        None, "Tokens of a text that the model reads from this stage on.", unit="tokens", ge=8
    )
    checkpoint_every: int = setting(
        50, "Steps after which the state is saved. A stopped stage goes on from there.", unit="steps", ge=1
    )
    tensorboard: bool = setting(False, "Whether scalars for TensorBoard are written beside the model.")

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:  # noqa: ANN401 - pydantic's signature
        """Each stage says its own learning rate."""
        super().__pydantic_init_subclass__(**more)
        field = cls.model_fields["learning_rate"]
        if field.default is None:
            field.description = RATE_HELP.format(cls.narrow_rate)

    @field_validator("train")
    @classmethod
    def _has_a_fit(cls, train: Trained) -> Trained:
        """What a stage without a fit can't do is said before anything is read."""
        if train == "rows" and not cls.fits_rows:
            raise PydanticCustomError(
                "no_fit", "is for the stage dictionary, which alone fits rows to a body that stands still"
            )
        return train

    @field_validator("memory")
    @classmethod
    def _is_memory(cls, memory: str | None) -> str | None:
        """An amount with its unit; a run file that leaves it open says "auto"."""
        if memory in (None, AUTO):
            return None
        if not re.fullmatch(r"\d{1,6}(\.\d{1,3})?[MG]", memory, re.ASCII):
            raise PydanticCustomError("no_memory", "should be an amount of memory such as 8G, 6.5G or 900M")
        return memory

    @model_serializer(mode="wrap")
    def _without_open_bound(self, content: SerializerFunctionWrapHandler) -> dict[str, object]:
        """A record tells of a bound where there is one."""
        written: dict[str, object] = content(self)
        if written.get("memory") is None:
            written.pop("memory", None)
        return written

    @property
    def memory_bytes(self) -> float:
        """The bound on memory, where there is one."""
        return math.inf if self.memory is None else float(self.memory[:-1]) * UNITS[self.memory[-1]]

    def settled(self, *, queries: int = 0, terms: int = 0) -> Self:
        """These settings with nothing open: for so many queries to learn from, and so many new terms."""
        return self

    def rate_at(self, width: int) -> float:
        """The learning rate of the base model's weights: where none is given, that for a body so wide."""
        return at_width(self.narrow_rate, width) if self.learning_rate is None else self.learning_rate

    def steps_for(self, texts: int) -> int:
        """Steps of a stage over so many texts: as many passes as asked for, or else the number of steps.

        The last batch of a pass may be smaller, and counts as one.
        """
        if self.epochs is None:
            if self.steps is None:
                raise ConfigError("steps: needs a number, or epochs one")
            return self.steps
        a_pass = math.ceil(texts / (self.batch_size * self.gradient_accumulation))
        return max(1, math.ceil(self.epochs * a_pass))
