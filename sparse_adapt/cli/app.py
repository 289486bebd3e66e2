"""The command line as a whole: its panels, and how every command begins and ends."""

import os
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from errno import ENAMETOOLONG
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, ClassVar, cast

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException
from typer.main import get_command

from sparse_adapt.api.options import WITH, options_of, settings_of
from sparse_adapt.cli.commands import command_of, paragraphs_of
from sparse_adapt.cli.page import Page
from sparse_adapt.cli.stages import stage_command
from sparse_adapt.errors import ConfigError, SparseAdaptError
from sparse_adapt.files.writing import FULL, reason_of
from sparse_adapt.heap import return_large_blocks
from sparse_adapt.registry import Command, registry
from sparse_adapt.report.messages import forget_unread, say, tell_unread
from sparse_adapt.report.printable import is_unicode
from sparse_adapt.stages.table import every_stage, find_stage

STAGE_ROWS = {row.name: row for row in every_stage()}
API = "sparse_adapt.api"
OF_CORE: Mapping[str, tuple[Command | str, ...]] = {  # by their panels; a stage stands by its name
    "Start": (
        Command("demo", f"{API}.running:demo"),
        Command("words", f"{API}.words:add_words"),
        Command("adapt", f"{API}.adapting:adapt"),
        Command("check", f"{API}.checking:check"),
    ),
    "Prepare": (
        Command("terms", f"{API}.terms:mine_terms"),
        *(Command(name, f"{API}.preparing:{name}") for name in ("queries", "candidates", "pairs")),
    ),
    "Stages": (
        *(row.name for row in STAGE_ROWS.values() if not row.is_research),
        Command("run", f"{API}.running:run"),
    ),
    "Share": (Command("push", f"{API}.pushing:push"),),
    "Understand": (
        Command("diagnose", f"{API}.insight:diagnose_either"),
        Command("explain", f"{API}.insight:look_for"),
        Command("evaluate", "sparse_adapt.cli.measuring:evaluate_or_save"),
        Command("verify", f"{API}.checking:verify"),
        Command("calibrate", f"{API}.calibrating:calibrate"),
    ),
    "Search": (
        Command("encode", f"{API}.indexing:encode"),
        Command("search", f"{API}.searching:search"),
    ),
    "Engines": (),
    "Research": tuple(row.name for row in STAGE_ROWS.values() if row.is_research),
}


def _panels() -> dict[str, tuple[Command | str, ...]]:
    """All commands by their panels: the core's, then those of plug-ins."""
    panels = {panel: [*rows] for panel, rows in OF_CORE.items()}
    for row in registry().commands.values():
        panels.setdefault(row.panel, []).append(row)
    return {panel: tuple(rows) for panel, rows in panels.items() if rows}


PANELS = _panels()
ROWS = {each.name: each for rows in PANELS.values() for each in rows if isinstance(each, Command)}
MISTAKE, INTERRUPTED, TERMINATED = 2, 130, 143  # exit status


def command_names() -> tuple[str, ...]:
    """The names of all commands in the order of the help."""
    return tuple(name for names in Commands.panels.values() for name in names)


class Commands(Page):
    """All commands in their panels. Those of stages are made when they are asked for."""

    panels: ClassVar[Mapping[str, tuple[str, ...]]] = {
        panel: tuple(each if isinstance(each, str) else each.name for each in commands)
        for panel, commands in PANELS.items()
    }
    by_name: ClassVar[frozenset[str]] = frozenset({"Research"})

    def summary(self, name: str) -> str:
        """What a command does, in a sentence."""
        return STAGE_ROWS[name].summary if name in STAGE_ROWS else paragraphs_of(ROWS[name].function)[0]

    def made(self, name: str) -> TyperCommand:
        """The command of a row: of a function, or of a stage."""
        return command_of(ROWS[name]) if name in ROWS else stage_command(STAGE_ROWS[name])


