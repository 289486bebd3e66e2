"""A command, made of a function: options from its signature, help from its docstring, words from its result.

A function says what it takes (`api.options`) and gives back what a command shows: a result with tables and data, what
was written, and what goes on from here (`report.results`). Nothing heavy loads before the function runs.
"""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin

import typer
from typer.core import TyperCommand
from typer.main import get_command_from_info
from typer.models import CommandInfo

from sparse_adapt.api.checks import a_device, a_model_or_none, check_free_file
from sparse_adapt.api.options import Declared, Option, fixed_of, options_of, settings_of
from sparse_adapt.cli.console import show, show_json, then, wrote
from sparse_adapt.cli.page import CorpusCommand
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.registry import Command, registry
from sparse_adapt.report.messages import say

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from sparse_adapt.report.results import Shown

FAILED = 1  # exit status
MARKS = {int: "N", float: "X", str: "NAME"}
CHECKS = {"device": a_device, "labeller": a_model_or_none}  # of settings that name what may not be there


class OptionField(NamedTuple):
    """One option of a command: the name of its parameter, its type with what typer knows of it, its default."""

    name: str
    kind: Any
    default: Any = Parameter.empty

    def open(self) -> "OptionField":
        """The same option without a default; a switch is off."""
        return self if isinstance(self.default, bool) else self._replace(default=None)

    def in_panel(self, panel: str) -> "OptionField":
        """The same option in a panel of the help."""
        (option,) = self.kind.__metadata__
        option.rich_help_panel = panel
        return self


JSON = Option("Print JSON instead of tables.")


def command_of(row: Command) -> TyperCommand:
    """The command of a function."""
    function = row.function
    options = options_of(function)
    choices = [choice_of(each) for each in options.values()]
    for table in settings_of(function):
        fields = settings_choices(table.load(), table.names, table.panel, table.without)
        choices += [each.open() if table.of_stages else each for each in fields]
    if "json" not in options and inspect.signature(function).return_annotation is not None:
        choices.append(choice_of(Declared("json", bool, JSON, False)))

    def carry_out(context: typer.Context, arguments: Mapping[str, object]) -> None:
        _carry_out(function, context, arguments)

    return typer_command(row.name, "\n\n".join(paragraphs_of(function)[:2]), choices, carry_out)


def typer_command(
    name: str,
    description: str,
    choices: Sequence[OptionField],
    carry_out: Callable[[typer.Context, Mapping[str, object]], None],
) -> TyperCommand:
    """A command that has these options; `carry_out` gets its context and their values."""

    def callback(invocation: typer.Context, **arguments: object) -> None:
        carry_out(invocation, arguments)

    choices = [OptionField("invocation", typer.Context), *choices]
    callback.__doc__ = description
    callback.__annotations__ = {each.name: each.kind for each in choices}
    callback.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.kind)
            for each in choices
        ]
    )
    info = CommandInfo(name=name, callback=callback, cls=CorpusCommand)
    made = get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode="rich")
    return cast(TyperCommand, made)


def paragraphs_of(function: Callable[..., object]) -> list[str]:
    """The first paragraphs of a docstring, up to what is for Python alone: the first is a command's summary."""
    return inspect.cleandoc(inspect.unwrap(function).__doc__ or "").split("\n\n")


# -- options ----------------------------------------------------------------------------------------


def choice_of(declared: Declared) -> OptionField:
    """A declared option as typer has it."""
    option = declared.option
    kind: Any = declared.kind if declared.kind is not Path else str
    description = option.help
    if option.choices:
        description += f" Choose {', '.join(option.choices)}."
    shown: str | bool = option.shown or True
    named: dict[str, Any] = {"help": description, "show_default": shown, "metavar": option.metavar or None}
    named |= {"rich_help_panel": option.panel or None}
    needed = declared.default is Parameter.empty and not declared.optional
    default = Parameter.empty if needed else declared.default
    if declared.many and not option.commas:
        kind = list[kind]
    if default in (Parameter.empty, None, ()) and not needed:
        kind, default = kind | None, None
    if option.place:
        return OptionField(declared.name, Annotated[kind, typer.Argument(**named)], default)
    flags = (option.flag or declared.flag).split()
    if kind is bool:
        named["metavar"] = None
    return OptionField(declared.name, Annotated[kind, typer.Option(*flags, **named)], default)


def settings_choices(
    kind: "type[BaseModel]", names: Sequence[str] = (), panel: str = "", without: Collection[str] = ()
) -> Iterator[OptionField]:
    """An option for each key of a table of settings, or for those named."""
    for name, field in kind.model_fields.items():
        if name not in without and (name in names or (not names and _is_simple(field))):
            yield _setting(name, field, panel)


def _is_simple(field: "FieldInfo") -> bool:
    """Whether a key's value is one word, or a table of numbers."""
    kind = _scalar(field.annotation)
    return kind in (bool, *MARKS) or hasattr(kind, "model_fields")


