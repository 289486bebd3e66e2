"""A text, what says the same, and what contradicts it: `triplets.jsonl`, which `triplets` and `labelled` learn from.

    {"anchor": "the boy plays the drum", "contradictions": ["the boy plays the flute"], "replaced": ["drum"]}
    {"anchor": "a boy plays", "entailment": "a child plays", "contradiction": "nobody plays"}

The first is what `sparse-adapt contradict` writes, where `replaced` names the words that each contradiction gave
others for; the second is an inference pair that somebody labelled. Either form may hold the fields of the other.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.addresses import reachable
from sparse_adapt.collection.lines import JsonLine, at_least_one, read_objects, write_objects


class Triplet(NamedTuple):
    """An anchor and its contradictions; without an entailment the anchor itself is what says the same."""

    anchor: str
    contradictions: tuple[str, ...]
    entailment: str = ""
    replaced: tuple[str, ...] = ()


def read_triplets(path: str | Path) -> Iterator[Triplet]:
    """Every triplet of a file. Raises InputError with the line where an anchor or its contradictions are missing."""
    place = reachable(path)
    for record in at_least_one(read_objects(place), place, "triplets"):
        anchor, contradictions = record.words("anchor"), _contradictions(record)
        for text in contradictions:
            if not text.strip():
                raise record.error("a contradiction is empty; fill it in or remove it")
            if _key(text) == _key(anchor):
                raise record.error("a contradiction is the anchor itself; remove it")
        entailment = record.words("entailment") if record.fields.get("entailment") is not None else ""
        yield Triplet(anchor, contradictions, entailment, record.strings("replaced"))


def _contradictions(record: JsonLine) -> tuple[str, ...]:
    if record.fields.get("contradiction") is not None:
        return (record.words("contradiction"), *record.strings("contradictions"))
    if "contradictions" not in record.fields:
        raise record.needs("a list of strings", "contradictions")
    found = record.strings("contradictions")
    if not found:
        raise record.error('"contradictions" is empty; fill it in or remove the line')
    return found


def write_triplets(path: str | Path, triplets: Iterable[Triplet]) -> int:
    """Write `triplets.jsonl`; says how many."""
    return write_objects(path, (_fields(each) for each in triplets))


def _fields(triplet: Triplet) -> dict[str, object]:
    fields: dict[str, object] = {"anchor": triplet.anchor}
    if triplet.entailment:
        fields["entailment"] = triplet.entailment
    fields["contradictions"] = list(triplet.contradictions)
    if triplet.replaced:
        fields["replaced"] = list(triplet.replaced)
    return fields


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()