app = typer.Typer(
    name="sparse-adapt",
    cls=Commands,
    help="Teach a SPLADE model the words of your domain. Start with: sparse-adapt demo",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    if wanted:
        from sparse_adapt import __version__

        typer.echo(f"sparse-adapt {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None: ...


def every_command() -> dict[str, dict[str, TyperCommand]]:
    """The commands of each panel under their names, as typer has them, those of stages too."""
    group = cast(Commands, get_command(app))
    context = typer.Context(group)
    return {
        panel: {name: cast(TyperCommand, group.get_command(context, name)) for name in names}
        for panel, names in Commands.panels.items()
    }


def main() -> None:
    """Entry point: a user's error is one line and exit 2; a bug keeps its traceback."""
    return_large_blocks()
    _write_any_sign()
    with _terminating() as terminated:
        try:
            _check_words(sys.argv[1:])
            forget_unread()
            status = app(standalone_mode=False, prog_name="sparse-adapt")
            tell_unread()
            sys.stdout.flush()
        except SparseAdaptError as error:
            say("error: " + " ".join(str(error).splitlines()))
            raise SystemExit(MISTAKE) from error
        except TyperException as error:
            if error.format_message():  # none where help was all that could be shown
                said = " ".join(error.format_message().split()).rstrip(".")
                say(f"error: {said}{_places(error)}; see {_help()}")
            raise SystemExit(MISTAKE) from error
        except OSError as error:
            if error.errno == ENAMETOOLONG:
                say("error: a name is longer than the file system takes; check the paths")
            elif error.errno in FULL and error.filename is None:
                _let_go_of_output()
                say(
                    "error: standard output can't be written: the disk is full; free some space and run it again"
                )
            else:
                say(f"error: {reason_of(error)}; see to the disk and run it again")
            raise SystemExit(MISTAKE) from error
        except (MemoryError, RuntimeError) as error:
            if not _lacks_memory(error):
                raise
            bounded = "; --memory, such as 8G, bounds it" if _takes_bound(sys.argv[1:]) else ""
            say(f"error: out of memory{bounded}; {_interrupted(sys.argv[1:])}")
            raise SystemExit(MISTAKE) from error
    if status == INTERRUPTED:
        say(_interrupted(sys.argv[1:]))
        raise SystemExit(TERMINATED if terminated else INTERRUPTED)


def _write_any_sign() -> None:
    """Have consoles that lack a sign show its number."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _check_words(words: list[str]) -> None:
    """Raise ConfigError for a word that isn't Unicode, unless it is the path of something."""
    for word in words:
        if not is_unicode(word) and not Path(word).exists():
            raise ConfigError(
                f"{word!r} isn't {sys.getfilesystemencoding()}; check how the terminal writes it"
            )


def _let_go_of_output() -> None:
    """Have Python forget what it couldn't write, which it would try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@contextmanager
def _terminating() -> Iterator[list[int]]:
    """Have SIGTERM end a command as Ctrl-C does; the list holds the signal once it has come."""
    received: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


def _places(error: TyperException) -> str:
    """What stands behind the command, in order, where one of several things is missing: MODEL CORPUS."""
    context = getattr(error, "ctx", None)
    if getattr(getattr(error, "param", None), "param_type_name", "") != "argument" or context is None:
        return ""
    places = [each for each in context.command.params if each.param_type_name == "argument"]
    named = " ".join(str(each.name).upper() for each in places)
    return f" of {context.info_name} {named}" if len(places) > 1 else ""


def _help() -> str:
    named = [word for word in sys.argv[1:2] if word in command_names()]
    return shlex.join(["sparse-adapt", *named, "--help"])


def _lacks_memory(error: MemoryError | RuntimeError) -> bool:
    """Whether an error is Python's, or torch's of a processor or of a card, for want of memory."""
    said = str(error)
    return isinstance(error, MemoryError) or "can't allocate memory" in said or "out of memory" in said


def _takes_bound(words: list[str]) -> bool:
    """Whether a command has the option --memory."""
    if not words or words[0] not in command_names():
        return False
    if words[0] in STAGE_ROWS:
        return find_stage(words[0]).trains
    return any("memory" in table.names for table in settings_of(ROWS[words[0]].function))


def _interrupted(words: list[str]) -> str:
    """What a command leaves that was stopped, and how to go on."""
    if not words or words[0] not in command_names() or not _resumable(words):
        return "stopped; nothing was written"
    again = words if "--resume" in words else [*words, "--resume"]
    return f"stopped; go on with: {shlex.join(['sparse-adapt', *again])}"


def _resumable(words: list[str]) -> bool:
    """Whether a command takes --resume; where that stands in a panel `With --x`, whether --x is given."""
    if words[0] in STAGE_ROWS:
        return True
    resume = options_of(ROWS[words[0]].function).get("resume")
    if resume is None:
        return False
    needed = resume.option.panel.removeprefix(WITH)
    return not needed or any(word.partition("=")[0] == needed for word in words)
