"""What a command didn't read of its texts, said once when it ends: ends of long texts, and texts that hold nothing."""

from dataclasses import dataclass, field

from sparse_adapt.report.messages import say


@dataclass(slots=True)
class Unread:
    """Texts that were cut, by their hashes: how many tokens of each; how long a text may be; texts without a word."""

    cut: dict[int, int] = field(default_factory=dict)
    longest: set[int] = field(default_factory=set)
    blank: int = 0

    def lines(self) -> list[str]:
        """What there is to say."""
        lines = []
        if self.cut:
            texts = "1 text is" if len(self.cut) == 1 else f"{len(self.cut):,} texts are"
            limit = " or ".join(f"{each:,}" for each in sorted(self.longest))
            lines.append(
                f"{texts} longer than the {limit} tokens that the model reads: "
                f"{sum(self.cut.values()):,} tokens at their ends were left out"
            )
        if self.blank:
            texts = "1 text holds" if self.blank == 1 else f"{self.blank:,} texts hold"
            lines.append(f"{texts} no word, and so nothing finds {'it' if self.blank == 1 else 'them'}")
        return lines


_unread = Unread()


def note_cut(text: str, tokens: int, longest: int) -> None:
    """Note that so many tokens at a text's end aren't read. A text counts once, however often it is encoded."""
    _unread.cut[hash(text)] = tokens
    _unread.longest.add(longest)


def note_blank(texts: int) -> None:
    """Note that so many texts hold no word."""
    _unread.blank += texts


def tell_unread() -> None:
    """Say what was noted since the last time."""
    lines = _unread.lines()
    forget_unread()
    for line in lines:
        say(line)


def forget_unread() -> None:
    """Begin with nothing noted, whatever else this process did before."""
    _unread.cut.clear()
    _unread.longest.clear()
    _unread.blank = 0
