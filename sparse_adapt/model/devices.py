"""The device that a model runs on, by its name."""

from sparse_adapt.errors import ConfigError

DEVICES = ("auto", "cpu", "cuda", "mps")


def choose(device: str) -> str:
    """The device that a name means; `auto` is the fastest there is. Raises ConfigError for one that isn't there."""
    if device not in DEVICES:
        raise ConfigError(f"--device {device}: choose {', '.join(DEVICES)}")
    import torch

    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        device = next(name for name in ("cuda", "mps", "cpu") if there[name])
    if not there[device]:
        raise ConfigError(f"--device {device}: no such device is visible; use --device cpu")
    return device
