"""Signs that no reader sees: soft hyphens, zero-width spaces, joiners, control signs.

Texts from PDF and HTML are full of them. Many tokenizers delete such a sign, some take it for a space, others leave it;
words of a text are words of what the tokenizer makes of it.
"""

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SPACE_MARK = "\u2581"  # SentencePiece writes it for a space
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
UNSEEN = ("Cf", "Cc")  # of Unicode's categories: formats and controls


class Seen:
    """Texts as a tokenizer sees them, as far as unseen signs go; everything else stays as it is written."""

    def __init__(self, tokenizer: "PreTrainedTokenizerFast") -> None:
        self.normalizer = tokenizer.backend_tokenizer.normalizer
        self.table: dict[int, str] = {}

    def __call__(self, text: str) -> str:
        """The text without the signs that the tokenizer deletes, and with spaces for those that it takes for one."""
        if self.normalizer is None or (text.isascii() and CONTROL.search(text) is None):
            return text
        for sign in set(map(ord, text)) - self.table.keys():
            self.table[sign] = self._seen(chr(sign))
        return text.translate(self.table)

    def _seen(self, sign: str) -> str:
        if unicodedata.category(sign) not in UNSEEN or sign.isspace():
            return sign
        found = self._normalised(f"a{sign}a")
        if found == self._normalised("aa"):
            return ""
        return " " if found == self._normalised("a a") else sign

    def _normalised(self, text: str) -> str:
        assert self.normalizer is not None, "looked at only with one"
        return str(self.normalizer.normalize_str(text)).replace(SPACE_MARK, " ")
