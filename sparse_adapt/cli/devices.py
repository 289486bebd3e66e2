"""A model on the device that was asked for."""

from typing import TYPE_CHECKING

from sparse_adapt.errors import ConfigError

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.sparse import SparseEncoder

DEVICES = ("auto", "cpu", "cuda", "mps")


def load(model: str, device: str) -> "SparseEncoder":
    """Load a model for encoding; `auto` takes the fastest device there is."""
    from sparse_adapt.model.sparse import SparseEncoder

    return SparseEncoder.load(model, choose(device))


def load_either(model: str, device: str) -> "EitherEncoder":
    """The same for a SPLADE model or a dense one."""
    from sparse_adapt.model.kinds import load_encoder

    return load_encoder(model, choose(device))


def choose(device: str) -> str:
    """The device that a name means. Raises ConfigError for one that isn't there."""
    import torch

    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device not in DEVICES:
        raise ConfigError(f"--device {device}: choose {', '.join(DEVICES)}")
    if device == "auto":
        device = next(name for name in ("cuda", "mps", "cpu") if there[name])
    if not there[device]:
        raise ConfigError(f"--device {device}: no such device is visible; use --device cpu")
    return device
