"""What a command gives back: one kind, which shows itself, is data, and has what was found as attributes."""

import copy
from functools import partial
from pathlib import Path

import pytest

from sparse_adapt.cli.commands import present
from sparse_adapt.report.results import Result, written
from sparse_adapt.report.sections import Section
from sparse_adapt.report.tables import Column, Table

ROWS = [{"word": "pod", "count": 2}, {"word": "node", "count": 1}]
TABLE = Table("", (Column("word", "word", "text"), Column("count", "count")), ROWS)


def test_entries_of_the_data_and_further_fields_are_attributes():
    made = Result("two words", {"count": 2, "words": "2"}, words=["pod", "node"], loaded=partial(list, "ab"))
    assert (made.count, made.words, made.loaded) == (2, ["pod", "node"], ["a", "b"])
    assert {"count", "words", "loaded", "to_frame"} <= {*dir(made)}
    assert copy.deepcopy(made).words == made.words
    with pytest.raises(AttributeError, match="'Result' object has no attribute 'terms'"):
        made.terms  # noqa: B018


@pytest.mark.plugins("pages")
def test_a_result_shows_itself_and_turns_into_rows():
    found = Result("two words", ROWS, [TABLE, "that is all"])
    assert repr(found) == "<Result: two words>" and found.to_frame()["count"].tolist() == [2, 1]
    assert ["pod", "2"] in [line.split() for line in str(found).split("\n")]
    assert "that is all" in found._repr_html_() and "pod" in found.page("words")
    assert str(Result("nothing", {})) == "nothing" and Result("nothing", {"count": 0}).rows() == [
        {"count": 0}
    ]
    sections = [Section("one", "One", []), Section("two", "Two", [])]
    assert Result("both", {}, sections).sections() == sections


def test_a_command_says_what_was_written_and_what_goes_on(capsys):
    present(written(Path("out"), "2 rows", ["sparse-adapt check out"], rows=2), json=False)
    said = capsys.readouterr()
    assert said.out == "" and "wrote out (2 rows)" in said.err and "sparse-adapt check out" in said.err
    present(Result("pods", ROWS, as_json=ROWS[:1]), json=True)
    assert '"pod"' in (said := capsys.readouterr().out) and "node" not in said
    with pytest.raises(SystemExit):
        present(Result("pods", ROWS, failed="no pod runs"), json=False)
