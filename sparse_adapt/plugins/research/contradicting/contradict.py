"""Sentences that contradict a sentence: a generator writes other words where its noun chunks stand.

A sentence is about its nouns. With other nouns it looks the same and says something else, which makes it a hard
negative that nobody has to label. After Chen, Handa and Shirahama, JCSE.

`generator` has what every generator can do, and teaches it the domain. `masked` fills gaps by a masked language model,
`spans` by a sequence-to-sequence model such as T5. `writing` goes from a corpus to a file.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from numpy.random import Generator, default_rng

from sparse_adapt.collection.examples import Triplet
from sparse_adapt.collection.lines import read_lines
from sparse_adapt.collection.opening import reachable
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.collection.sentences import language_of
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.journal import note, noted
from sparse_adapt.files.records import Record, parse_record
from sparse_adapt.plugins.research.contradicting.generator import Filler, Gaps, compared_as
from sparse_adapt.plugins.research.parsing import ParsedSentence, Parser
from sparse_adapt.registry import registry

EACH = 5  # contradictions of a sentence, at most; published are 4 to 6
SHORTEST = 5  # tokens of a sentence, as published
SPARE = 2  # beams beyond what is wanted, of which some give what was there
LINES = ".txt"


@dataclass(slots=True)
class ContradictionTally:
    """What became of the sentences, and of what was written in their gaps."""

    sentences: int = 0
    without_words: int = 0
    other_language: int = 0
    too_short: int = 0
    too_long: int = 0
    without_nouns: int = 0
    without_contradictions: int = 0
    anchors: int = 0
    contradictions: int = 0
    unchanged: int = 0  # the generator gave what was there
    duplicates: int = 0  # or the same again

    def to_json(self) -> dict[str, int]:
        """Every count under its name."""
        return asdict(self)

    def __str__(self) -> str:
        counts = {name.replace("_", " "): count for name, count in self.to_json().items() if count}
        return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "none at all"

    def add(self, written: "Contradicted") -> None:
        """Count what became of a sentence."""
        self.unchanged += written.unchanged
        self.duplicates += written.duplicates
        self.contradictions += len(written.contradictions)
        if written.contradictions:
            self.anchors += 1
        else:
            self.without_contradictions += 1


class Contradicted(NamedTuple):
    """What a generator wrote for a sentence: contradictions, the chunk that each replaces, how many were dropped."""

    anchor: str
    contradictions: tuple[str, ...]
    replaced: tuple[str, ...]
    unchanged: int
    duplicates: int

    @property
    def triplet(self) -> Triplet:
        """To learn from, where there is a contradiction."""
        return Triplet(self.anchor, self.contradictions, replaced=self.replaced)

    def to_json(self) -> str:
        """One line."""
        return json.dumps(self._asdict(), ensure_ascii=False)


def read_written(journal: Path) -> list[Contradicted]:
    """What `to_json` wrote, line by line. Raises InputError for a line that is none."""
    advice = f"delete {journal.parent} or pass --overwrite"
    lines = enumerate(noted(journal), start=1)
    records = (parse_record(line, journal, _Line, advice, number) for number, line in lines)
    return [Contradicted(**record.model_dump()) for record in records]


class _Line(Record):
    """A line of the journal."""

    anchor: str
    contradictions: tuple[str, ...]
    replaced: tuple[str, ...]
    unchanged: int
    duplicates: int


def read_sentences(source: str, parser: Parser, seed: int = 0) -> Iterator[ParsedSentence]:
    """The sentences of a corpus, its documents in a drawn order, or the lines of a text file in theirs.

    HTML in a text is left out. Raises InputError for what can't be read, MissingExtraError for HTML without its reader.
    """
    without_markup = registry().find("readers.markup", "lines")
    if source.endswith(LINES):
        lines = [without_markup(line, source) for _, line in read_lines(reachable(source))]
        yield from parser.whole([line for line in lines if line.strip()])
        return
    documents = [without_markup(document.full_text, source) for document in read_documents(source)]
    order = default_rng(seed).permutation(len(documents))
    for sentences in parser.sentences(documents[row] for row in order):
        yield from sentences


def fit(
    sentences: Iterable[ParsedSentence],
    filler: Filler,
    tally: ContradictionTally,
    shortest: int = SHORTEST,
    language: str | None = None,
) -> Iterator[ParsedSentence]:
    """The sentences of enough tokens that something can be replaced in, each once; the others are counted.

    `language`: the only one that sentences may be in, as a detector tells it.
    """
    seen: set[str] = set()
    for sentence in sentences:
        if (key := compared_as(sentence.text)) in seen:
            continue
        seen.add(key)
        tally.sentences += 1
        if not any(map(str.isalpha, sentence.text)):
            tally.without_words += 1
        elif sentence.tokens < shortest:
            tally.too_short += 1
        elif not sentence.chunks:
            tally.without_nouns += 1
        elif not filler.fits(sentence.text):
            tally.too_long += 1
        elif language is not None and language_of(sentence.text) != language:
            tally.other_language += 1
        else:
            yield sentence


def admit(sentences: Sequence[ParsedSentence], filler: Filler) -> None:
    """Have a generator write what the noun chunks of these sentences are made of."""
    chunks = [each.text[part.start : part.end] for each in sentences for part in each.chunks]
    filler.admit(chunks, [each.text for each in sentences])


def contradictions(
    sentences: Sequence[ParsedSentence],
    filler: Filler,
    *,
    each: int = EACH,
    seed: int = 0,
    journal: Path | None = None,
    at_once: bool = True,
) -> Iterator[Contradicted]:
    """What the generator writes for each sentence. A journal gives what it has already, and keeps the rest.

    `at_once`: whether all chunks of a sentence are replaced together, as published, or one at a time. Raises
    ConfigError for a journal of other sentences.
    """
    random = default_rng(seed)
    done = [] if journal is None else read_written(journal)
    if any(before.anchor != own.text for before, own in zip(done, sentences, strict=False)):
        raise ConfigError(f"{journal}: begun with other sentences; pass --overwrite to start again")
    for row, sentence in enumerate(sentences):
        chosen = _drawn(sentence, each, random)
        if row < len(done):
            yield done[row]
            continue
        written = _written(sentence, _ways(sentence, filler, each, chosen, at_once=at_once), each)
        if journal is not None:
            note(journal, written.to_json())
        yield written


def _ways(
    sentence: ParsedSentence, filler: Filler, each: int, chosen: Sequence[int], *, at_once: bool
) -> Iterator[tuple[Gaps, tuple[str, ...]]]:
    """Ways to fill gaps of a sentence: of all together, or the best of each chosen one, then the second best, ..."""
    if at_once:
        whole = _gaps(sentence, range(len(sentence.chunks)))
        yield from ((whole, fill) for fill in filler.fill([whole], each + SPARE)[0])
        return
    single = [_gaps(sentence, [row]) for row in chosen]
    for rank in zip_longest(*filler.fill(single, -(-each // len(single)) + SPARE)):
        yield from ((gaps, fill) for gaps, fill in zip(single, rank, strict=True) if fill is not None)


def _drawn(sentence: ParsedSentence, most: int, random: Generator) -> list[int]:
    """The numbers of a sentence's noun chunks, of some that are drawn where there are more than that."""
    rows = range(len(sentence.chunks))
    return sorted(random.choice(len(rows), most, replace=False)) if len(rows) > most else list(rows)


