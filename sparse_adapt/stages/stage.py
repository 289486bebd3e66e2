"""What a stage is: its settings, the inputs that it takes, and how the task that it sets is built."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from sparse_adapt.errors import ConfigError
from sparse_adapt.settings import Settings
from sparse_adapt.stages.inputs import Input, Inputs
from sparse_adapt.training.settings import Training

Part = Literal["sum", "table", "prompts", "encoders", "beside"]
UNUSUAL: Mapping[str, str] = {
    "sum": "sums its weights over positions",
    "table": "weighs queries by a table",
    "prompts": "puts a prompt before texts",
    "encoders": "reads queries by a model of its own",
    "beside": "has terms beside their pieces",
}

if TYPE_CHECKING:  # a stage is known before torch is loaded
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Task

SettingsOf = TypeVar("SettingsOf", bound=Settings)
Preset = Mapping[str, object]  # settings that differ from the defaults, as a run file holds them


class Changed(NamedTuple):
    """What a stage that trains nothing has done to its encoder: in words, and for the record."""

    message: str
    record: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Stage(Generic[SettingsOf]):
    """One stage. `build` sets the encoder a task to be trained on, or changes the encoder at once.

    `reads`: its inputs in the order of its record. `dense`: whether dense encoders take it as well as sparse ones.
    `presets`: other settings than the defaults, under a name.
    `refuses`: parts of a sparse model's form that it can't teach, beside two encoders, which none can.
    `texts`: how many documents are about as long to learn from as one item of a batch, with all that is read for it.
    """

    name: str
    settings: type[SettingsOf]
    reads: tuple[Input[object], ...]
    build: "Callable[[EitherEncoder, Inputs, SettingsOf], Task[Any] | Changed]"
    dense: bool = True
    presets: Mapping[str, Preset] = field(default_factory=dict)
    refuses: "tuple[Part, ...]" = ()
    texts: float = 1.0

    @property
    def trains(self) -> bool:
        """Whether it has the settings of training: steps, learning rates and the rest."""
        return issubclass(self.settings, Training)

    @property
    def has_settings(self) -> bool:
        """Whether anything of it can be set."""
        return bool(self.settings.model_fields)

    def texts_of(self, settings: Training) -> float:
        """How many documents a step is as long to learn from as, by settings that may be open."""
        batch_size = settings.settled().batch_size
        assert batch_size is not None, "settled"
        return batch_size * self.texts

    @property
    def needs(self) -> tuple[Input[object], ...]:
        """The inputs that it can't begin without, but for the corpus."""
        return tuple(each for each in self.reads if each.needed and each.key != "corpus")

    @property
    def named(self) -> tuple[Input[object], ...]:
        """The inputs that a run file may name, but for the corpus: those that it needs, and a model to compare with."""
        return (*self.needs, *(each for each in self.reads if each.source == "named"))

    @property
    def needs_corpus(self) -> bool:
        """Whether it can't begin without a corpus."""
        return any(each.needed and each.key == "corpus" for each in self.reads)

    def made(self, encoder: "EitherEncoder", inputs: Inputs, settings: Settings) -> "Task[Any] | Changed":
        """What it sets an encoder by settings of its own kind."""
        assert isinstance(settings, self.settings), (self.name, settings)
        for part in ("encoders", *self.refuses):
            if part in encoder.unusual:
                raise ConfigError(f"{inputs.model}: {UNUSUAL[part]}, which the stage {self.name} can't teach")
        return self.build(encoder, inputs, settings)
