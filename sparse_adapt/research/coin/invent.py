"""Words that nobody has used: pronounceable, and a letter or more away from every word that somebody has."""

from collections.abc import Collection, Iterator
from string import ascii_lowercase

import numpy as np

ONSETS: tuple[str, ...] = (
    "b",
    "bl",
    "br",
    "d",
    "dr",
    "f",
    "fl",
    "fr",
    "g",
    "gl",
    "gr",
    "k",
    "kl",
    "kr",
    "l",
    "m",
    "n",
    "p",
)
ONSETS += ("pl", "pr", "r", "sk", "sl", "sm", "sn", "sp", "st", "t", "tr", "v", "vr", "w", "z")
INNER: tuple[str, ...] = (
    "b",
    "d",
    "f",
    "g",
    "k",
    "l",
    "lb",
    "ld",
    "lv",
    "m",
    "mb",
    "n",
    "nd",
    "nv",
    "p",
    "r",
    "rd",
    "rg",
)
INNER += ("rv", "t", "v", "z")
VOWELS = ("a", "e", "i", "o", "u")
CODAS = ("b", "d", "g", "k", "l", "m", "n", "nd", "p", "rb", "rd", "rk", "rm", "rn", "t", "lt", "nk", "v")
ENDINGS = ("s", "ed", "ing")  # a coda takes them without any change: brovid, brovids, brovided, broviding
SYLLABLES = (2, 2, 3)  # two of three words have two
TRIES = 200  # for each word that is asked for; nine in ten are taken at the first


def invent_words(count: int, taken: Collection[str], generator: np.random.Generator) -> list[str]:
    """`count` invented words in lower case, no two of them alike, none near a word of English.

    `taken` holds words that are in use: those of a corpus, entries of a vocabulary. English is what `wordfreq`
    has counted (Speer 2022); an invented word isn't there, and neither is one that differs in one letter.
    """
    from wordfreq import get_frequency_dict

    english = get_frequency_dict("en", "best")
    invented: list[str] = []
    refused = set[str]()
    for _ in range(TRIES * max(1, count)):
        if len(invented) == count:
            break
        word = _pronounceable(generator)
        near = set(neighbours(word))
        forms = {word, *(word + ending for ending in ENDINGS)}
        if forms & refused or any(each in taken or each in english for each in near | forms):
            continue
        invented.append(word)
        refused |= near | forms
    assert len(invented) == count, (len(invented), count)
    return invented


def neighbours(word: str) -> Iterator[str]:
    """Every string that differs from a word in one letter: left out, put in, or another one."""
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        if after:
            yield before + after[1:]
        for letter in ascii_lowercase:
            yield before + letter + after
            if after and letter != after[0]:
                yield before + letter + after[1:]


def _pronounceable(generator: np.random.Generator) -> str:
    """Syllables of consonants and a vowel, and a consonant at the end."""

    def one(choices: tuple[str, ...]) -> str:
        return choices[int(generator.integers(len(choices)))]

    syllables = SYLLABLES[int(generator.integers(len(SYLLABLES)))]
    word = one(ONSETS) + one(VOWELS)
    for _ in range(syllables - 1):
        word += one(INNER) + one(VOWELS)
    return word + one(CODAS)
