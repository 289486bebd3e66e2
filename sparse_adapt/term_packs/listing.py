"""Term packs as a table: those of a model, or the one in a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparse_adapt.model.folder import ModelFolder
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.term_packs.held import read_held
from sparse_adapt.term_packs.pack import Header, read_pack

COLUMNS = (
    Column("name", "pack", "text"),
    Column("terms", "terms", "token"),
    Column("taught", "taught by", "text"),
    Column("author", "made by", "text"),
    Column("at", "when", "text"),
    Column("base", "base model", "text"),
)

Named = tuple[str, Header]
"""A pack's name and its header."""


def packs_of(source: str | Path) -> list[Named]:
    """The packs of a model in their order, none where it holds none; or the one in a file."""
    if Path(source).is_file():
        pack = read_pack(source)
        return [(pack.name, pack.header)]
    held = read_held(ModelFolder.of(source).path)
    return [] if held is None else [(Path(each.file).stem, each.header) for each in held.packs]


def rows_of_packs(packs: Sequence[Named]) -> list[Row]:
    """A row a pack."""
    return [
        {
            "name": name,
            "terms": ", ".join(token.term for token in header.tokens),
            "taught": taught_by(header),
            "author": header.made.author,
            "at": header.made.at[:10],
            "base": header.base.hub_id or header.base.name,
        }
        for name, header in packs
    ]


def tabulate(packs: Sequence[Named]) -> Table:
    """Each pack: its terms, what taught them, who made it and when, and which base model it fits."""
    return Table("", COLUMNS, rows_of_packs(packs))


def taught_by(header: Header) -> str:
    """The stages that taught a pack's terms, in words."""
    told = [
        f"{each['stage']} ({each['steps']:,} steps)" if "steps" in each else str(each["stage"])
        for each in header.made.stages
    ]
    return ", ".join(told) or "nothing that a record tells of"


def to_plain(packs: Sequence[Named]) -> list[dict[str, Any]]:
    """Every header, under its pack's name, as plain values."""
    return [{"name": name, **header.model_dump(mode="json")} for name, header in packs]
