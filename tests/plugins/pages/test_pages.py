"""The pages that are written from the code hold what the code holds."""

import re
from typing import Literal

import pytest
from typer.testing import CliRunner

from sparse_adapt.cli.app import app, every_command
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.table import find_stage, trained
from sparse_adapt.training.settings import Training
from tools import pages

COMMANDS = {name: each for found in every_command().values() for name, each in found.items()}


def section(page, name):
    """A page from one heading to the next of its rank or above."""
    rank = re.search(rf"^(#+) {re.escape(name)}$", page, re.MULTILINE)
    assert rank, name
    return re.split(rf"^#{{2,{len(rank[1])}}} ", page[rank.end() :], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_page_and_help_say_the_same_of_a_command(name):
    shown = section(pages.commands(), name)
    result = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "2000", "TERM": "dumb"})
    told = " ".join(result.output.split())
    for option in COMMANDS[name].params:
        for spelt in (each for each in option.opts if each.startswith("-")):
            assert spelt in told
            assert spelt in shown
        assert " ".join(option.help.split()) in told
        assert pages._cell(option.help) in shown


@pytest.mark.parametrize("name", trained())
def test_page_of_settings_has_every_key_of_a_stage(name):
    page = pages.settings()
    own, shared = section(page, name), section(page, "Every stage that trains")
    for key, _ in pages.fields(find_stage(name).settings):
        assert f"| `{key}` |" in own or f"| `{key}` |" in shared


@pytest.mark.parametrize(
    "kind", [Training, *(kind for _, kind in pages.OTHERS)], ids=lambda kind: kind.__name__
)
def test_every_key_is_explained(kind):
    assert [name for name, field in pages.fields(kind) if not field.description] == []


@pytest.mark.parametrize("name", trained())
def test_every_key_of_a_stage_is_explained(name):
    assert [key for key, field in pages.fields(find_stage(name).settings) if not field.description] == []


def test_a_row_says_default_unit_bounds_and_source():
    class Inner(Settings):
        kd: float = setting(0.05, "Distance to the teacher.", ge=0)

    class Table(Settings):
        rate: float = setting(3e-5, "How fast it learns.", unit="a step", source="Kingma 2014", gt=0, le=1)
        count: int | None = setting(None, "How many | at most.")
        form: Literal["a", "b"] = setting("a", "Which form.")
        weights: Inner = Inner()

    assert pages._table(Table).splitlines()[2:] == [
        "| `rate` | `3e-05` | a step | > 0, ≤ 1 | How fast it learns. Kingma 2014 |",
        "| `count` | auto |  |  | How many \\| at most. |",
        '| `form` | `"a"` |  | `"a"`, `"b"` | Which form. |',
        "| `weights.kd` | `0.05` |  | ≥ 0 | Distance to the teacher. |",
    ]


def test_a_preset_is_told_key_by_key():
    told = pages._preset("published", {"steps": 200, "kd": "mse", "weights": {"kd": 1.0, "rank": 0.0}})
    assert pages._preset("published", {}) == "The preset `published` has these defaults.\n"
    assert told.startswith('The preset `published` sets `steps = 200`, `kd = "mse"`, `weights.kd = 1.0`, ')


def test_pages_are_written_only_where_they_changed(tmp_path):
    pages.write(tmp_path)
    before = (tmp_path / "settings.md").stat().st_mtime_ns
    (tmp_path / "commands.md").write_text("old", encoding="utf-8")
    pages.write(tmp_path)
    assert (tmp_path / "settings.md").stat().st_mtime_ns == before
    assert (tmp_path / "commands.md").read_text(encoding="utf-8") == pages.commands()
