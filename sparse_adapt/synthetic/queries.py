"""Queries without users: titles, telling sentences and key phrases, each from a document that it should find.

A title or a sentence that becomes a query is cut out of its document, unless documents are to stay whole, so
that the document has to be found by what it means. A key phrase stays where it is: users' keywords do occur in
what they look for. Some documents are set aside, with their queries, to choose and to measure with: nothing is
ever learnt from those.

What is written is a collection like any other, to be read, edited and measured with:

    corpus.jsonl        the documents without what became a query
    queries.jsonl       `_id`, `text`, `kind` (title, sentence, phrase; term, acronym, definition: of a glossary;
                        explicit, semantic: by a model that writes), `doc_id` (the source) or else what the
                        teacher reads (`meaning`) and the `split`
    qrels/train.tsv     the source document of each query to learn from
    qrels/held.tsv      and of each that is set aside

A line deleted from queries.jsonl is a query less; the judgements needn't be touched.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from numpy.random import Generator, default_rng

from sparse_adapt.collection.lines import read_objects, write_objects
from sparse_adapt.collection.readers import Document, read_judgements, write_documents, write_judgements
from sparse_adapt.collection.sentences import CHARACTERS, sentences
from sparse_adapt.collection.streams import Unique, at_least_one
from sparse_adapt.errors import InputError
from sparse_adapt.settings import Settings, setting

TITLE, SENTENCE, PHRASE, GIVEN = "title", "sentence", "phrase", "given"
TRAIN, HELD = "train", "held"
FEWEST = 8  # different documents
SHORTEST_TITLE, LONGEST_TITLE = 3, 40  # words
SHORTEST_SENTENCE, LONGEST_SENTENCE = 5, 32
LEFT = 20  # words that a document keeps at least
PHRASE_WORDS = (2, 4)
TELLING = 3  # the query is drawn among so many of a document's most telling sentences or phrases
COMMON = 0.1  # share of documents from which a word joins words rather than saying anything

WORD = re.compile(
    "[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]{1,2}"  # scripts without spaces: two signs
    r"|[^\W_]+(?:[-'\u2019._][^\W_]+)*"
)

MARKUP = re.compile(r"!\[|\]\(|</?[a-z][^<>]*>|https?://|\.(?:png|jpe?g|gif|svg)\b", re.IGNORECASE)

CODE = re.compile(r"[{}\\|$]|(?:^|\s)[+*#\u2022=](?:\s|$)|\(\)|==")  # of programs, tables and lists


class Writer(Protocol):
    """What writes queries of documents, such as a language model, and counts the answers that it refused."""

    tally: Any

    def __call__(self, documents: Sequence[Document]) -> list[list[tuple[str, str]]]:
        """For each document the queries that were taken, each with its kind."""
        ...


class QuerySettings(Settings):
    """Queries without users: how many, of which kinds, how many are set aside."""

    seed: int = setting(0, "Seed of every random draw.", ge=0)
    count: int = setting(2_400, "Most queries to learn from.", unit="queries", ge=1)
    held: int = setting(
        300,
        "Most queries that are set aside to choose and to measure with; at most one for every four documents.",
        unit="queries",
        ge=1,
    )
    per_document: int = setting(2, "Most queries of one document.", unit="queries", ge=1, le=3)
    titles: float = setting(1.0, "Share of queries that are titles, beside the other kinds.", ge=0)
    title_with: tuple[Literal["keywords", "journal"], ...] = setting(
        (),
        "What follows a title that becomes a query, of documents that have it.",
        source="Pavlova and Makhlouf, MOSAIC",
    )
    sentences: float = setting(2.0, "Share of queries that are sentences, beside the other kinds.", ge=0)
    phrases: float = setting(1.0, "Share of queries that are phrases, beside the other kinds.", ge=0)
    cut: bool = setting(
        True, "Whether a document loses what became a query, so that its other words have to find it."
    )
    written: int = setting(
        1_000,
        "Documents to learn from that a model writes queries for, where one is named.",
        unit="documents",
        ge=0,
    )


class SyntheticQuery(NamedTuple):
    """A synthetic need, how it was made, the document it came from, and whether it is set aside.

    `meaning`: what the teacher reads in its place, where a person would have to know more than it says.
    """

    query_id: str
    text: str
    kind: str
    document_id: str
    split: str = TRAIN
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Collected:
    """Queries, and the documents without what became a query, in the order of the corpus."""

    documents: list[Document]
    queries: list[SyntheticQuery]

    def of(self, split: str) -> list[SyntheticQuery]:
        """The queries to learn from, or those set aside."""
        return [query for query in self.queries if query.split == split]


# -- making them ----------------------------------------------------------------------------------


def different_documents(documents: Sequence[Document], place: str | Path) -> list[int]:
    """The rows of documents of which none has the text of another. Raises InputError, with `place`, for too few."""
    different = _different(documents)
    if len(different) < FEWEST:
        raise InputError(
            place,
            f"holds {len(different):,} different documents of {len(documents):,}; at least {FEWEST} are needed "
            "to tell good from bad; give a larger corpus",
        )
    return different


def make_queries(
    documents: Sequence[Document],
    settings: QuerySettings,
    write: Writer | None = None,
    *,
    place: str | Path = "corpus",
) -> Collected:
    """So many queries as the settings ask for, or the corpus gives, each with its source document and kind.

    The same seed gives the same queries. Raises InputError, with `place` before it, for a corpus of too few
    different documents to tell one from another.
    """
    different = different_documents(documents, place)
    random = default_rng([settings.seed, 1])
    rarity = Rarity(documents)
    order = [different[int(row)] for row in random.permutation(len(different))]
    set_aside = min(settings.held, len(order) // 4)
    queries: list[SyntheticQuery] = []
    seen: set[str] = set()
    repeated = repeated_sentences(documents[row] for row in different)
    for split, rows, wanted in (
        (HELD, order[:set_aside], settings.held),
        (TRAIN, order[set_aside:], settings.count),
    ):
        queries += _queries_of(
            documents, rows, wanted, split, _Maker(rarity, random, seen, settings, repeated)
        )
    if write is None and not any(query.split == HELD for query in queries):
        raise InputError(
            place,
            f"its documents are too short to make queries of ({LEFT} words have to be left); have a "
            "model write some with --llm",
        )
    if write is not None:
        queries += _written(
            [documents[row] for row in order[: set_aside + settings.written]], set_aside, write, seen
        )
    numbered = [query._replace(query_id=f"{query.split}-{number}") for number, query in enumerate(queries, 1)]
    if not settings.cut:
        return Collected(list(documents), numbered)
    taken: dict[str, list[SyntheticQuery]] = {}
    for query in numbered:
        taken.setdefault(query.document_id, []).append(query)
    return Collected([without(each, taken.get(each.document_id, ())) for each in documents], numbered)


def _different(documents: Sequence[Document]) -> list[int]:
    """Rows of the documents that hold words, the first of each text."""
    first: dict[str, int] = {}
    for row, document in enumerate(documents):
        key = " ".join(document.full_text.split()).casefold()
        if WORD.search(key):
            first.setdefault(key, row)
    return list(first.values())


class _Maker(NamedTuple):
    """What synthetic queries are drawn by: how rare words are, chance, queries made before."""

    rarity: "Rarity"
    random: Generator
    seen: set[str]
    settings: QuerySettings
    repeated: set[str]  # sentences that several documents say

    def sentences(self, text: str) -> Iterator[str]:
        """The sentences of a text that somebody might ask: its own, and neither markup nor code."""
        taken = (each for each in sentences(text) if each not in self.repeated)
        return (each for each in taken if not (MARKUP.search(each) or CODE.search(each)))


def repeated_sentences(documents: Iterable[Document]) -> set[str]:
    """Sentences that more than one document says, such as a notice at each foot."""
    once, several = set[str](), set[str]()
    for document in documents:
        for sentence in set(sentences(document.text[:CHARACTERS])):
            (several if sentence in once else once).add(sentence)
    return several


def _queries_of(
    documents: Sequence[Document], rows: Sequence[int], wanted: int, split: str, maker: _Maker
) -> list[SyntheticQuery]:
    """One query of each document, then a second of another kind, until there are enough."""
    queries: list[SyntheticQuery] = []
    used: dict[int, set[str]] = {}
    for _ in range(maker.settings.per_document):
        for row in rows:
            if len(queries) >= wanted:
                return queries
            document, kinds = documents[row], used.setdefault(row, set())
            for kind in _kinds(maker, kinds):
                text = _make(kind, document, kinds, maker)
                if text is not None and text.casefold() not in maker.seen:
                    maker.seen.add(text.casefold())
                    kinds.add(kind)
                    queries.append(SyntheticQuery("", text, kind, document.document_id, split))
                    break
    return queries


def _kinds(maker: _Maker, used: set[str]) -> list[str]:
    """Kinds to try in turn: one drawn by the settings' shares first."""
    shares = {
        TITLE: maker.settings.titles,
        SENTENCE: maker.settings.sentences,
        PHRASE: maker.settings.phrases,
    }
    left = [kind for kind, share in shares.items() if share > 0 and kind not in used]
    if not left:
        return []
    total = sum(shares[kind] for kind in left)
    first = left[int(maker.random.choice(len(left), p=[shares[kind] / total for kind in left]))]
    return [first, *(kind for kind in left if kind != first)]


