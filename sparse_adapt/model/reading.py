"""How a model reads texts: on which device, and how much of a text: up to a length, or all of a document by windows.

Settings and commands name these, so nothing heavy loads with this module.
"""

from dataclasses import dataclass
from typing import Protocol

from sparse_adapt.errors import ConfigError

DEVICES = ("auto", "cpu", "cuda", "mps")

OVERLAP = 32  # tokens, by default


@dataclass(frozen=True, slots=True)
class Windows:
    """How a document is cut: tokens of a window, special ones included, and how many of them the next one repeats."""

    tokens: int
    overlap: int = OVERLAP

    def __post_init__(self) -> None:
        if self.tokens < 8 or not 0 <= self.overlap <= self.tokens // 2:
            raise ConfigError(
                f"windows of {self.tokens:,} tokens that overlap by {self.overlap:,}: a window has 8 tokens at least, "
                "and repeats half of the one before at most"
            )

    @property
    def name(self) -> str:
        """Both numbers, as a manifest holds them."""
        return f"{self.tokens}/{self.overlap}"

    def check(self, longest: int) -> None:
        """Raise ConfigError for windows that are longer than a model reads."""
        if self.tokens > longest:
            raise ConfigError(
                f"windows of {self.tokens:,} tokens, but the model reads {longest:,}; choose smaller ones, or "
                "--max-tokens"
            )


class Reads(Protocol):
    """An encoder that can be told how much of a text to read."""

    def read_up_to(self, tokens: int) -> None:
        """Have texts cut at so many tokens, or at as many as the model has positions for."""

    def read_by(self, windows: Windows | None) -> None:
        """Have documents read by windows, or, with None, up to the longest text."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The device that texts are encoded on, and how much of each is read where the model's folder says otherwise.

    `windows`: tokens of a window of a document, 0 for none at all; `overlap`: tokens that the next window repeats.
    """

    max_tokens: int | None = None
    windows: int | None = None
    overlap: int | None = None
    device: str = "auto"

    def apply(self, encoder: Reads) -> None:
        """Have an encoder read so. Raises ConfigError for windows that it can't read."""
        if self.max_tokens is not None:
            encoder.read_up_to(self.max_tokens)
        if self.windows is None and self.overlap is not None:
            raise ConfigError("an overlap is of windows; say how many tokens a window has: --windows N")
        if self.windows is not None:
            encoder.read_by(None if self.windows == 0 else windows_of(self.windows, self.overlap))


def choose_device(device: str) -> str:
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


def windows_of(tokens: int, overlap: int | None = None) -> Windows:
    """Windows of so many tokens; by default they overlap by `OVERLAP`, or by half of a short one."""
    return Windows(tokens, min(OVERLAP, tokens // 2) if overlap is None else overlap)


AS_THEY_DO = Reading()  # as the folders of models say
