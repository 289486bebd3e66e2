"""The stop words and the stems of a language, and the language of some texts.

Stems are Snowball's (Porter 2001), by PyStemmer. Stop words are the most frequent words of a language and the forms of
its auxiliary verbs, which a field may use so rarely that `does` would tell more than `computer`, and whose stems are
other words (`doe`). The share of passages that a word stands in comes from its frequency by wordfreq (Speer 2022). A
language that neither library has is read as `NONE`: without stop words and without stems.
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
LEAST_SHARE = 0.08  # of frequent words among the words of a text in its language
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
AUXILIARIES = {  # without forms that name a thing as well, such as may, have (Danish: a garden), avions, Waren
    "da": "er var været har havde haft bliver blev blevet kan kunne skal skulle vil ville",
    "de": "bin bist ist sind war gewesen hat habe haben hast hatte hatten wird wurde wurden worden kann konnte muss",
    "en": "am is are was were been do does did doing done has had having can could would shall should might must",
    "es": "es son soy somos fue fueron sido siendo ha han he hemos había habían habido hay está están estaba",
    "fr": "est sont suis es était étaient étant a ont ai avait avaient ayant eu fut furent",
    "it": "è sono siamo sia era erano essere ha ho hanno abbiamo aveva avevano avuto",
    "nb": "er var vært har hadde blir ble blitt kan kunne skal skulle vil ville",
    "nl": "ben bent is zijn geweest heeft hebt hebben had hadden wordt worden werd werden kan kunnen kon zou zouden",
    "pt": "é são sou somos era eram foi foram sido sendo tem têm tinha tinham tido está estão estava",
    "sv": "är var varit har hade haft blir blev blivit kan kunde ska skulle vill ville",
}


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
    """The words of a language that say nothing of a topic, in lower case."""
    return frequent_words(code).union(AUXILIARIES.get(code, "").split())


@cache
def frequent_words(code: str) -> frozenset[str]:
    """The most frequent words of a language, in lower case."""
    return frozenset() if code == NONE else frozenset(top_n_list(code, STOP_WORDS, wordlist=LIST))


def language_of(words: Iterable[str]) -> str:
    """The language whose frequent words most of some words are, in lower case; `none` where they are too few."""
    counts = Counter(words)
    total = max(1, counts.total())
    shares = {code: sum(counts[word] for word in frequent_words(code)) / total for code in STEMMERS}
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
