"""A sentence with a gap where a noun chunk stood, and what every generator can do with it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from torch import Tensor, nn

LONGEST_FILL = 4  # tokens of what a masked language model writes
Spans = Sequence[tuple[int, int]]  # first token and the one after the last, in order, never touching


class Gap(NamedTuple):
    """What stands before a chunk, the chunk, what stands behind it."""

    before: str
    chunk: str
    after: str

    @property
    def alone(self) -> "Gaps":
        """The same as the only gap of its sentence."""
        return Gaps((self.before, self.after), (self.chunk,))


class Gaps(NamedTuple):
    """Some chunks of a sentence, and what stands before, between and behind them: one text more than chunks."""

    between: tuple[str, ...]
    chunks: tuple[str, ...]

    def filled(self, fills: Sequence[str]) -> str:
        """The sentence with something in the place of each chunk."""
        parts = zip(fills, self.between[1:], strict=True)
        return self.between[0] + "".join(fill + text for fill, text in parts)


class Filler(Protocol):
    """A generator that writes into gaps."""

    def admit(self, chunks: Iterable[str], texts: Iterable[str] = ()) -> None:
        """Write nothing but what the noun chunks of some texts are made of, where that has to be said."""

    def fits(self, text: str) -> bool:
        """Whether a text is short enough to be read whole."""

    def fill(self, gaps: Sequence[Gap], count: int) -> list[list[str]]:
        """At most `count` fills of each gap, best first; none is empty, some may be what stood there."""

    def refill(self, sentences: Sequence[Gaps], count: int) -> list[list[tuple[str, ...]]]:
        """At most `count` ways to fill all gaps of each sentence together, best first."""

    def parameters(self) -> Iterable[nn.Parameter]:
        """What is tuned."""

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text without special ones, cut where the model ends."""

    def denoising(self, token_ids: Sequence[Sequence[int]], spans: Sequence[Spans]) -> Tensor:
        """Cross entropy of the tokens in spans that are hidden: a mean, with its gradient."""

    def training(self, on: bool) -> None:
        """Drop out, or don't."""

    def save(self, folder: Path) -> None:
        """Write the generator, so that `load_filler` reads the same."""


def compared_as(text: str) -> str:
    """What texts have in common that differ in nothing but spaces and case."""
    return "".join(text.split()).casefold()
