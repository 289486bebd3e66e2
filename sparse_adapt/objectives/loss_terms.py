"""Loss terms: each is one function, and one row among the loss weights of its stages.

A function takes what a step has read, and gives the loss without its weight. The row has the weight by default.
"""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from sparse_adapt.settings import Settings, setting

if TYPE_CHECKING:
    from torch import Tensor

OBJECTIVES = "sparse_adapt.objectives"  # where the functions of shared terms are
Function = Callable[[Any], "Tensor"]  # of what the stage's steps read


def term(weight: float, description: str, function: str, *, source: str = "", sparse: bool = False) -> Any:  # noqa: ANN401 - as pydantic's Field
    """A row among loss weights. `function`: the function's place, loaded when a stage is built.

    `sparse`: whether the term is of sparse encoders alone.
    """
    more = {"function": function, "sparse": sparse}
    return setting(weight, description, source=source, more=more, ge=0)


def functions(weights: type[Settings], *, dense: bool = False) -> dict[str, Function]:
    """The function of each term, by its key, in the order of the rows; for dense encoders those that these have."""
    losses = {}
    for key, field in weights.model_fields.items():
        extra = field.json_schema_extra
        assert isinstance(extra, dict), key
        if not (dense and extra["sparse"]):
            losses[key] = resolve_name(str(extra["function"]))
    return losses
