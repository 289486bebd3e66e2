"""The first page of help: every command on one screen, a line each, in panels."""

from typing import TYPE_CHECKING

from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from sparse_adapt.cli.console import show
from sparse_adapt.cli.options import EARLIER, PLACED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typer._click import Context, HelpFormatter

HEADING, COMMAND = "bold", "cyan"
MARGIN = 2  # spaces before a command's name, and after the longest


class Page(TyperGroup):
    """The group of all commands, whose help has no frames: one line a command fits on a screen."""

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the page to standard output."""
        show(Text("\n").join(self._lines(ctx)))

    def _lines(self, ctx: "Context") -> "Iterator[Text]":
        yield Text(f"Usage: {ctx.command_path} COMMAND [OPTIONS]")
        yield Text("")
        yield from (Text(line) for line in (self.help or "").splitlines() if line)
        width = max(map(len, self.list_commands(ctx))) + MARGIN
        for panel, commands in self._panels(ctx).items():
            yield Text(panel, style=HEADING)
            for name, summary in commands:
                yield Text(" " * MARGIN).append(name.ljust(width), style=COMMAND).append(summary)
        flags = [*ctx.help_option_names, *(flag for option in self.params for flag in option.opts)]
        yield Text("Options", style=HEADING).append(f": {', '.join(flags)}", style="none")

    def _panels(self, ctx: "Context") -> "dict[str, list[tuple[str, str]]]":
        """Names and summaries of the commands under their panels, in the order of the commands."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            assert isinstance(command, TyperCommand), name
            summary = (command.help or "").strip().split("\n\n")[0].replace("\n", " ").rstrip(".")
            panels.setdefault(str(command.rich_help_panel), []).append((name, summary))
        return panels


class Command(TyperCommand):
    """A command that takes older spellings of its options, and a corpus by its place or as `--corpus`."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse the words of a command line, spelt as they are now."""
        return super().parse_args(ctx, self._placed(self._respelt(args)))

    def _respelt(self, words: "Sequence[str]") -> list[str]:
        now = EARLIER.get(self.name or "", {})
        respelt = []
        for word in words:
            flag, equals, value = word.partition("=")
            respelt.append(f"{now[flag]}{equals}{value}" if flag in now else word)
        return respelt

    def _placed(self, words: "Sequence[str]") -> list[str]:
        """The words with the value of `--corpus` or `--collection` at its place, where a command has one for it."""
        if not any(each.param_type_name == "argument" and f"--{each.name}" in PLACED for each in self.params):
            return list(words)
        first: list[str] = []
        others: list[str] = []
        coming = iter(words)
        for word in coming:
            flag, equals, value = word.partition("=")
            if flag not in PLACED:
                others.append(word)
            elif equals:
                first.append(value)
            elif (following := next(coming, None)) is not None:
                first.append(following)
        return [*first, *others]
