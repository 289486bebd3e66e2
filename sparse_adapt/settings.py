"""What every table of settings has in common: it is frozen, unknown keys are refused, each key is explained.

The settings of a stage stand in the stage's file, those of everything else beside their code. Defaults stand there and
nowhere else.
"""

from collections.abc import Mapping
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, model_validator

AUTO = "auto"  # of a key that is settled later


class Settings(BaseModel):
    """One table of a run file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _settled_later(cls, content: object) -> object:
        """What a user calls "auto" is None: settled by what there is to learn from. A list of a file is a tuple."""
        if not isinstance(content, Mapping):
            return content
        return {key: cls._value(key, value) for key, value in content.items()}

    @classmethod
    def _value(cls, key: object, value: object) -> object:
        if value == AUTO and cls.may_be_auto(key):
            return None
        field = cls.model_fields.get(str(key))
        a_tuple = field is not None and get_origin(field.annotation) is tuple
        return tuple(value) if a_tuple and isinstance(value, list) else value

    @classmethod
    def may_be_auto(cls, key: object) -> bool:
        """Whether a key of the table may be left to be settled later; a name stands for itself."""
        field = cls.model_fields.get(str(key))
        kinds = () if field is None else get_args(field.annotation)
        return NoneType in kinds and str not in kinds

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

    Without a description it is explained as in the table that this one extends. `more` is said of it besides.
    """
    extra = {key: text for key, text in (("unit", unit), ("source", source)) if text} | dict(more or {})
    bounds: dict[str, Any] = {"gt": gt, "ge": ge, "lt": lt, "le": le}
    return Field(default, description=description, json_schema_extra=extra or None, **bounds)
