"""A model on the device that was asked for."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.sparse import SparseEncoder


def load(model: str, device: str) -> "SparseEncoder":
    """Load a model for encoding; `auto` takes the fastest device there is."""
    from sparse_adapt.model.devices import choose
    from sparse_adapt.model.sparse import SparseEncoder

    return SparseEncoder.load(model, choose(device))


def load_either(model: str, device: str) -> "EitherEncoder":
    """The same for a SPLADE model or a dense one."""
    from sparse_adapt.model.devices import choose
    from sparse_adapt.model.kinds import load_encoder

    return load_encoder(model, choose(device))
