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
    from sparse_adapt.model.kinds import open_sparse

    return open_sparse(model, replace(reading, device=device))


def load_either(model: str, device: str, reading: "Reading") -> "EitherEncoder":
    """The same for a SPLADE model or a dense one."""
    from sparse_adapt.model.kinds import open_encoder

    return open_encoder(model, replace(reading, device=device))


def load_to_read(model: str, device: str, reading: "Reading") -> "Model":
    """A model of either kind for the functions of `api`, which reads as much of a text as was asked for."""
    from sparse_adapt.api.models import load as load_now

    held = load_now(model, device)
    held.encoder.read_as(reading)
    return held
