"""Settings of an adaptation to a bare corpus."""

from typing import Literal

from pydantic import field_validator

from sparse_adapt.model.reading import Reading
from sparse_adapt.settings import Settings, setting
from sparse_adapt.synthetic.queries import QuerySettings
from sparse_adapt.teachers.settings import CandidateSettings

WORDS = "words"  # among the stages of an adaptation: exact words, for which nothing is trained
AdaptStage = Literal[
    "words",
    "extend",
    "preserve",
    "warmup",
    "dictionary",
    "dynamic",
    "joint",
    "contrast",
    "rank",
]


class AdaptSettings(Settings):
    """A model adapted from a bare corpus."""

    seed: int = setting(0, "Seed of every random draw.", ge=0)
    documents: int = setting(
        20_000,
        "Documents of a larger corpus that are learnt from. Terms come from all of it.",
        unit="documents",
        ge=8,
    )
    share: float = setting(
        0.25, "Gain that one more term has to reach.", unit="share of the mean gain of those before it", ge=0
    )
    stages: tuple[AdaptStage, ...] = setting(
        (WORDS,),
        "Stages that are carried out where there is something to do in them; by default exact words are put into the "
        "vectors, and with a glossary its terms are taught as well.",
    )
    queries: QuerySettings = setting(
        QuerySettings(), "How queries are made of the documents.", more={"option": "query_settings"}
    )
    candidates: CandidateSettings = setting(
        CandidateSettings(),
        "Which documents of a query the teacher scores.",
        more={"option": "candidate_settings"},
    )
    interpolations: tuple[float, ...] = setting(
        (0.5,),
        "Interpolation weights of models between the one before ranking and the ranked one that are tried.",
        unit="interpolation weight",
    )
    frozen: bool = setting(
        False,
        "Whether new rows learn alone. Documents without a new term keep their vectors then.",
        more={"option": "only_new"},
    )
    max_tokens: int | None = setting(
        None, "Tokens of a text that are read; by default as many as before.", unit="tokens", ge=8
    )

    windows: int | None = setting(
        None,
        "Tokens of a window in which documents are read whole, by default up to `max_tokens` alone. Stages learn from "
        "the beginning of a document.",
        unit="tokens",
        ge=8,
    )
    overlap: int | None = setting(
        None, "Tokens of a window that the next one repeats; 32 by default.", unit="tokens", ge=0
    )

    @field_validator("stages", "interpolations", mode="before")
    @classmethod
    def _as_read_from_json(cls, values: object) -> object:
        """A list, as JSON has it, serves as well."""
        return tuple(values) if isinstance(values, list) else values

    @classmethod
    def options(cls) -> dict[str, str]:
        """The option of each setting, by the setting's name."""
        extras = {name: field.json_schema_extra for name, field in cls.model_fields.items()}
        return {
            name: str(extra.get("option", name)) if isinstance(extra, dict) else name
            for name, extra in extras.items()
        }

    @staticmethod
    def seeds(seed: int) -> dict[str, object]:
        """Settings by which everything is drawn with one seed."""
        return {"seed": seed, "queries": {"seed": seed}, "candidates": {"seed": seed}}

    @property
    def reading(self) -> Reading:
        """How documents are read wherever they are encoded."""
        return Reading(windows=self.windows, overlap=self.overlap)

    @property
    def longest(self) -> int | None:
        """Tokens of a text that the stages read; None, as many as before, where vectors are to stay."""
        return None if self.frozen else self.max_tokens
