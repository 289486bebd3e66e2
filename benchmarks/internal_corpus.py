"""Documents of an invented firm with ten products that nobody else knows: `python -m benchmarks.internal_corpus`.

    python -m benchmarks.internal_corpus SEED FOLDER

Writes some 100 documents, a glossary that defines each product, and test queries of three kinds: *control* (about the
firm's ordinary matters), *explicit* (they say a product) and *semantic* (they mean one, mostly in words that the
glossary doesn't use). Most documents on a product never say what it is for: they tell of access, outages, releases.
Even seeds and odd ones share neither products nor matters, so that what is chosen with one is reported with the
other. The texts lie in `internal_texts.json`.
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.glossary import Definition, write_dictionary
from sparse_adapt.collection.readers import (
    Document,
    Judgements,
    Query,
    write_documents,
    write_judgements,
    write_queries,
)


class Product(NamedTuple):
    """What a product is, an example of its use, what one document says of it, and queries that mean it."""

    definition: str
    example: str
    fact: str
    semantic: tuple[str, str, str]


class Matter(NamedTuple):
    """An ordinary matter: its title, two paragraphs, a document each, and a query that either answers."""

    title: str
    texts: tuple[str, str]
    query: str


TEXTS = json.loads(Path(__file__).with_name("internal_texts.json").read_text(encoding="utf-8"))
PRODUCTS = tuple(Product(**each) for each in TEXTS["products"])
MATTERS = tuple(Matter(**each) for each in TEXTS["matters"])
GUISES = tuple((each["title"], each["text"]) for each in TEXTS["guises"])  # what documents on a product are
SYLLABLES = (
    (
        "bra",
        "kel",
        "vor",
        "tis",
        "mun",
        "dra",
        "fel",
        "gor",
        "hup",
        "jas",
        "lin",
        "nov",
        "pli",
        "quo",
        "ris",
        "sko",
        "tam",
        "ulm",
        "wex",
        "zan",
    ),
    ("do", "ne", "ri", "va", "lu", "ma", "ki", "po", "ta", "se"),
    ("nix", "dor", "mel", "quat", "vane", "reth", "lyx", "bant", "sorn", "gast"),
)
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "September", "October", "November")
PEOPLE = ("Ines", "Tom", "Farah", "Goran", "Mei", "Olu", "Petra", "Sven", "Lucia", "Ravi")


def main() -> None:
    """Write one corpus."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    write_corpus(arguments.seed, arguments.folder)


def write_corpus(seed: int, folder: Path) -> None:
    """Documents, glossary, queries and judgements of one seed."""
    draw, half = random.Random(seed), seed % 2
    products, matters = PRODUCTS[half::2], MATTERS[half::2]
    names = _names(draw, len(products))
    documents = [*_on_products(draw, names, products), *_on_matters(matters)]
    draw.shuffle(documents)
    queries, judgements = _question(names, products, matters)
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    write_documents(folder / "corpus.jsonl", documents)
    write_queries(folder / "queries.jsonl", queries)
    write_judgements(folder / "qrels" / "test.tsv", judgements)
    glossary = [
        Definition(name, product.definition, (product.example.format(name),))
        for name, product in zip(names, products, strict=True)
    ]
    write_dictionary(folder / "glossary.jsonl", glossary)


def _names(draw: random.Random, count: int) -> list[str]:
    """Invented words that begin and end unlike each other."""
    first, middle, last = (draw.sample(part, len(part)) for part in SYLLABLES)
    return [first[row] + middle[row] + last[row] for row in range(count)]


def _on_products(draw: random.Random, names: list[str], products: tuple[Product, ...]) -> Iterator[Document]:
    for name, product in zip(names, products, strict=True):
        for number, (title, text) in enumerate(GUISES):
            month, later = draw.sample(MONTHS, 2)
            who, other = draw.sample(PEOPLE, 2)
            values = {
                "day": draw.randint(1, 28),
                "month": month,
                "later": later,
                "hours": draw.randint(2, 9),
                "version": f"{draw.randint(1, 9)}.{draw.randint(0, 9)}",
                "count": draw.randint(11, 95),
                "who": who,
                "other": other,
                "fact": product.fact.replace("{}", name),
            }
            filled = (part.replace("{}", name).format(**values) for part in (title, text))
            yield Document(f"{name}-{number}", title=next(filled), text=next(filled))


def _on_matters(matters: tuple[Matter, ...]) -> Iterator[Document]:
    for matter in matters:
        for number, text in enumerate(matter.texts):
            yield Document(_key(matter, number), text, matter.title)
        # the same matter as people note it down in passing
        yield Document(
            _key(matter, 2), f"Reminder on {matter.title.lower()}: {matter.texts[0]} Thank you.", "Reminder"
        )
        yield Document(
            _key(matter, 3), f"{matter.texts[1]} Questions go to facilities.", f"News: {matter.title}"
        )


def _question(
    names: list[str], products: tuple[Product, ...], matters: tuple[Matter, ...]
) -> tuple[list[Query], Judgements]:
    queries, judgements = [], {}
    for name, product in zip(names, products, strict=True):
        relevant = {f"{name}-{number}": 1 for number in range(len(GUISES))}
        explicit = (f"how do i get into {name}", f"{name} is down")
        for kind, texts in (("semantic", product.semantic), ("explicit", explicit)):
            for number, text in enumerate(texts):
                queries.append(Query(f"{kind}-{name}-{number}", text, kind))
                judgements[queries[-1].query_id] = relevant
    for matter in matters:
        queries.append(Query(f"control-{_key(matter, 0)}", matter.query, "control"))
        judgements[queries[-1].query_id] = {_key(matter, number): 1 for number in range(4)}
    return queries, judgements


def _key(matter: Matter, number: int) -> str:
    return f"{matter.title.lower().replace(' ', '-')}-{number}"


if __name__ == "__main__":
    main()