def _make(kind: str, document: Document, used: set[str], maker: _Maker) -> str | None:
    text = document.text[:CHARACTERS]
    if kind == TITLE:
        beside = {"keywords": document.keywords, "journal": document.journal}
        parts = (document.title, *(beside[field] for field in maker.settings.title_with))
        prompt = ", ".join(" ".join(part.split()) for part in parts if part.strip())
        words = len(WORD.findall(prompt))
        enough = SHORTEST_TITLE <= words <= LONGEST_TITLE and len(WORD.findall(text)) >= LEFT
        return prompt if enough else None
    if kind == SENTENCE:
        return _telling_sentence(text, maker)
    return _phrase(f"{document.title}. {text}" if TITLE not in used else text, maker)


def _telling_sentence(text: str, maker: _Maker) -> str | None:
    """One of the most telling sentences of a text that keeps enough without it."""
    total = len(WORD.findall(text))
    scored = []
    for sentence in dict.fromkeys(maker.sentences(text)):
        words = WORD.findall(sentence)
        if SHORTEST_SENTENCE <= len(words) <= LONGEST_SENTENCE and total - len(words) >= LEFT:
            scored.append((-maker.rarity.mean(words), sentence))
    best = sorted(scored)[:TELLING]
    return best[int(maker.random.integers(len(best)))][1] if best else None


