"""Relevant content words: the word without which two related texts are least similar, and its part of speech.

What a model takes a text to be about shows in what its similarity hangs on. Nouns by far, as published (Chen, Handa and
Shirahama, JCSE), which is why replacing a noun contradicts a sentence. Beside each part of speech's share of the
relevant words stands its share of all content words: only what is above that says something.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sparse_adapt.errors import InputError, MissingExtraError
from sparse_adapt.lab.similarity import Likeness, cosines
from sparse_adapt.model.kinds import EitherEncoder
from sparse_adapt.report.tables import Column, Table
from sparse_adapt.report.watching import Heard, silent
from sparse_adapt.terms.language import CONTENT, Parser, Phrase, Sentence

NAMES = {
    "NOUN": "noun",
    "PROPN": "proper noun",
    "VERB": "verb",
    "ADJ": "adjective",
    "ADV": "adverb",
    "NUM": "numeral",
}


@dataclass(frozen=True, slots=True)
class RelevantWord:
    """The word of a text without which it is least similar to the other."""

    text: str
    other: str
    word: str
    speech: str
    similarity: float
    without: float  # the similarity that is left when the word is removed


@dataclass(frozen=True, slots=True)
class Relevance:
    """The relevant word of each text, and how many content words of each kind there were to choose from."""

    words: tuple[RelevantWord, ...]
    content: dict[str, int]

    def rows(self) -> list[dict[str, Any]]:
        """Part of speech by part of speech: relevant words, their share, the share of all content words."""
        found = Counter(word.speech for word in self.words)
        relevant, content = max(1, len(self.words)), max(1, sum(self.content.values()))
        rows = [
            {
                "speech": NAMES[speech],
                "words": found[speech],
                "share": found[speech] / relevant,
                "content": self.content.get(speech, 0) / content,
            }
            for speech in CONTENT
        ]
        return sorted(rows, key=lambda row: -row["words"])

    def to_dict(self) -> dict[str, Any]:
        """The distribution, and every word."""
        return {"distribution": self.rows(), "words": [asdict(word) for word in self.words]}


def relevant_words(
    model: EitherEncoder,
    pairs: Sequence[Likeness],
    parser: Parser,
    progress: Heard = silent,
) -> Relevance:
    """The relevant word of both texts of each pair; texts of fewer than two content words have none.

    Raises InputError where none has.
    """
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    parsed = dict(zip(texts, parser.whole(texts), strict=True))
    sides = [
        (parsed[a], b) for pair in pairs for a, b in ((pair.first, pair.second), (pair.second, pair.first))
    ]
    sides = [(sentence, other) for sentence, other in dict.fromkeys(sides) if len(sentence.words) > 1]
    if not sides:
        raise InputError("--pairs", "no text has two content words; check --language")
    cut = [_without(sentence, word, parser.between) for sentence, _ in sides for word in sentence.words]
    others = [other for sentence, other in sides for _ in sentence.words]
    whole = [sentence.text for sentence, _ in sides]
    found = cosines(model, [*whole, *cut], [*(other for _, other in sides), *others], progress)
    words, place = [], len(sides)
    for row, (sentence, other) in enumerate(sides):
        left = found[place : place + len(sentence.words)]
        least = int(left.argmin())
        word = sentence.words[least]
        text = sentence.text
        words.append(
            RelevantWord(
                text, other, text[word.start : word.end], word.speech, float(found[row]), float(left[least])
            )
        )
        place += len(sentence.words)
    content = Counter(word.speech for sentence, _ in sides for word in sentence.words)
    return Relevance(tuple(words), dict(content))


def _without(sentence: Sentence, word: Phrase, between: str) -> str:
    before, after = sentence.text[: word.start], sentence.text[word.end :]
    return f"{before.rstrip()}{between}{after.lstrip()}" if between else before + after


def tabulate_relevance(relevance: Relevance) -> Table:
    """The distribution as a table."""
    columns = (
        Column("speech", "part of speech", "text"),
        Column("words", "relevant words"),
        Column("share", "share", "share", decimals=1),
        Column("content", "of all content words", "share", decimals=1),
    )
    return Table("", columns, relevance.rows(), "relevant: without it a text is least similar to the other")


def plot_relevance(relevance: Relevance, path: Path) -> None:
    """Both shares as bars, a pair for each part of speech. Raises MissingExtraError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot") from error
    rows = relevance.rows()
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for number, (key, label) in enumerate((("share", "relevant words"), ("content", "all content words"))):
        places = [place + (number - 0.5) * 0.4 for place in range(len(rows))]
        axes.bar(places, [100 * row[key] for row in rows], 0.37, label=label)
    axes.set_xticks(range(len(rows)), [row["speech"] for row in rows])
    axes.set_ylabel("share (%)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