def _setting(name: str, field: "FieldInfo", panel: str) -> OptionField:
    """The option of one setting; those of a table within are given as KEY=VALUE, any number of times."""
    name = _extra(field, "option") or name
    kind, flag, description = _scalar(field.annotation), f"--{name.replace('_', '-')}", _describe(name, field)
    in_panel: dict[str, Any] = {"rich_help_panel": panel or None}
    if kind is bool:
        flags = f"{flag}/--no-{name.replace('_', '-')}" if field.default else flag
        return OptionField(
            name, Annotated[bool, typer.Option(flags, help=description, **in_panel)], field.default
        )
    if kind in MARKS:
        shown = _extra(field, "shown") or True
        option = typer.Option(
            flag,
            metavar=MARKS[kind],
            help=description,
            show_default=shown,
            callback=_checking(CHECKS[name]) if name in CHECKS else None,
            **in_panel,
        )
        return OptionField(name, Annotated[kind | None, option], field.default)
    keys = ", ".join(
        key if each.default is None else f"{key} {each.default:g}" for key, each in kind.model_fields.items()
    )
    option = typer.Option(
        flag, metavar="KEY=VALUE", help=f"{description} Keys, with their defaults: {keys}.", **in_panel
    )
    return OptionField(name, Annotated[list[str] | None, option], None)


def _checking(check: Callable[[str], object]) -> Callable[[typer.Context, str | None], str | None]:
    def callback(context: typer.Context, value: str | None) -> str | None:
        if (
            value is not None and not context.resilient_parsing
        ):  # where a shell completes a line, nothing is checked
            check(value)
        return value

    return callback


def _scalar(annotation: object) -> Any:  # noqa: ANN401 - a type
    """The type of what is written on a command line: that of a choice is its names', None counts for nothing."""
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (each for each in get_args(annotation) if each is not NoneType)
    return str if get_origin(annotation) is Literal else annotation


def _describe(name: str, field: "FieldInfo") -> str:
    """What a setting means, its choices where it has some, and its unit where its description leaves it out."""
    description, unit = field.description or "", _extra(field, "unit")
    if get_origin(field.annotation) is Literal:
        description += f" Choose {', '.join(map(str, get_args(field.annotation)))}."
    if unit and unit.casefold() not in f"{name} {description}".casefold():
        description += f" Unit: {unit}."
    return description


def _extra(field: "FieldInfo", key: str) -> str:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return str(extra.get(key, ""))


# -- values -----------------------------------------------------------------------------------------


def is_given(context: typer.Context, option: str) -> bool:
    """Whether an option stands on the command line."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def settings_given(context: typer.Context, names: Sequence[str]) -> dict[str, object]:
    """The settings that stand on the command line, under their own names."""
    values = {name: context.params[name] for name in names if is_given(context, name)}
    return {
        name: _table(name, value) if isinstance(value, list | tuple) else value
        for name, value in values.items()
    }


def _table(name: str, words: Sequence[str]) -> dict[str, object]:
    """Settings of a table within, from words such as anchor=20."""
    flag, table = f"--{name.replace('_', '-')}", dict[str, object]()
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(f"{flag} {word}: write KEY=VALUE, with the name of a key before =")
        try:
            table[key.strip()] = float(value)
        except ValueError as error:
            raise ConfigError(f"{flag} {word}: {value!r} is no number") from error
    return table


def _carry_out(function: Callable[..., object], context: typer.Context, arguments: Mapping[str, Any]) -> None:
    """Check what stands on the command line, call the function, and show what it gives back."""
    values = fixed_of(function)
    for name, each in options_of(function).items():
        value = _value(each, arguments[name])
        each.check(value, each.flag)
        values[name] = value
    html = None if arguments.get("html") is None else Path(arguments["html"])
    check_free_file(None if html is None else Place(html, overwrite=True), "page")
    own = [name for name in arguments if name not in values and name != "json"]
    values |= settings_given(context, own)
    if "progress" in inspect.signature(function).parameters:
        values["progress"] = True
    result = inspect.unwrap(function)(**values)
    if result is not None:
        present(result, json=bool(arguments.get("json")), html=html)


def _value(declared: Declared, value: Any) -> Any:  # noqa: ANN401 - of any option
    """The value of an option as its function takes it."""
    if value is None:
        return () if declared.default == () else None
    if not declared.many:
        return value
    words = [value] if isinstance(value, str) else value
    if declared.option.commas:
        words = [part.strip() for word in words for part in word.split(",") if part.strip()]
    return tuple(words)


# -- what is said -----------------------------------------------------------------------------------


def present(result: object, *, json: bool, html: Path | None = None) -> None:
    """Print a result, say what was written, write its pages, and say what to run next."""
    from sparse_adapt.report.results import Shown

    if not isinstance(result, Shown):
        return
    if json:
        show_json(result.printed())
    elif not result.quiet:
        show(result.renderable())
    for note in result.notes:
        say(note)
    for place, contents in result.wrote:
        wrote(place, contents)
    if result.run_folder is not None:
        page_of(result.run_folder)
    if html is not None:
        _write_page(result, html)
    if result.failed:
        say(f"error: {result.failed}")
        raise SystemExit(FAILED)
    then(result.then)


def page_of(folder: Path) -> None:
    """Write the page of a run that has just ended, and say where it is."""
    from sparse_adapt.files.processes import is_main
    from sparse_adapt.report.progress import Bars

    if not is_main() or "run" not in registry().all_of("renderers"):
        return
    with Bars() as bars:
        place = registry().find("renderers", "run")(folder, bars.count)
    if place is not None:
        wrote(place, "a page to open in a browser")


def _write_page(result: "Shown", place: Path) -> None:
    from sparse_adapt.files.writing import write_text

    write_text(place, result.page(result.heading or result.headline, result.lead))
    wrote(place, "a page to open in a browser")
