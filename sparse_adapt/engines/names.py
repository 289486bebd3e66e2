r"""Names of tokens that an engine keeps whole: those with characters that it can't hold are escaped, and go back."""

import re
import unicodedata
from collections.abc import Callable

_ESCAPED = re.compile(r"\\u([0-9a-f]{6})")


def breaks_words(character: str) -> bool:
    """Whether a character is white space for Python or Java, or a control character."""
    return character.isspace() or unicodedata.category(character) == "Cc"


def escape_token(token: str, offends: Callable[[str], bool] = breaks_words) -> str:
    r"""A token as an engine will keep it whole: itself, unless it holds characters that offend the engine.

    Then each of those, and each backslash, becomes a backslash, `u` and six hexadecimal digits. A token that
    looks escaped already is escaped too, so that no two tokens share a name; `unescape_token` goes back.
    """
    if not _ESCAPED.search(token) and not any(map(offends, token)):
        return token
    return "".join(
        f"\\u{ord(character):06x}" if character == "\\" or offends(character) else character
        for character in token
    )


def unescape_token(name: str) -> str:
    """The token that `escape_token` made a name of."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name)
