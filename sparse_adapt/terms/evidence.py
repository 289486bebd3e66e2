"""How much a word deserves a token of its own: what the token would save against what it costs, in nats.

As things stand, an occurrence of a word costs what its pieces cost in this corpus, or what the word costs in
general language where that is less: a model that has read much gains nothing from a token for "long-term",
however often it occurs. With a token, an occurrence costs the word's own frequency here. The token itself
costs one spelling of the word and half the logarithm of the length of the corpus, for its frequency. The
difference is the gain. A word that the tokenizer can't spell ([UNK]) costs what it costs in general language, so it
comes before others that are as frequent (after Rissanen 1978, "Modeling by shortest data description").
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparse_adapt.terms.words import Count, Word, Words, parts_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

RAREST = 1e-9  # share of general language that a word without an entry is given: once in a billion
ORDINARY = 1e-5  # share from which a word is one that everybody knows
TEXTS_A_BATCH = 20_000
MEASURE = re.compile(r"\d+[^\W\dA-Z_]*|[\d.-]+")  # 10mg, 1980s, 2nd, 3-4
NUMBER = re.compile(r"\d+[^\W\d_]?")
INFLECTIONS = ("s", "es", "ed", "d", "ing", "er", "ers", "ly")
SHORTEST_STEM = 3


@dataclass(frozen=True, slots=True)
class TermEvidence:
    """Why a mined term deserves a token: numbers from the corpus, the tokenizer and general language."""

    gain: float  # nats that a token saves over the whole corpus, less its own cost
    pieces: tuple[str, ...]  # what the tokenizer makes of the term now
    occurrences: int
    documents: int
    zipf: float  # frequency in general language: log10 of occurrences in a billion words; 0 for unknown
    log_odds: float  # ln of how many times more frequent the term is here
    variants: tuple[str, ...] = ()  # other surfaces that count as this term


def weigh_words(words: Words, tokenizer: "PreTrainedTokenizerFast") -> Iterator[tuple[Word, TermEvidence]]:
    """Every word that could be a term, and the evidence for it.

    Left out: what is one token already or an inflection of one, numbers and measures, and compounds that
    aren't a unit (see `_is_unit`); the occurrences of such a compound count for its parts.
    """
    split = _Split(tokenizer)
    split.add(words.by_key)
    costs = _PieceCosts(words, split)
    units = {key for key in words.by_key if parts_of(key) and _is_unit(key, words, split)}
    taken = _occurrences_inside(units, words)
    candidates = [word for word in words.folded(split.is_token) if _could_be_term(word.key, units, split)]
    split.add({stem for word in candidates for stem in _stems(word.key)} - split.ids.keys())
    for word in candidates:
        count = word.count.without(taken[word.key])
        if count.occurrences and not any(split.is_token(stem) for stem in _stems(word.key)):
            yield word, _evidence(word, count, costs.of(word.key), split.pieces(word.key), words.total)


def _evidence(
    word: Word, count: Count, cost_in_pieces: float, pieces: tuple[str, ...], total: int
) -> TermEvidence:
    general, here = _share_of_general_language(word.key), count.occurrences / total
    cost_before = min(cost_in_pieces, -math.log(general))
    saved = count.support * (cost_before + math.log(here))
    cost_of_token = cost_before + math.log(total) / 2
    return TermEvidence(
        gain=round(saved - cost_of_token, 2),
        pieces=pieces,
        occurrences=count.occurrences,
        documents=count.documents,
        zipf=0.0 if general <= RAREST else round(math.log10(general) + 9, 2),
        log_odds=round(_log_odds(min(here, 1 - 0.5 / total)) - _log_odds(general), 2),
        variants=word.surfaces[1:],
    )


def _log_odds(share: float) -> float:
    """Of a share below 1: a word that is all there is counts as half an occurrence less."""
    return math.log(share) - math.log1p(-share)


def _share_of_general_language(key: str) -> float:
    """How much of English text a word makes up (Speer 2022, wordfreq)."""
    from wordfreq import word_frequency

    if not key[-1].isalnum():  # c++ and c# are counted as c there
        return RAREST
    return max(RAREST, float(word_frequency(key, "en")))


# -- what may be a term at all -------------------------------------------------------------------


def _could_be_term(key: str, units: set[str], split: "_Split") -> bool:
    if split.is_token(key) or MEASURE.fullmatch(key) or not any(map(str.isalpha, key)):
        return False
    return key in units or not parts_of(key)


def _is_unit(key: str, words: Words, split: "_Split") -> bool:
    """Whether a compound is one thing rather than words side by side.

    A number makes it one with a name (`IL-6`, `caspase-3`), not with an ordinary word (`type-2`). Otherwise
    one part has to be no ordinary word and occur in the compound at least as often as out of it
    (`beta-catenin`; not `long-term`, not `HIV-positive`). A full stop joins identifiers in lower case only.
    """
    parts = parts_of(key)
    strange = [part for part in parts if _is_strange(part, split)]
    if "." in key:
        return all(len(part) > 1 and part[0].isalpha() for part in parts) and _continues_in_lower_case(
            key, words
        )
    if len(parts) == 2 and any(map(NUMBER.fullmatch, parts)):
        name = next((part for part in parts if not NUMBER.fullmatch(part)), "")
        return len(name) > 1 and (name in strange or words.ranked(name)[0].isupper())
    occurrences = words.by_key[key].occurrences
    return any(2 * occurrences >= words.by_key[part].occurrences for part in strange)


def _is_strange(part: str, split: "_Split") -> bool:
    if len(part) == 1 or part.isdigit() or split.is_token(part):
        return False
    return _share_of_general_language(part) < ORDINARY


def _continues_in_lower_case(key: str, words: Words) -> bool:
    return all(part[0].islower() for part in parts_of(words.ranked(key)[0])[1:])


def _occurrences_inside(units: set[str], words: Words) -> Counter[str]:
    """How many occurrences of each word belong to a unit that it is part of."""
    inside: Counter[str] = Counter()
    for key in units:
        for part in parts_of(key):
            inside[part] += words.by_key[key].occurrences
    return inside


def _stems(key: str) -> list[str]:
    """Words that this one may be a mere form of: `parsing` of `pars` or `parse`, `symptom` of `symptoms`."""
    if not key.isalpha():
        return []
    stems = [f"{key}s"]
    for ending in INFLECTIONS:
        stem = key.removesuffix(ending)
        if stem == key or len(stem) < SHORTEST_STEM:
            continue
        stems += [stem, f"{stem}e"]
        if stem[-1] == stem[-2]:
            stems.append(stem[:-1])  # running
        if stem[-1] == "i":
            stems.append(f"{stem[:-1]}y")  # studied
    return stems


# -- what the tokenizer makes of words -----------------------------------------------------------


class _Split:
    """The pieces of words as they stand in a text, that is after a space."""

    def __init__(self, tokenizer: "PreTrainedTokenizerFast") -> None:
        self.tokenizer = tokenizer
        self.vocabulary = tokenizer.get_vocab()
        self.ids: dict[str, list[int]] = {}

    def add(self, keys: Iterable[str]) -> None:
        """Split more words, many at a time."""
        todo = list(keys)
        for start in range(0, len(todo), TEXTS_A_BATCH):
            batch = todo[start : start + TEXTS_A_BATCH]
            encoded = self.tokenizer([f" {key}" for key in batch], add_special_tokens=False)
            self.ids.update(zip(batch, encoded["input_ids"], strict=True))

    def is_token(self, key: str) -> bool:
        """Whether a word is one token, after a space or without one, and not that for what can't be spelt."""
        ids = self.ids[key]
        return key in self.vocabulary or (len(ids) == 1 and ids[0] != self.tokenizer.unk_token_id)

    def pieces(self, key: str) -> tuple[str, ...]:
        """The pieces by name."""
        return tuple(self.tokenizer.convert_ids_to_tokens(self.ids[key]))


class _PieceCosts:
    """What words cost in pieces, in nats: minus the logarithm of each piece's share of all pieces.

    A word's own occurrences are left out of its pieces' shares: pieces that occur in nothing else are as good
    as unseen.
    """

    def __init__(self, words: Words, split: _Split) -> None:
        inside = _occurrences_inside({key for key in words.by_key if parts_of(key)}, words)
        self.ids, self.unknown = split.ids, split.tokenizer.unk_token_id
        self.alone = {key: max(0, count.occurrences - inside[key]) for key, count in words.by_key.items()}
        self.counts: Counter[int] = Counter()
        for key, occurrences in self.alone.items():
            for piece in self.ids[key]:
                self.counts[piece] += occurrences
        self.total = sum(self.counts.values())

    def of(self, key: str) -> float:
        """Nats for one occurrence of a word; without end for one that no pieces spell."""
        if self.unknown in self.ids[key]:
            return math.inf
        own = Counter(self.ids[key])
        elsewhere = (self.counts[piece] - own[piece] * self.alone[key] for piece in self.ids[key])
        return sum(math.log(self.total / max(1, occurrences)) for occurrences in elsewhere)
