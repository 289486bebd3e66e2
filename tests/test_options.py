"""An option is declared once, in a signature: the command, its help, the page and what is refused follow from it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.exceptions import TyperException

from sparse_adapt.api.options import Model, Option, Options, Out, Words, declared, options_of
from sparse_adapt.cli.commands import command_of
from sparse_adapt.errors import ConfigError, InputError, ModelError
from sparse_adapt.registry import Command
from sparse_adapt.report.results import Result, written
from tools import pages

ROW = Command("polish", f"{__name__}:polish")


@declared
def polish(
    model: Model,
    what: Words,
    out: Out,
    *,
    shine: Annotated[float, Option("How much it shines.", ge=0, le=5)] = 2.0,
    colour: Annotated[Literal["red", "blue"], Option("In which colour.")] = "red",
    parts: Annotated[Sequence[str], Option("Which parts.", metavar="A,B", commas=True)] = (),
    often: Annotated[int | None, Option("How often.", "-n --times", ge=1)] = None,
    secret: int = 3,
    **more: Annotated[int | None, Options({"grain": Option("How fine.", ge=10)})],
) -> Result:
    """Polish a model. It takes a while.

    What is polished shines.

    Python alone reads on.
    """
    given = {"shine": shine, "colour": colour, "parts": list(parts), "often": often, "secret": secret, **more}
    return written(Path(out), "all of it", ["sparse-adapt demo"], **given)


def ran(*words: str) -> Any:
    command = command_of(ROW)
    with typer.Context(command):
        return command.invoke(
            command.make_context("polish", ["what it is", "--model", "splade-tiny", *words])
        )


def test_a_line_in_a_signature_is_an_option_of_the_command_its_help_and_its_page(capsys):
    """All of them know `--shine`, of which the signature above has the one declaration."""
    (option,) = [each for each in command_of(ROW).params if "--shine" in each.opts]
    assert (option.default, option.help) == (2.0, "How much it shines.")
    with pytest.raises(typer.Exit):
        ran("--help")
    shown = " ".join(capsys.readouterr().out.split())
    assert "How much it shines." in shown and "Polish a model. It takes a while." in shown
    assert "What is polished shines." in shown and "Python alone" not in shown and "secret" not in shown
    page = pages._command("polish", command_of(ROW))
    assert "| `--shine NUMBER` | How much it shines. | `2.0` |" in page
    assert "Choose red, blue." in page and "| `-n, --times NUMBER` | How often. |  |" in page


def test_values_of_a_command_line_reach_the_function(capsys):
    ran("-o", "x", "--shine", "3", "--parts", "a, b", "-n", "2", "--grain", "12", "--json")
    said = capsys.readouterr()
    found = {"shine": 3.0, "colour": "red", "parts": ["a", "b"], "often": 2, "secret": 3, "grain": 12}
    assert json.loads(said.out) == {"path": "x", "contents": "all of it", **found}
    assert said.err.splitlines() == ["wrote x (all of it)", "next:", "  sparse-adapt demo"]


ODD = {
    "shine": [
        (None, "should be a number"),
        (-1, "greater than or equal to 0"),
        ("much", "a number"),
        (9, "less"),
    ],
    "colour": [("rde", "did you mean 'red'"), (3, "should be a string")],
    "often": [(0, "greater than or equal to 1"), (1.5, "a whole number"), (True, "a whole number")],
    "out": [(None, "a path"), (3, "a path")],
    "what": [(None, "a string"), (["a query"], "a string"), (5, "a string"), (" ", "is empty")],
    "model": [(None, "a path, a name or a Model"), (5, "a Model"), ("./nowhere", "no such model folder")],
    "grain": [(3, "greater than or equal to 10")],
    "grian": [(3, "unknown option 'grian'")],
}


@pytest.mark.parametrize(
    ("name", "value", "problem"), [(name, value, told) for name, odd in ODD.items() for value, told in odd]
)
def test_an_odd_value_is_refused_before_the_function_runs(name, value, problem):
    given = {"model": "splade-tiny", "what": "it", "out": "x", name: value}
    with pytest.raises((ConfigError, InputError, ModelError), match=problem):
        polish(**given)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--shine", "-1"], "--shine should be greater than or equal to 0"),
        (["--colour", "rde"], "unknown --colour 'rde'; did you mean 'red'"),
        (["--times", "0"], "--times should be greater than or equal to 1"),
        (["--grain", "3"], "--grain should be greater than or equal to 10"),
    ],
)
def test_a_command_refuses_the_same_by_the_name_that_was_typed(words, problem):
    with pytest.raises(ConfigError, match=problem):
        ran("-o", "x", *words)


def test_what_may_be_none_may_be_left_out_and_the_rest_is_needed():
    found = options_of(polish)
    assert (found["model"].optional, found["often"].optional, found["often"].flag) == (False, True, "--times")
    with pytest.raises(TyperException, match="Missing"):
        ran()
