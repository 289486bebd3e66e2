"""The first page of help: every command on one screen, in panels: a line each, but for those of research."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException

from sparse_adapt.cli.console import show
from sparse_adapt.registry import registry

if TYPE_CHECKING:
    from typer._click import Command as ClickCommand
    from typer._click import Context, HelpFormatter, Parameter

HEADING, COMMAND = "bold", "cyan"
SHOWN_BY_INSTALLING = "--show-completion"  # left out: no line of 80 columns has room for both
PLACED = (
    ("--corpus", "--collection"),
    ("--model",),
    ("--run",),
)  # options whose value a command may take by its place instead
WIDTH = 80  # of the page, in columns
MARGIN = 2  # spaces before a command's name, and after the longest


class Page(TyperGroup):
    """The group of all commands, whose help has no frames: one line a command fits on a screen.

    `panels`: the names of commands; `by_name`: panels that show names alone. A command is made when it is asked for.
    """

    panels: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    by_name: ClassVar[frozenset[str]] = frozenset()

    def summary(self, name: str) -> str:
        """What a command does, in a sentence."""
        raise NotImplementedError

    def made(self, name: str) -> TyperCommand:
        """A command that is made when it is asked for."""
        raise NotImplementedError

    def list_commands(self, ctx: "Context") -> list[str]:
        """The names in the order of the panels."""
        return [name for names in self.panels.values() for name in names]

    def get_command(self, ctx: "Context", cmd_name: str) -> "ClickCommand | None":
        """A command by its name."""
        if cmd_name in self.list_commands(ctx) and cmd_name not in self.commands:
            self.commands[cmd_name] = self.made(cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: "Context", args: list[str]
    ) -> "tuple[str | None, ClickCommand | None, list[str]]":
        """The command that the first word names. One that is none is told the nearest of all names."""
        if args and args[0] not in self.list_commands(ctx):
            for name in self.list_commands(ctx):
                self.get_command(ctx, name)
        try:
            return super().resolve_command(ctx, args)
        except TyperException as error:
            if missing := registry().missing:
                error.message += f" The plug-ins {', '.join(missing)} are missing: reinstall sparse-adapt."
            raise

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the page to standard output."""
        show(Text("\n").join(self._lines(ctx)))

    def _lines(self, ctx: "Context") -> Iterator[Text]:
        flags = " ".join(
            f"[{option.opts[0]}]" for option in self.params if option.opts[0] != SHOWN_BY_INSTALLING
        )
        yield Text(f"Usage: {ctx.command_path} [{ctx.help_option_names[0]}] {flags} COMMAND [OPTIONS]")
        yield from (Text(line) for line in (self.help or "").splitlines() if line)
        width = max(map(len, self.list_commands(ctx))) + MARGIN
        for panel, names in self.panels.items():
            yield Text(panel, style=HEADING)
            if panel in self.by_name:
                for line in textwrap.wrap(" ".join(names), WIDTH - MARGIN):
                    yield Text(" " * MARGIN).append(line, style=COMMAND)
                continue
            for name in names:
                summary = self.summary(name).rstrip(".")
                yield Text(" " * MARGIN).append(name.ljust(width), style=COMMAND).append(summary)
        if missing := registry().missing:
            yield Text(f"Missing plug-ins: {', '.join(missing)}; reinstall sparse-adapt for their commands")


class CorpusCommand(TyperCommand):
    """A command that takes a corpus by its place or as `--corpus`, and so a model and a run."""

    def get_params(self, ctx: "Context") -> "list[Parameter]":
        """Its options, of which those that are only there or not say no type."""
        params = super().get_params(ctx)
        for each in params:
            if isinstance(each, TyperOption) and each.is_flag and each.metavar is None:
                each.metavar = ""
        return params

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse the words of a command line."""
        return super().parse_args(ctx, self._placed(args))

    def _placed(self, words: Sequence[str]) -> list[str]:
        """The words with the value of an option of PLACED at its place, where a command has one."""
        places = {f"--{each.name}" for each in self.params if each.param_type_name == "argument"}
        named = next((flags for flags in PLACED if not places.isdisjoint(flags)), ())
        first: list[str] = []
        others: list[str] = []
        coming = iter(words)
        for word in coming:
            flag, equals, value = word.partition("=")
            if flag not in named:
                others.append(f"{self._own_name(flag)}{equals}{value}")
            elif equals:
                first.append(value)
            elif (following := next(coming, None)) is not None:
                first.append(following)
        return [*first, *others]

    def _own_name(self, flag: str) -> str:
        """What this command calls an option of PLACED; any other as it is. A collection is a corpus with judgements."""
        own = {name for each in self.params for name in each.opts}
        same = next((flags for flags in PLACED if flag in flags), ())
        return flag if flag in own else next((name for name in same if name in own), flag)
