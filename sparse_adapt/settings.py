"""What every table of settings has in common: it is frozen, unknown keys are refused, each key is explained.

The settings of a stage stand in the stage's file, those of everything else beside their code. Defaults stand there and
nowhere else.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """One table of a run file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:  # noqa: ANN401 - pydantic's signature
        """A key that only moves its default is explained as in the table that it comes from."""
        for name, field in cls.model_fields.items():
            above = (kind.model_fields.get(name) for kind in cls.__mro__[1:] if issubclass(kind, Settings))
            for inherited in above:
                if inherited is not None and field.description is None:
                    field.description = inherited.description
                    field.json_schema_extra = field.json_schema_extra or inherited.json_schema_extra


def setting(
    default: Any,  # noqa: ANN401 - of the key's own type, which pydantic checks
    description: str | None = None,
    *,
    unit: str = "",
    source: str = "",
    gt: float | None = None,
    ge: float | None = None,
    lt: float | None = None,
    le: float | None = None,
    more: Mapping[str, Any] | None = None,
) -> Any:  # noqa: ANN401 - as pydantic's Field
    """A key of a table: its default, what it means, its unit, where it comes from, and its bounds.

    Without a description it is explained as in the table that this one extends. `more` is told of it besides.
    """
    told = {key: text for key, text in (("unit", unit), ("source", source)) if text} | dict(more or {})
    bounds: dict[str, Any] = {"gt": gt, "ge": ge, "lt": lt, "le": le}
    return Field(default, description=description, json_schema_extra=told or None, **bounds)
