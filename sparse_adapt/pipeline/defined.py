"""Definitions put into a model's exact words: texts about each word, texts about other things, and a threshold.

Nothing is trained. Words are those of a glossary that the tokenizer cuts into pieces and the corpus contains: what a
model reads whole it knows by itself. The threshold lets 2.5 % of general questions mean a word, which then finds
nothing in general texts, for none of them contains it.

Dimensions: S texts, D words, H width of a dense vector.
"""

import re
from collections.abc import Sequence
from itertools import chain

import numpy as np

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.model.dense import SMALL, DenseEncoder
from sparse_adapt.model.exact.defined import DefinedSettings, DefinedWords
from sparse_adapt.model.exact.words import ExactWords
from sparse_adapt.model.margins import Margins
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.preparing import uses_of
from sparse_adapt.pipeline.words import Read
from sparse_adapt.report.progress import ProgressFor, no_progress_for
from sparse_adapt.synthetic.background import background_pairs, like_queries
from sparse_adapt.terms.uses import Use

ACTIVATING = 0.025  # share of general questions that may mean a word
OF_A_WORD, OF_OTHERS = 32, 1_000  # documents that contain a word, and that contain none, at most
CHARACTERS = 600  # of a document that are read, around the word where it contains one
BACKGROUND_ONE_IN = 5  # of the texts like queries
QUESTIONS_ONE_IN = 3  # of the general questions that teach, which judge nothing
SEED = 0

ENGLISH = ("en", "none")  # languages of words whose definitions the dense encoder reads


def defined_by(
    definitions: Sequence[Definition], encoder: SparseEncoder, read: Read, progress_for: ProgressFor
) -> ExactWords:
    """The exact words of a model with those that a glossary defines. The corpus is read twice.

    Raises InputError where it defines no word that the model needs, and ConfigError for words of another language.
    """
    words = encoder.words
    assert words is not None, "of a model that has some"
    check_language(words)
    found, _ = uses_of(definitions, read(), encoder.tokenizer)
    defined = defined_words(read, found, progress_for)
    if defined is None:
        raise InputError(
            "the glossary",
            f"none of its {len(found):,} entries defines a word that the model's tokenizer cuts and two documents "
            "contain; leave it out",
        )
    return words.with_definitions(defined)


def check_language(words: ExactWords) -> None:
    """Raise ConfigError where the dense encoder doesn't read the language of the words."""
    if words.settings.language not in ENGLISH:
        raise ConfigError(
            f"definitions are compared by {SMALL}, which reads English, and the words are of the language "
            f"{words.settings.language}; leave out the glossary"
        )


def defined_words(
    read: Read, found: Sequence[Use], progress_for: ProgressFor = no_progress_for
) -> DefinedWords | None:
    """The words that a glossary's entries define, as a dense encoder knows them; None where there are none.

    `found`: what becomes of each entry. `progress_for`: hears what is read and how much of it there is.
    """
    defining = {use.token.casefold(): use for use in found if use.token}
    if not defining:
        return None
    words = [use.token for use in defining.values()]
    about_words, about = _texts(read, words, list(defining.values()))
    questions = [question.text for _, question in background_pairs()][::QUESTIONS_ONE_IN]
    background = like_queries()[::BACKGROUND_ONE_IN]
    encoder = DenseEncoder(SMALL, rough=True)
    every = [*about_words, *background, *questions]
    vectors = encoder.encode(every, progress=progress_for("texts compared with definitions", len(every)))
    vectors = vectors.astype(np.float16).astype(np.float32)  # as they are kept
    sources, of_background, asked = np.split(vectors, [len(about_words), len(about_words) + len(background)])
    margins = Margins.of(sources, about, of_background)
    most = np.concatenate([margins.of_texts(some).max(axis=1) for some in np.array_split(asked, 8)])
    threshold = round(float(np.quantile(most, 1.0 - ACTIVATING)), 4)
    settings = DefinedSettings(labeller=SMALL, threshold=threshold, words=tuple(words))
    return DefinedWords(settings, margins)


def _texts(read: Read, words: Sequence[str], defining: Sequence[Use]) -> tuple[list[str], np.ndarray]:
    """Texts without the words, and which words each is about (S, D): definitions, examples, and some documents."""
    pattern = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, words))})(?:e?s)?(?!\w)", re.IGNORECASE)
    place = {word.casefold(): number for number, word in enumerate(words)}
    texts, rows = list[str](), list[set[int]]()
    for number, use in enumerate(defining):
        for text in chain(use.entry.senses, use.entry.examples):
            texts.append(text)
            rows.append({number})
    counts, others, seen = [0] * len(words), list[str](), 0
    random = np.random.default_rng(SEED)
    for document in read():
        found = {place[match[1].casefold()]: match.start() for match in pattern.finditer(document.full_text)}
        wanting = [number for number in found if counts[number] < OF_A_WORD]
        if wanting:
            texts.append(_around(document, found[wanting[0]]))
            rows.append(set(found))
            for number in found:
                counts[number] += 1
        elif not found:
            seen += 1
            slot = len(others) if len(others) < OF_OTHERS else int(random.integers(seen))
            if slot < OF_OTHERS:
                others[slot : slot + 1] = [_around(document, 0)]
    texts += others
    about = np.zeros((len(texts), len(words)), np.bool_)
    for row, numbers in enumerate(rows):
        about[row, list(numbers)] = True
    return [pattern.sub(" ", text) for text in texts], about


def _around(document: Document, place: int) -> str:
    """The characters of a document around a place, not from within a word."""
    text = document.full_text
    start = max(0, min(place - CHARACTERS // 2, len(text) - CHARACTERS))
    return text[start : start + CHARACTERS].partition(" ")[2] if start else text[:CHARACTERS]
