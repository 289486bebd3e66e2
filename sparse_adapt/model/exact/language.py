"""The stop words and the stems of a language, and the language of some texts.

Stems are Snowball's (Porter 2001), by PyStemmer. Stop words are the most frequent words of a language, and the share
of passages that a word stands in comes from their frequency, both by wordfreq (Speer 2022). A language that neither
library has is read as `NONE`: without stop words and without stems.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache

from Stemmer import Stemmer
from wordfreq import get_frequency_dict, top_n_list

from sparse_adapt.errors import ConfigError, unknown

LIST = "small"  # of words that stand once in a million words at least
NONE = "none"  # words as they are written
STOP_WORDS = 40  # of the most frequent words
PASSAGE = 100  # words of a passage of general language
LEAST_SHARE = 0.08  # of stop words among the words of a text in its language
STEMMERS = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "hi": "hindi",
    "hu": "hungarian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "nl": "dutch",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
LANGUAGES = (NONE, *STEMMERS)


class Language:
    """What is known of one language: its stop words, and the stem of each word in lower case."""

    def __init__(self, code: str) -> None:
        """`code`: of ISO 639, or `none`. Raises ConfigError for a language without stems."""
        if code not in LANGUAGES:
            raise ConfigError(
                f"{unknown('language', code, LANGUAGES)}; choose none for words as they are written"
            )
        self.code = code
        self.stop_words = stop_words(code)
        self.stem = str if code == NONE else Stemmer(STEMMERS[code]).stemWord


@cache
def stop_words(code: str) -> frozenset[str]:
    """The most frequent words of a language, in lower case."""
    return frozenset() if code == NONE else frozenset(top_n_list(code, STOP_WORDS, wordlist=LIST))


def language_of(words: Iterable[str]) -> str:
    """The language whose stop words most of some words are, in lower case; `none` where they are too few."""
    counts = Counter(words)
    total = max(1, counts.total())
    shares = {code: sum(counts[word] for word in stop_words(code)) / total for code in STEMMERS}
    likeliest = max(shares, key=shares.__getitem__)
    return likeliest if shares[likeliest] >= LEAST_SHARE else NONE


@cache
def general_shares(code: str) -> dict[str, float]:
    """The share of passages of general language that hold each stem; none known for `none`."""
    if code == NONE:
        return {}
    stem, frequencies = Language(code).stem, defaultdict[str, float](float)
    for word, frequency in get_frequency_dict(code, wordlist=LIST).items():
        frequencies[stem(word)] += frequency
    return {word: 1.0 - math.exp(-PASSAGE * frequency) for word, frequency in frequencies.items()}
