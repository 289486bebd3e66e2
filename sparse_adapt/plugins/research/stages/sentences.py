"""The sentences of a corpus, and the words of each that may be masked: the domain's first, or any.

A word is what the tokenizer takes for one before it makes pieces of it; all of its pieces are masked together.
New tokens come first, then rare words, those said least often before the others; what occurs in one sentence alone
may come last, for nothing repeats what it teaches. Words that many sentences say, and what holds no letter, are left
out. A word that a sentence says twice is masked where it stands first. A long sentence goes in parts.
Neighbouring sentences may be read as one text, each with words of its own. Where any word may be masked, candidates are
drawn from all of a sentence, later and time and again.
"""

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import torch
from numpy.random import Generator
from torch import Tensor, nn

from sparse_adapt.collection.sentences import sentences
from sparse_adapt.model.encoder import Encoder

COMMON = 0.05  # share of the sentences from which a word is one that everybody says
FEW = 2  # sentences that any word may be said by, however few there are
LONGEST = 8  # pieces of a word; a longer one is a formula or a script without spaces
TOKENS_A_WORD = 2  # room for each word of a sentence, so that few parts of long ones are cut
PART = 1000  # sentences tokenized at once


class Sentence(NamedTuple):
    """A text of one sentence or several as token ids, and the positions of each word that may be masked.

    most: for each sentence, how many of its words may be masked at once, and `words` has those of one after another:
    sizes.
    """

    token_ids: list[int]
    words: list[tuple[int, ...]]
    sizes: tuple[int, ...]
    most: tuple[int, ...]

    def by_sentence(self) -> Iterator[tuple[range, int]]:
        """For each sentence the places of its words in `words`, and how many of them may be masked at once."""
        start = 0
        for size, most in zip(self.sizes, self.most, strict=True):
            yield range(start, start + size), most
            start += size

    def drawn(self, most: int, random: Generator) -> "Sentence":
        """The same text with at most so many words of each sentence, drawn at random, in their order."""
        parts = [
            [self.words[place] for place in sorted(random.choice(part, min(most, len(part)), replace=False))]
            for part, _ in self.by_sentence()
        ]
        words = [word for part in parts for word in part]
        return self._replace(words=words, sizes=tuple(map(len, parts)))


class SentenceWord(NamedTuple):
    """A word: its token ids, where they stand, whether it holds a letter, and which sentence of the text says it."""

    pieces: tuple[int, ...]
    places: tuple[int, ...]
    spelt: bool
    sentence: int