def _phrase(text: str, maker: _Maker) -> str | None:
    """A few neighbouring words that say much about a text: rare in the corpus, frequent here."""
    shortest, longest = PHRASE_WORDS
    counts: Counter[str] = Counter()
    for sentence in maker.sentences(text):
        run: list[str] = []
        for word in [*WORD.findall(sentence), ""]:
            if word and maker.rarity.says_something(word):
                run.append(word)
                continue
            for start in range(0, len(run) - shortest + 1, longest):
                counts[" ".join(run[start : start + longest])] += 1
            run = []
    telling = Counter(word.casefold() for word in WORD.findall(text))
    scored = sorted(
        (
            -sum(maker.rarity.of(word) * math.log1p(telling[word.casefold()]) for word in phrase.split()),
            phrase,
        )
        for phrase in counts
        if len(phrase.split()) >= shortest and not _repeats_a_word(phrase)
    )[:TELLING]
    return scored[int(maker.random.integers(len(scored)))][1] if scored else None


def _repeats_a_word(phrase: str) -> bool:
    words = phrase.casefold().split()
    return len({*words}) < len(words)


def _written(
    documents: Sequence[Document], held_out: int, write: Writer, seen: set[str]
) -> Iterator[SyntheticQuery]:
    """Queries that a model writes for documents, of which the first `held_out` are set aside."""
    for place, (document, queries) in enumerate(zip(documents, write(documents), strict=True)):
        for kind, text in queries:
            if text.casefold() not in seen:
                seen.add(text.casefold())
                split = HELD if place < held_out else TRAIN
                yield SyntheticQuery("", text, kind, document.document_id, split)


