"""Relevant words: the word without which two related texts are least similar, and its part of speech.

In the source most of them are nouns (Chen, Handa and Shirahama, JCSE), which is why another noun contradicts a
sentence. Beside each part of speech's share of the relevant words stands its share of all words that were tried. Only a
share above that says something of the model.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.errors import InputError
from sparse_adapt.files.folders import output_folder, write_json
from sparse_adapt.files.place import Place
from sparse_adapt.model.kinds import EitherEncoder
from sparse_adapt.plugins.research.drawing import empty_figure
from sparse_adapt.plugins.research.parsing import CONTENT, ParsedSentence, Parser, Phrase
from sparse_adapt.plugins.research.similarity import Likeness, cosines
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.report.tables import Column, Table

NAMES = {
    "NOUN": "noun",
    "PROPN": "proper noun",
    "VERB": "verb",
    "ADJ": "adjective",
    "ADV": "adverb",
    "NUM": "numeral",
    "ADP": "preposition",
    "AUX": "auxiliary verb",
    "CCONJ": "conjunction",
    "SCONJ": "conjunction of a clause",
    "DET": "article",
    "PRON": "pronoun",
    "PART": "particle",
    "INTJ": "interjection",
    "SYM": "sign",
    "X": "other",
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


class SpeechShare(NamedTuple):
    """A part of speech: relevant words, their share of all of them, its share of all content words."""

    speech: str
    words: int
    share: float
    content: float


@dataclass(frozen=True, slots=True)
class Relevance:
    """The relevant word of each text, and how many words of each kind there were to choose from."""

    words: tuple[RelevantWord, ...]
    content: dict[str, int]

    def shares(self) -> list[SpeechShare]:
        """Part of speech by part of speech, the most frequent among relevant words first."""
        counts = Counter(word.speech for word in self.words)
        relevant, content = max(1, len(self.words)), max(1, sum(self.content.values()))
        shares = [
            SpeechShare(
                NAMES.get(speech, speech.lower()),
                counts[speech],
                counts[speech] / relevant,
                self.content.get(speech, 0) / content,
            )
            for speech in (*CONTENT, *(each for each in self.content if each not in CONTENT))
        ]
        return sorted(shares, key=lambda each: -each.words)

    def rows(self) -> list[dict[str, object]]:
        """The same as rows of a table."""
        return [each._asdict() for each in self.shares()]

    def to_dict(self) -> dict[str, object]:
        """The distribution, and every word."""
        return {"distribution": self.rows(), "words": [asdict(word) for word in self.words]}


def find_relevant_words(
    model: EitherEncoder,
    pairs: Sequence[Likeness],
    parser: Parser,
    progress: Progress = no_progress,
    *,
    every: bool = False,
) -> Relevance:
    """The relevant word of both texts of each pair; texts of fewer than two words to choose from have none.

    `every`: as published, any word may be relevant, function words too, and goes wherever its text says it, and of the
    two words of a pair that stays without which the texts are less similar; of two as relevant the first text's. Else
    content words may, one occurrence at a time. Raises InputError where no text has a relevant word.
    """
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    parsed = dict(zip(texts, parser.whole(texts), strict=True))
    sides = [
        (parsed[a], b) for pair in pairs for a, b in ((pair.first, pair.second), (pair.second, pair.first))
    ]
    choices = {sentence: _choices(sentence, every=every) for sentence, _ in sides}
    sides = [(sentence, other) for sentence, other in dict.fromkeys(sides) if len(choices[sentence]) > 1]
    if not sides:
        raise InputError("--pairs", "no text has two words to choose from; check --language")
    cut = [_without(sentence, gone, parser.between) for sentence, _ in sides for gone in choices[sentence]]
    others = [other for sentence, other in sides for _ in choices[sentence]]
    whole = [sentence.text for sentence, _ in sides]
    similarities = cosines(model, [*whole, *cut], [*(other for _, other in sides), *others], progress)
    words, place = [], len(sides)
    for row, (sentence, other) in enumerate(sides):
        left = similarities[place : place + len(choices[sentence])]
        least = int(left.argmin())
        word = choices[sentence][least][0]
        text = sentence.text
        words.append(
            RelevantWord(
                text,
                other,
                text[word.start : word.end],
                word.speech,
                float(similarities[row]),
                float(left[least]),
            )
        )
        place += len(choices[sentence])
    content = Counter(gone[0].speech for sentence, _ in sides for gone in choices[sentence])
    return Relevance(tuple(_one_of_each(pairs, words) if every else words), dict(content))


def _one_of_each(pairs: Sequence[Likeness], words: Sequence[RelevantWord]) -> list[RelevantWord]:
    """Of the relevant words of a pair's two texts the one without which they are less similar; each pair once."""
    first = {(word.text, word.other): word for word in words}
    ways = [((pair.first, pair.second), (pair.second, pair.first)) for pair in pairs]
    sides = [[first[way] for way in both if way in first] for both in ways]
    return list(dict.fromkeys(min(each, key=lambda word: word.without) for each in sides if each))


def _choices(sentence: ParsedSentence, *, every: bool) -> list[tuple[Phrase, ...]]:
    """What goes at once: each content word, or each word with all of its occurrences."""
    if not every:
        return [(word,) for word in sentence.words]
    same: dict[str, list[Phrase]] = {}
    for word in sentence.every_word:
        same.setdefault(sentence.text[word.start : word.end].casefold(), []).append(word)
    return [tuple(words) for words in same.values()]


def _without(sentence: ParsedSentence, gone: Sequence[Phrase], between: str) -> str:
    text = sentence.text
    for word in reversed(gone):
        before, after = text[: word.start], text[word.end :]
        text = f"{before.rstrip()}{between}{after.lstrip()}" if between else before + after
    return text


def tabulate_relevance(relevance: Relevance) -> Table:
    """The distribution as a table."""
    columns = (
        Column("speech", "part of speech", "text"),
        Column("words", "relevant words"),
        Column("share", "share", "share", decimals=1),
        Column("content", "of all to choose from", "share", decimals=1),
    )
    return Table("", columns, relevance.rows(), "relevant: without it a text is least similar to the other")


def write_relevance(relevance: Relevance, place: Place) -> None:
    """Put relevance.json and relevance.png into a folder. Raises MissingExtraError without matplotlib."""
    with output_folder(place) as work:
        write_json(work / "relevance.json", relevance.to_dict())
        plot_relevance(relevance, work / "relevance.png")


def plot_relevance(relevance: Relevance, path: Path) -> None:
    """Both shares as bars, a pair for each part of speech. Raises MissingExtraError without matplotlib."""
    shares = relevance.shares()
    figure = empty_figure(7, 4)
    axes = figure.add_subplot()
    for left, label, heights in (
        (-0.2, "relevant words", [100 * each.share for each in shares]),
        (0.2, "all to choose from", [100 * each.content for each in shares]),
    ):
        axes.bar([place + left for place in range(len(shares))], heights, 0.37, label=label)
    axes.set_xticks(range(len(shares)), [each.speech for each in shares])
    axes.set_ylabel("share (%)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
