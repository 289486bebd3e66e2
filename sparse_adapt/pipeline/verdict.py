"""The table at the end of an adaptation: what was tried, what was kept, what it costs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparse_adapt.pipeline.evidence import KNOWN_ITEMS, Evidence
from sparse_adapt.pipeline.keeps import keeps_lines
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.report.watching import duration
from sparse_adapt.retrieve.keeping import MAY_LOSE, MEANT

COLUMNS = (
    Column("kept", "", "text"),
    Column("name", "model", "text"),
    Column("ndcg@10", "nDCG@10", decimals=4),
    Column("difference", "to base", decimals=4, signed=True),
    Column("p_value", "p", decimals=3),
    Column("recall@100", "recall@100", decimals=4),
    Column("nonzero_document", "non-zeros", decimals=1),
    Column("nonzero_query", "of a query", decimals=1),
)


def tabulate(report: Mapping[str, Any]) -> Table:
    """Every model that was tried on the queries set aside, the base model first, the kept one marked."""
    choice = report["adapt"]["choice"]
    rows: Sequence[Row] = [
        {**row, "kept": "*" if place == choice["kept"] else ""} for place, row in enumerate(choice["tried"])
    ]
    return Table("", COLUMNS, rows, " ".join(_note(choice)))


def _note(choice: Mapping[str, Any]) -> Iterator[str]:
    """What the table measures, and what the names of its models mean."""
    yield f"Measured on {choice['queries']:,} made-up queries that were set aside. nDCG@10: how high a model ranks the"
    yield "ten documents that the teacher scores best. p: how likely chance alone makes such a difference to the base"
    yield "model. non-zeros: tokens with a weight, of a document and of a query. *: the model that is kept."
    ways = {str(row["weighed"]) for row in choice["tried"]}
    if any(row["back"] for row in choice["tried"]):
        yield "at 50%: half of what the last stage changed is kept."
    if "idf" in ways:
        yield "with idf: rare tokens count for more."
    if any(way.startswith("factors") for way in ways):
        yield "with factors: each token counts as much as was learnt; the smaller the power, the less they differ."


def verdict(report: Mapping[str, Any]) -> list[str]:
    """In words: what falls that the base model knew, if anything does; terms, time, gain, what to encode again."""
    found = report["adapt"]
    choice = found["choice"]
    kept, base = choice["tried"][choice["kept"]], choice["tried"][0]
    added = (
        f"{found['terms']:,} terms added"
        if found["terms"]
        else "no terms added: the vocabulary stays as it is"
    )
    if found["terms"] and kept["name"].startswith("base"):
        added = f"{found['terms']:,} terms tried, none added: the base model's own vocabulary ranks better"
    lines = [
        *_first(choice),
        *keeps_lines(found.get("keeps", {}), list(_falls(choice))),
        *_shown(choice),
        added,
        f"{duration(found['seconds'])}, {found['peak_memory'] / 2**30:.1f} GiB of memory at the most",
    ]
    if choice["kept"] != 0:
        longer = kept["nonzero_document"] / max(1e-9, base["nonzero_document"]) - 1
        lines.append(
            f"kept: {kept['name']}, nDCG@10 {base['ndcg@10']:.3f} -> {kept['ndcg@10']:.3f} on made-up queries, "
            f"documents {longer:+.0%} non-zeros; judge by queries of your own"
        )
    if found["frozen"]:
        count = found["documents_with_a_new_term"]
        lines.append(
            f"encode again the {count:,} documents that hold a new term: their ids are in reencode.txt"
        )
    elif choice["kept"] != 0:
        lines.append("weights have changed: encode every document again")
    return lines


def _first(choice: Mapping[str, Any]) -> Iterator[str]:
    """That the base model is kept, and why."""
    if choice["kept"] == 0:
        refused = choice.get("refused")
        best = choice["tried"][choice.get("best", 0)]["name"]
        why = (
            f"{best} shows {refused}" if refused else "no model ranks the queries that were set aside better"
        )
        yield f"the base model is kept, as it was: {why}"


def _falls(choice: Mapping[str, Any]) -> Iterator[str]:
    """What falls on made-up queries, whatever is gained beside it."""
    kept, base = choice["tried"][choice["kept"]], choice["tried"][0]
    if kept["recall@100"] < base["recall@100"] - MAY_LOSE:
        yield f"recall@100 of made-up queries {base['recall@100']:.3f} -> {kept['recall@100']:.3f}"
    for row in (Evidence(**row) for row in choice.get("evidence", ())):
        if row.kind != KNOWN_ITEMS and (
            row.most < 0.0 or (row.kind == MEANT and row.model < row.base - MAY_LOSE)
        ):
            yield f"nDCG@10 of {row.kind} {row.base:.3f} -> {row.model:.3f}"


def _shown(choice: Mapping[str, Any]) -> Iterator[str]:
    """What was gained by each kind of evidence, and how many terms are found where they are meant."""
    rows = [Evidence(**row) for row in choice.get("evidence", ())]
    if rows:
        yield f"gains without a label, and how far chance goes: {'; '.join(map(str, rows))}"
    for row in choice.get("evidence", ()):
        if row["kind"] == MEANT:
            lit = choice["meaning"]["lit"]
            yield (
                f"{lit:.0%} of {MEANT} light their term first; they find its documents with nDCG@10 "
                f"{row['base']:.3f} -> {row['model']:.3f}"
            )