def _gaps(sentence: ParsedSentence, rows: Iterable[int]) -> Gaps:
    """A sentence with a gap for some of its noun chunks."""
    between, chunks, place = list[str](), list[str](), 0
    for part in (sentence.chunks[row] for row in rows):
        between.append(sentence.text[place : part.start])
        chunks.append(sentence.text[part.start : part.end])
        place = part.end
    return Gaps((*between, sentence.text[place:]), tuple(chunks))


def _written(
    sentence: ParsedSentence, ways: Iterable[tuple[Gaps, tuple[str, ...]]], each: int
) -> Contradicted:
    """The sentence with its gaps filled, the best ways first, until there are enough."""
    sentences_done: dict[str, tuple[str, str]] = {}
    unchanged = duplicates = 0
    for gaps, fill in ways:
        text = gaps.filled(fill)
        if compared_as(text) == compared_as(sentence.text):
            unchanged += 1
        elif len(sentences_done) == each:
            continue
        elif compared_as(text) in sentences_done:
            duplicates += 1
        else:
            sentences_done[compared_as(text)] = text, ", ".join(gaps.chunks)
    texts, chunks = (
        (tuple(each) for each in zip(*sentences_done.values(), strict=True)) if sentences_done else ((), ())
    )
    return Contradicted(sentence.text, texts, chunks, unchanged, duplicates)