def without(document: Document, queries: Iterable[SyntheticQuery]) -> Document:
    """A document without the title and the sentences that became queries."""
    title, text = document.title, document.text
    for query in queries:
        if query.kind == TITLE:
            title = ""
        elif query.kind == SENTENCE:
            text = text.replace(query.text, " ")
    same = (title, text) == (document.title, document.text)
    return document if same else replace(document, text=text, title=title)


class Rarity:
    """How much a word tells: the logarithm of how many documents there are for each that has it."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = len(documents)
        self.holding: Counter[str] = Counter()
        for document in documents:
            words = WORD.findall(document.full_text[:CHARACTERS])
            self.holding.update({word.casefold() for word in words})

    def of(self, word: str) -> float:
        """0 for a word that every document has."""
        return math.log((self.documents + 1) / (self.holding[word.casefold()] + 1))

    def mean(self, words: Sequence[str]) -> float:
        """Of the words of a text."""
        return sum(map(self.of, words)) / len(words)

    def says_something(self, word: str) -> bool:
        """Whether few enough documents have it, and it is no number."""
        return self.holding[word.casefold()] < max(2, COMMON * self.documents) and not word[0].isdigit()


# -- as files -------------------------------------------------------------------------------------


def write_collection(folder: Path, collected: Collected) -> None:
    """Corpus, queries and judgements of both splits as a collection."""
    write_documents(folder / "corpus.jsonl", collected.documents)
    write_pseudo_queries(folder / "queries.jsonl", collected.queries)
    for split in (TRAIN, HELD):
        judged = {
            query.query_id: {query.document_id: 1} for query in collected.of(split) if query.document_id
        }
        if judged:
            write_judgements(folder / "qrels" / f"{split}.tsv", judged)


def write_pseudo_queries(path: str | Path, queries: Iterable[SyntheticQuery]) -> int:
    """Write `queries.jsonl` with sources; says how many queries."""
    return write_objects(
        path,
        (
            {"_id": query.query_id, "text": query.text, "kind": query.kind}
            | ({"doc_id": query.document_id} if query.document_id else {})
            | ({"meaning": query.meaning, "split": query.split} if query.meaning else {})
            for query in queries
        ),
    )


def read_synthetic_queries(folder: str | Path) -> list[SyntheticQuery]:
    """The queries of a collection that `write_collection` wrote and a person may have edited.

    Raises InputError for a query without id or text, and for one that occurs twice.
    """
    path = Path(folder) / "queries.jsonl"
    held_out = (
        set(read_judgements(folder, HELD)) if (Path(folder) / "qrels" / f"{HELD}.tsv").is_file() else set()
    )
    unique = Unique(path, "query id")
    queries = []
    for record in at_least_one(read_objects(path), path, "queries"):
        query_id = record.identifier("_id")
        unique.add(query_id, record.line)
        source = record.identifier("doc_id") if record.fields.get("doc_id") is not None else ""
        kind = record.string("kind", default=GIVEN)
        split = HELD if query_id in held_out else record.string("split", default=TRAIN)
        meaning = record.string("meaning", default="")
        queries.append(SyntheticQuery(query_id, record.words("text"), kind, source, split, meaning))
    return queries
