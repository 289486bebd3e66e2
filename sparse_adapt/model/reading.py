"""How a model reads texts: on which device, and how much of a text: up to a length, or all of a document by windows.

Settings and commands name these, so nothing heavy loads with this module.
"""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Reading:
    """The device that texts are encoded on, and how much of each is read where the model's folder says otherwise.

    `windows`: tokens of a window of a document, 0 for none at all; `overlap`: tokens that the next window repeats.
    """

    max_tokens: int | None = None
    windows: int | None = None
    overlap: int | None = None
    device: str = "auto"

    def cut(self) -> Windows | None:
        """The windows of a document, where some are named. Raises ConfigError for an overlap of none."""
        if self.windows is None and self.overlap is not None:
            raise ConfigError("an overlap is of windows; say how many tokens a window has: --windows N")
        return windows_of(self.windows, self.overlap) if self.windows else None


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
