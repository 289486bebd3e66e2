"""Text as a terminal may show it: signs that would steer the terminal, or turn its text around, are spelt out.

Ids, terms, titles and texts come from files that somebody else wrote. An escape sequence in one could clear the
screen, fill the clipboard (OSC 52) or hide what stands before it, and a bidirectional override could have a path
read as another. Such a sign is shown as Python would write it: `\\x1b`, `\\u202e`.
"""

import re

BREAKS = r"\t\n"
CONTROLS = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, delete, C1
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, embeddings, overrides, isolates
    r"\u2028\u2029\ud800-\udfff"  # line and paragraph separators; halves of a pair, which no encoding writes
)
CONTROL = re.compile(f"[{CONTROLS}]")
HALF = re.compile(r"[\ud800-\udfff]")
CONTROL_OR_BREAK = re.compile(f"[{CONTROLS}{BREAKS}]")


def printable(text: str) -> str:
    """The text with control signs spelt out; tabs and line feeds stay."""
    return CONTROL.sub(_spelt, text)


def printable_line(text: str) -> str:
    """The text as one line, with tabs and line feeds spelt out too."""
    return CONTROL_OR_BREAK.sub(_spelt, text)


def is_unicode(text: str) -> bool:
    """Whether a text can be written at all: halves of a surrogate pair can't."""
    return HALF.search(text) is None


def printable_json(text: str) -> str:
    """JSON that holds the same values, with control signs as JSON's own escapes."""
    return CONTROL.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def _spelt(sign: re.Match[str]) -> str:
    return sign[0].encode("unicode_escape", "surrogatepass").decode("ascii")
