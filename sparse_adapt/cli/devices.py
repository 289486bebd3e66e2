"""A model on the device that was asked for."""

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparse_adapt.api.models import Model
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.reading import Reading
    from sparse_adapt.model.sparse import SparseEncoder


def load(model: str, device: str, reading: "Reading") -> "SparseEncoder":
    """Load a model for encoding; `auto` takes the fastest device there is. `reading`: how much of a text is read."""
    return replace(reading, device=device).load_sparse(model)


def load_either(model: str, device: str, reading: "Reading") -> "EitherEncoder":
    """The same for a SPLADE model or a dense one."""
    return replace(reading, device=device).load(model)


def load_to_read(model: str, device: str, reading: "Reading") -> "Model":
    """A model of either kind for the functions of `api`, which reads as much of a text as was asked for."""
    from sparse_adapt.api.models import load as load_now

    held = load_now(model, device)
    reading.apply(held.encoder)
    return held
