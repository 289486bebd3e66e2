"""Coined terms in a real collection: words that documents say and no model has ever read.

Words of the domain are replaced in the documents, and not in the queries, by words invented for the purpose. A
model that was never adapted loses what these words carried. How much of that comes back when the model is
adapted to the documents (`recovery`) is how well it learns a word from its contexts alone.

    corpus.jsonl           with coined words
    queries.jsonl          untouched; those that hold a replaced word are of kind "carried", the rest "other"
    queries-coined.jsonl   the carried ones, typed by somebody who knows the coined word
    qrels/                 copied as they are
    coined.json            which word stands for which, and the evidence; not for the model's eyes
    glossary.jsonl         what the coined words mean, where a dictionary of real words was named
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sparse_adapt.collection.glossary import Definition, read_dictionary, write_dictionary
from sparse_adapt.collection.readers import (
    Document,
    Query,
    documents_at,
    read_documents,
    read_judgements,
    read_queries,
    write_documents,
    write_judgements,
    write_queries,
)
from sparse_adapt.collection.sources import bundled
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.files.folders import output_folder, write_json
from sparse_adapt.files.place import Place
from sparse_adapt.files.records import Record, read_record
from sparse_adapt.plugins.research.coin.words import (
    Candidate,
    Coinage,
    choose_words,
    count_words,
    find_candidates,
    invent_words,
)
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.terms.definitions import mine_definitions

COINED_FILE = "coined.json"
TYPED_FILE = "queries-coined.jsonl"
GLOSSARY_FILE = "glossary.jsonl"
CARRIED, OTHER = "carried", "other"
A_WORD = 2  # definitions of one word
INDEX, DATA = "index.noun", "data.noun"  # files of WordNet (Miller 1995)
QUOTED = re.compile(r'"([^"]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class CoinSettings:
    """What to coin. The same settings and collection give the same bytes."""

    collection: str
    terms: int
    seed: int = 0
    split: str = "test"  # of an ir_datasets id, whose judgements have no folder to be copied from
    glossary: str | None = None  # what real words mean: a glossary, or a folder with WordNet's files


class Coined(Record):
    """One word and what stands for it. `forms` counts what was replaced in the documents."""

    word: str
    coined: str
    documents: int
    queries: int
    times_general: float
    forms: dict[str, int]


class CoinReport(Record):
    """What was made. `carried` counts the queries, of any split, that hold a replaced word."""

    source: str
    seed: int
    candidates: int
    documents: int
    changed: int
    queries: int
    carried: int
    coined: tuple[Coined, ...]


def replace_words(
    settings: CoinSettings,
    vocabulary: set[str],
    place: Place,
    *,
    counted: Progress = no_progress,
    written: Progress = no_progress,
) -> CoinReport:
    """Make a collection with coined terms; reads the documents twice, and holds none of them.

    vocabulary: entries of the model's vocabulary, which no coined word may be. `counted` and `written` hear of
    documents. Raises ConfigError where there are fewer candidates than terms, and InputError where the glossary
    defines none of the words.
    """
    with output_folder(replace(place, resumable=False, reads=[documents_at(settings.collection)])) as work:
        queries = list(read_queries(settings.collection))
        judged = list(_judgements(settings))
        counts = count_words(
            document.full_text for document in _counted_documents(settings.collection, counted)
        )
        candidates = find_candidates(counts, [query.text for query in queries])
        if len(candidates) < settings.terms:
            raise ConfigError(_too_few(settings, len(candidates)))
        generator = np.random.default_rng(settings.seed)
        chosen = choose_words(candidates, settings.terms, generator)
        words = set(counts.occurrences) | {word for query in queries for word in query.text.lower().split()}
        taken = words | {entry.lower().removeprefix("##") for entry in vocabulary}
        coined = {
            each.family.base: word
            for each, word in zip(chosen, invent_words(len(chosen), taken, generator), strict=True)
        }
        coinage = Coinage([each.family for each in chosen], coined)
        tally = _Tally()
        write_documents(
            work / "corpus.jsonl", _replaced(_counted_documents(settings.collection, written), coinage, tally)
        )
        if settings.glossary is not None:
            bases, documents = [each.family.base for each in chosen], read_documents(settings.collection)
            write_dictionary(work / GLOSSARY_FILE, _glossary(coinage, bases, settings.glossary, documents))
        carried = [query for query in queries if coinage.bases(query.text)]
        report = _report(settings, len(candidates), chosen, coined, tally, queries, carried)
        _write_queries(work, queries, carried, coinage)
        for split, judgements in judged:
            write_judgements(work / "qrels" / f"{split}.tsv", judgements)
        write_json(work / COINED_FILE, report.model_dump())
    return report


def read_coined(folder: str | Path) -> CoinReport:
    """What `coin` says of a collection that it made. Raises InputError for any other folder."""
    path = Path(folder) / COINED_FILE
    if not path.is_file():
        raise InputError(folder, f"holds no {COINED_FILE}; make one with: sparse-adapt coin")
    return read_record(path, CoinReport)


class _Tally:
    """What a pass over the documents replaces."""

    def __init__(self) -> None:
        self.documents = 0
        self.changed = 0
        self.holding: Counter[str] = Counter()
        self.forms: dict[str, Counter[str]] = {}

    def add(self, texts: dict[str, Counter[str]]) -> None:
        """Count one document."""
        self.documents += 1
        self.changed += bool(texts)
        self.holding.update(texts.keys())
        for base, forms in texts.items():
            self.forms.setdefault(base, Counter()).update(forms)


def _replaced(documents: Iterator[Document], coinage: Coinage, tally: _Tally) -> Iterator[Document]:
    for document in documents:
        tally.add(coinage.bases(f"{document.title}\n{document.text}"))
        title, text = coinage.replace(document.title), coinage.replace(document.text)
        yield Document(document.document_id, text, title)


def _report(
    settings: CoinSettings,
    candidates: int,
    chosen: list[Candidate],
    coined: dict[str, str],
    tally: _Tally,
    queries: list[Query],
    carried: list[Query],
) -> CoinReport:
    """The report; its counts are those of the documents that were written."""
    return CoinReport(
        source=_absolute(settings.collection),
        seed=settings.seed,
        candidates=candidates,
        documents=tally.documents,
        changed=tally.changed,
        queries=len(queries),
        carried=len(carried),
        coined=tuple(
            Coined(
                word=each.family.base,
                coined=coined[each.family.base],
                documents=tally.holding[each.family.base],
                queries=each.queries,
                times_general=each.times_general,
                forms=dict(sorted(tally.forms[each.family.base].items())),
            )
            for each in chosen
        ),
    )


def _write_queries(work: Path, queries: list[Query], carried: list[Query], coinage: Coinage) -> None:
    holders = {query.query_id for query in carried}
    write_queries(
        work / "queries.jsonl",
        (
            Query(query.query_id, query.text, CARRIED if query.query_id in holders else OTHER)
            for query in queries
        ),
    )
    write_queries(
        work / TYPED_FILE,
        (Query(query.query_id, coinage.replace(query.text), CARRIED) for query in carried),
    )


def _judgements(settings: CoinSettings) -> Iterator[tuple[str, dict[str, dict[str, int]]]]:
    """The judgements of every split of a folder, or those of one split of an ir_datasets id."""
    folder = bundled(settings.collection)
    if not folder.is_dir():
        if folder.is_file():
            raise InputError(settings.collection, "is a file; give the folder with corpus, queries and qrels")
        yield settings.split, read_judgements(settings.collection, settings.split)
        return
    names = sorted(path.name.split(".tsv")[0] for path in (folder / "qrels").glob("*.tsv*"))
    for name in names or [settings.split]:
        yield name, read_judgements(settings.collection, name)


def _counted_documents(collection: str, progress: Progress) -> Iterator[Document]:
    for document in read_documents(collection):
        yield document
        progress(1)


def _too_few(settings: CoinSettings, count: int) -> str:
    if not count:
        return (
            f"{settings.collection}: no word of its domain is both in enough documents and in a query; "
            "choose a larger collection"
        )
    return f"--terms {settings.terms}: {settings.collection} has {count} words to replace; ask for at most {count}"


def _absolute(source: str) -> str:
    return str(Path(source).resolve()) if Path(source).exists() else source


# -- what the words mean ---------------------------------------------------------------------------


def _glossary(
    coinage: Coinage, bases: Sequence[str], source: str, documents: Iterable[Document]
) -> list[Definition]:
    """Definitions of the words that were replaced, from `source` first and then from the documents, in coined words.

    A definition that says its own word teaches nothing, so it is left out.
    source: a glossary, or a folder with WordNet's files. Raises InputError where neither says anything.
    """
    definitions: dict[str, list[Definition]] = {base: [] for base in bases}
    mined = (each.definition for each in mine_definitions(documents, list(coinage.base)))
    for definition in [*_definitions_in(source, coinage), *mined]:
        base = coinage.base[definition.term.lower()]
        names = coinage.bases(definition.definition)
        if base not in names and len(definitions[base]) < A_WORD:
            examples = [example for example in definition.examples if base in coinage.bases(example)]
            definitions[base].append(
                Definition(
                    coinage.form[base],
                    coinage.replace(definition.definition),
                    tuple(map(coinage.replace, examples)),
                )
            )
    glossary = [definition for base in bases for definition in definitions[base]]
    if not glossary:
        raise InputError(source, f"defines none of the {len(bases):,} words that are replaced; name another")
    return glossary


def _definitions_in(source: str, coinage: Coinage) -> Iterator[Definition]:
    """A dictionary's definitions of the words that were replaced, in its order."""
    if (Path(source) / DATA).is_file():
        yield from _wordnet(Path(source), coinage)
        return
    yield from (each for each in read_dictionary(source) if each.term.lower() in coinage.base)


def _wordnet(folder: Path, coinage: Coinage) -> Iterator[Definition]:
    """The glosses of nouns, the most usual sense first. An index line ends in the byte offsets of its senses."""
    with (folder / INDEX).open(encoding="utf-8") as index, (folder / DATA).open("rb") as data:
        for line in index:
            word, *fields = line.split()
            if line.startswith(" ") or word not in coinage.base:
                continue
            senses = int(fields[1])
            for offset in fields[-senses:][:A_WORD]:
                data.seek(int(offset))
                gloss = data.readline().decode().partition(" | ")[2].strip()
                meaning = QUOTED.sub("", gloss).strip(" ;")
                if meaning:
                    yield Definition(word, meaning, tuple(QUOTED.findall(gloss)))
