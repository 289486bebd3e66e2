"""One table, three readings; tokens are never markup."""

import io
import json

import pytest
from rich.console import Console

from sparse_adapt.report.tables import (
    Column,
    Table,
    formatted,
    tabulate_evaluation,
    to_json,
    to_markdown,
)
from sparse_adapt.report.terminal import bar, to_rich

AWKWARD = ["[unused12]", "[pad]", "##ing", "[/bold]", "a|b", "`", "_init_", "*", ":smile:"]


def shown(renderable, width: int = 100, colour: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=colour)
    console.print(renderable)
    return console.file.getvalue()


@pytest.fixture
def table() -> Table:
    columns = (
        Column("token", "token", "token"),
        Column("weight", "weight", decimals=2, bar=True),
        Column("time", "time", unit="s", decimals=1),
        Column("share", "share", "share", decimals=1),
    )
    rows = [
        {"token": token, "weight": 0.5 * number, "time": 1234.56, "share": 0.125}
        for number, token in enumerate(AWKWARD)
    ]
    return Table("Weights of [pad]", columns, rows, "a note on [unused12]")


def test_terminal_shows_every_token_as_it_is(table):
    text = shown(to_rich(table))
    for token in AWKWARD:
        assert any(line.split()[0] == token for line in text.splitlines() if line.strip()), token
    assert "Weights of [pad]" in text
    assert "a note on [unused12]" in text
    assert "time (s)" in text and "1,234.6" in text and "12.5 %" in text


def test_bars_are_in_proportion(table):
    lines = [line for line in shown(to_rich(table, bar_width=16)).splitlines() if "1,234.6" in line]
    assert [line.count("█") for line in lines] == [0, 2, 4, 6, 8, 10, 12, 14, 16]


def test_bar_by_hand():
    assert bar(1.0, 4.0, width=4).plain == "█"
    assert bar(2.5, 4.0, width=4).plain == "██▌"
    assert bar(1e-9, 4.0, width=4).plain == "▏"  # something is never drawn as nothing
    assert bar(9.0, 4.0, width=4).plain == "████"
    assert bar(-1.0, 4.0).plain == bar(0.0, 4.0).plain == bar(1.0, 0.0).plain == ""


def test_json_keeps_numbers_and_fields_without_a_column(table):
    rows = [{"token": "[pad]", "weight": 1 / 3, "semantic": None}]
    assert json.loads(json.dumps(to_json(Table("", table.columns, rows)))) == rows


def test_markdown_escapes_what_would_be_syntax(table):
    lines = to_markdown(table).splitlines()
    assert lines[0] == "| token | weight | time (s) | share |"
    assert lines[1] == "| --- | ---: | ---: | ---: |"
    assert lines[2] == r"| <code>\[unused12\]</code> | 0.00 | 1,234.6 | 12.5 % |"
    assert r"<code>a\|b</code>" in lines[6]
    assert all(line.replace(r"\|", "").count("|") == 5 for line in lines)


def test_formats():
    assert formatted(None, Column("x", "x")) == "-"
    assert formatted(True, Column("x", "x")) == "yes"
    assert formatted(-0.5, Column("x", "x", decimals=2, signed=True)) == "-0.50"
    assert formatted(0.5, Column("x", "x", decimals=2, signed=True)) == "+0.50"
    assert formatted(0.999, Column("x", "x", "share", decimals=0)) == "100 %"
    assert formatted(1234567, Column("x", "x")) == "1,234,567"


def test_evaluation_table():
    figures = {"ndcg@10": 0.5, "nonzero_document": 120.0}
    half = {name: value / 2 for name, value in figures.items()}
    compared = {
        "model": figures,
        "baseline": half,
        "difference": half,
        "p_value": dict.fromkeys(figures, 0.01),
        "adjusted": dict.fromkeys(figures, 0.02),
    }
    table = tabulate_evaluation({**compared, "kinds": {"semantic": compared}, "queries": []})
    assert [(row["kind"], row["measure"], row["difference"]) for row in table.rows] == [
        ("all", "ndcg@10", 0.25),
        ("all", "nonzero_document", 60.0),
        ("semantic", "ndcg@10", 0.25),
        ("semantic", "nonzero_document", 60.0),
    ]
    text = shown(to_rich(table))
    assert "+0.250" in text and "0.0200" in text and "randomisation" in text
    alone = tabulate_evaluation({"model": figures, "queries": []})
    assert [column.key for column in alone.columns] == ["measure", "model"]


# -- narrow terminals -------------------------------------------------------------------------------


def wide_table(columns: int) -> Table:
    named = [Column("token", "token", "token"), Column("words", "what it is", "text")]
    named += [
        Column(f"n{number}", f"number {number} of them", decimals=3, bar=number == 0)
        for number in range(columns)
    ]
    rows = [
        {
            "token": f"term{row}ofthelongkind",
            "words": "a long text about a term",
            **{f"n{n}": 1234.5 + n for n in range(columns)},
        }
        for row in range(3)
    ]
    return Table(
        "Title",
        tuple(named),
        rows,
        "a note that is longer than the table is wide, as notes often are in here",
    )


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("columns", [1, 4, 9])
def test_nothing_is_cut_however_narrow_the_terminal(width, columns):
    text = shown(to_rich(wide_table(columns)), width)
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    for number in range(columns):
        assert text.count(f"{1234.5 + number:,.3f}") == 3


def test_a_table_with_room_keeps_its_bars_and_one_without_loses_them_first(table):
    assert "█" in shown(to_rich(table), 60)
    narrow = shown(to_rich(table), 45)
    assert "█" not in narrow
    assert narrow.count("1,234.6") == len(AWKWARD)
    assert "12.5 %" in narrow


def test_a_table_without_any_room_is_a_list(table):
    lines = shown(to_rich(table), 24).splitlines()
    assert [line.split() for line in lines if line.startswith("time")] == [["time", "(s)", "1,234.6"]] * len(
        AWKWARD
    )
