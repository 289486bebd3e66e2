"""The table at the end of an adaptation: what was tried, what was kept, what it costs."""

from collections.abc import Mapping, Sequence
from typing import Any

from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.report.watching import duration

COLUMNS = (
    Column("kept", "", "text"),
    Column("name", "model", "text"),
    Column("ndcg@10", "nDCG@10", decimals=4),
    Column("difference", "to base", decimals=4, signed=True),
    Column("p_value", "p", decimals=3),
    Column("recall@100", "recall@100", decimals=4),
    Column("nonzero_document", "non-zeros", decimals=1),
    Column("nonzero_query", "a query", decimals=1),
)


def tabulate(report: Mapping[str, Any]) -> Table:
    """Every model that was tried on the queries set aside, the base model first, the kept one marked."""
    choice = report["adapt"]["choice"]
    rows: Sequence[Row] = [
        {**row, "kept": "*" if place == choice["kept"] else ""} for place, row in enumerate(choice["tried"])
    ]
    found = "who finds what the teacher does; non-zeros a document; * kept"
    note = f"on {choice['queries']:,} made-up queries set aside: {found}"
    return Table("", COLUMNS, rows, note)


def verdict(report: Mapping[str, Any]) -> list[str]:
    """In words: terms, time and memory, whether anything was gained, and what has to be encoded again."""
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
        added,
        f"{duration(found['seconds'])}, {found['peak_memory'] / 2**30:.1f} GiB of memory at the most",
    ]
    if choice["kept"] == 0:
        lines.append(
            "nothing tried ranks the queries set aside better than the base model, so that is what is kept"
        )
    else:
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