class Sentences:
    """What there is to mask in the texts of a corpus, and how much of it was passed over."""

    def __init__(
        self,
        encoder: Encoder,
        texts: Iterable[str],
        *,
        longest: int,
        candidates: int,
        together: int = 1,
        single_last: bool = True,
        every_word: bool = False,
    ) -> None:
        """At most `candidates` words a sentence, and `longest` tokens of a text.

        `together`: sentences that are read as one text; `single_last`: whether words of one text alone come last;
        `every_word`: whether all words of a sentence may be masked, of which `Sentence.drawn` draws the candidates.
        """
        longest = min(longest, encoder.max_tokens)
        between = f" {encoder.tokenizer.sep_token or ''} "
        every = [
            part
            for text in texts
            for part in _joined(_parts(text, max(1, longest // TOKENS_A_WORD // together)), together, between)
        ]
        distinct = list({part.casefold(): part for part in reversed(every)}.values())[::-1]
        self.repeated = len(every) - len(distinct)
        self.single_last = single_last
        self.new = frozenset(token.token_id for token in encoder.new_tokens)
        self.saying: Counter[tuple[int, ...]] = Counter()
        for _, own_words in _read(encoder, distinct, longest, together):
            self.saying.update({word.pieces for word in own_words})
        self.common = max(FEW, COMMON * len(distinct))
        self.usable: list[Sentence] = []
        self.tokens: set[int] = set()
        for ids, own_words in _read(encoder, distinct, longest, together):
            self.tokens.update(ids)
            parts = [list(part) for _, part in groupby(own_words, attrgetter("sentence"))]
            chosen = [part if every_word else self._candidates(part)[:candidates] for part in parts]
            words = [word.places for part in chosen for word in part]
            if words:
                most = tuple(max(1, len(part) // 2) for part in parts)  # or nothing is left to tell them by
                self.usable.append(Sentence(ids, words, tuple(map(len, chosen)), most))
        self.skipped = len(distinct) - len(self.usable)

    def says_new(self) -> bool:
        """Whether any sentence has a word with a new token."""
        return any(self.new.intersection(pieces) for pieces in self.saying)

    def _candidates(self, words: Sequence[SentenceWord]) -> list[SentenceWord]:
        return sorted(filter(self._may_be_masked, words), key=self._order)

    def _may_be_masked(self, word: SentenceWord) -> bool:
        if len(word.pieces) > LONGEST:
            return False
        is_new = bool(self.new.intersection(word.pieces))
        return is_new or (word.spelt and self.saying[word.pieces] <= self.common)

    def _order(self, word: SentenceWord) -> tuple[bool, bool, int, int]:
        count = self.saying[word.pieces]
        alone = self.single_last and count == 1
        return not self.new.intersection(word.pieces), alone, count, word.places[0]


def _parts(text: str, longest: int) -> Iterator[str]:
    """The sentences of a text, those of more than so many words in parts."""
    for sentence in sentences(text):
        words = sentence.split()
        for start in range(0, len(words), longest):
            yield " ".join(words[start : start + longest])


def _joined(parts: Iterable[str], together: int, between: str) -> Iterator[str]:
    """So many neighbours at a time as one text; the last may be fewer."""
    buffer = list(parts)
    for start in range(0, len(buffer), together):
        yield between.join(buffer[start : start + together])


def _read(
    encoder: Encoder, texts: Sequence[str], longest: int, together: int
) -> Iterator[tuple[list[int], list[SentenceWord]]]:
    """The token ids of each text, and the words of each of its sentences in their order, each once."""
    special, separator = set(encoder.tokenizer.all_special_ids), encoder.tokenizer.sep_token_id
    for start in range(0, len(texts), PART):
        part = texts[start : start + PART]
        encoded = encoder.tokenizer(part, truncation=True, max_length=longest, return_offsets_mapping=True)
        for row, text in enumerate(part):
            ids: list[int] = encoded["input_ids"][row]
            spans: list[tuple[int, int]] = encoded["offset_mapping"][row]
            places: dict[int, list[int]] = {}
            for place, word in enumerate(encoded.word_ids(row)):
                if word is not None and ids[place] not in special:
                    places.setdefault(word, []).append(place)
            ends = [place for place, token in enumerate(ids) if token == separator and place]
            words: dict[tuple[int, tuple[int, ...]], SentenceWord] = {}
            for where in places.values():
                written = [text[slice(*spans[place])] for place in where]
                without_signs = _without_signs(where, written)
                pieces = tuple(ids[place] for place in without_signs)
                spelt = any(map(str.isalpha, "".join(written)))
                sentence = min(together - 1, bisect(ends, without_signs[0]))
                words.setdefault((sentence, pieces), SentenceWord(pieces, without_signs, spelt, sentence))
            yield ids, list(words.values())


def _without_signs(places: Sequence[int], written: Sequence[str]) -> tuple[int, ...]:
    """The places of a word's pieces but for signs before and behind it, which some tokenizers count to the word."""
    spelt = [number for number, piece in enumerate(written) if any(map(str.isalnum, piece))]
    return tuple(places[spelt[0] : spelt[-1] + 1] if spelt else places)


class Pool(nn.Module):
    """Sentences that batches are drawn from, the importance of their words, and for how many batches more.

    rows: (P) sentences; importances: (P, K) nats; left: () batches; drawn: () batches since the stage began.
    """

    rows: Tensor
    importances: Tensor
    left: Tensor
    drawn: Tensor

    def __init__(self, sentences: int, candidates: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(sentences, dtype=torch.long))
        self.register_buffer("importances", torch.zeros(sentences, candidates))
        self.register_buffer("left", torch.zeros((), dtype=torch.long))
        self.register_buffer("drawn", torch.zeros((), dtype=torch.long))
