"""The two pages that are written from the code: every command, and every setting.

    python tools/pages.py FOLDER        writes commands.md and settings.md

`make docs` does it before each build, so that a page can't say what the code doesn't.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeGuard, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from sparse_adapt.cli.app import every_command
from sparse_adapt.pipeline.runfile import Top
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.registry import registry
from sparse_adapt.stages.table import find_stage, trained
from sparse_adapt.synthetic.queries import QuerySettings
from sparse_adapt.teachers.settings import CandidateSettings
from sparse_adapt.training.settings import Training

BOUNDS = {annotated_types.Ge: "≥", annotated_types.Gt: ">", annotated_types.Le: "≤", annotated_types.Lt: "<"}
OTHERS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("adapt", AdaptSettings),
    ("Synthetic queries", QuerySettings),
    ("Candidates", CandidateSettings),
)
OF_RESEARCH = (  # of a plug-in that a checkout may lack
    ("A suite file", "SuiteFile"),
    ("A row of a suite", "SuiteRanker"),
    ("A collection of a suite", "SuiteCollection"),
    ("Groups of texts of a suite", "SuiteGroups"),
)
COMMANDS_HEAD = """# Commands

This page is written from the program: `sparse-adapt COMMAND --help` says the same. Data goes to standard
output, words and progress to standard error. A mistake of yours is one line that names the place, the problem and
the next step, with exit status 2.

`MODEL` is a model folder, the alias `splade-tiny` or `hub:owner/name`. `CORPUS` is a BEIR folder or its
`corpus.jsonl`, a JSONL or TSV file, the name of a bundled corpus (`gatrocraptic`, `coined`) or an `ir_datasets` id.
"""
SETTINGS_HEAD = """# Settings

This page is written from the settings in the code. A key stands under its table in `run.toml` (`[distill]`,
`steps = 300`); [formats](formats.md) shows whole files. Options of the command line go before the file, and the
file goes before the defaults. A key that doesn't exist is refused, with the nearest that does.

`auto` means that the stage settles the value itself, from the number of queries and of new [terms](glossary.md#term).
"""


def write(folder: Path) -> None:
    """Write both pages, each only where it changed, so that a build needn't read it again."""
    for name, text in (("commands.md", commands()), ("settings.md", settings())):
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


# -- commands --------------------------------------------------------------------------------------


def commands() -> str:
    """The page of commands: a table of all by panel, then each with its options; what is missing is named."""
    panels, parts = every_command(), [COMMANDS_HEAD]
    if missing := registry().missing:
        parts.append(f"Missing plug-ins: {', '.join(missing)}; reinstall sparse-adapt for their commands.\n")
    for panel, rows_of_panel in panels.items():
        rows = [
            f"| [`{name}`](#{name}) | {_cell(_first_sentence(each.help))} |"
            for name, each in rows_of_panel.items()
        ]
        parts.append("\n".join([f"| {panel} | |", "| --- | --- |", *rows, ""]))
    for panel, rows_of_panel in panels.items():
        parts.append(f"## {panel}\n")
        parts += [_command(name, each) for name, each in rows_of_panel.items()]
    return "\n".join(parts)


def _command(name: str, command: Any) -> str:  # noqa: ANN401 - a class that typer keeps to itself
    arguments = [each for each in command.params if not each.opts[0].startswith("-")]
    options = [each for each in command.params if each not in arguments]
    usage = " ".join(["sparse-adapt", name, *map(_metavar_of, arguments), "[OPTIONS]"])
    lines = [f"### {name}\n", _paragraphs(command.help), "", "```text", usage, "```", ""]
    if command.params:
        lines += ["| option | does | by default |", "| --- | --- | --- |"]
        lines += [_option(each) for each in [*arguments, *options]]
    return "\n".join([*lines, ""])


def _option(option: Any) -> str:  # noqa: ANN401
    is_argument = not option.opts[0].startswith("-")
    names = _metavar_of(option) if is_argument else ", ".join([*option.opts, *option.secondary_opts])
    if not is_argument and not getattr(option, "is_flag", False):
        names += f" {_metavar_of(option)}"
    return f"| `{names}` | {_cell(option.help or '')} | {_default_of(option)} |"


def _default_of(option: Any) -> str:  # noqa: ANN401
    """What an option is if nobody gives it; nothing for a switch that is off."""
    if option.required:
        return "needed"
    value = getattr(option.default, "value", option.default)
    if isinstance(value, bool):
        return "on" if value else ""
    return "" if value in (None, "", (), []) else f"`{value}`"


def _metavar_of(option: Any) -> str:  # noqa: ANN401
    kind = getattr(option.type_descriptor.annotation, "__name__", "value")
    return str(option.metavar or {"int": "NUMBER", "float": "NUMBER", "Path": "PATH"}.get(kind, kind.upper()))


def _first_sentence(text: str | None) -> str:
    return re.split(r"(?<=\.)\s", (text or "").strip())[0]


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(" ".join(part.split()) for part in (text or "").split("\n\n"))


# -- settings --------------------------------------------------------------------------------------


def settings() -> str:
    """The page of settings: what stands above the tables, what all stages share, then each stage's own."""
    parts = [SETTINGS_HEAD, _section("A run file", Top), _section("Every stage that trains", Training)]
    for name in trained():
        stage = find_stage(name)
        parts += [f"## {name}\n", _doc(stage.settings), "", "Beside what every stage has:\n"]
        parts += [_table(stage.settings, beside=Training)]
        parts += [_preset(name, keys) for name, keys in stage.presets.items()]
    parts += [_section(title, kind) for title, kind in (*OTHERS, *_of_research())]
    return "\n".join(parts)


def _of_research() -> Iterator[tuple[str, type[BaseModel]]]:
    """The settings of the plug-in research, where this checkout has it."""
    if find_spec("sparse_adapt.plugins") is not None:
        module = import_module("sparse_adapt.plugins.research.suite.settings")
        yield from ((title, getattr(module, name)) for title, name in OF_RESEARCH)


def _section(title: str, kind: type[BaseModel]) -> str:
    return "\n".join([f"## {title}\n", _doc(kind), "", _table(kind)])


def _preset(name: str, keys: Mapping[str, Any]) -> str:
    """What a preset sets, in a sentence."""
    flat = dict(_flat(keys))
    if not flat:
        return f"The preset `{name}` has these defaults.\n"
    return f"The preset `{name}` sets {', '.join(f'`{key} = {json.dumps(each)}`' for key, each in flat.items())}.\n"


def _flat(keys: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in keys.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", each) for key, each in _flat(value))
        else:
            yield name, value


def fields(kind: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Every key of a table with what is known of it; `weights.kd` for a table within."""
    for name, field in kind.model_fields.items():
        inner = next(
            (each for each in (field.annotation, *get_args(field.annotation)) if _is_table(each)), None
        )
        if inner is None or field.default is None:  # a table that is settled later is a key as well
            yield name, field
        if inner is not None:
            yield from ((f"{name}.{key}", each) for key, each in fields(inner))


def _is_table(kind: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _table(kind: type[BaseModel], beside: type[BaseModel] | None = None) -> str:
    """A row a key; without those that are as in another table."""
    known = {} if beside is None else {name: _row(name, field) for name, field in fields(beside)}
    rows = [_row(name, field) for name, field in fields(kind)]
    head = ["| key | by default | unit | allowed | meaning |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *(row for row in rows if row not in known.values()), ""])


def _row(name: str, field: FieldInfo) -> str:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    meaning = f"{_sentence(field.description or '')} {extra.get('source', '')}"
    cells = [f"`{name}`", _default(field), str(extra.get("unit", "")), _allowed(field), _cell(meaning)]
    return f"| {' | '.join(cells)} |"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("." if text and not text.endswith(".") else "")


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "needed"
    if value is None or value == "":
        return "auto"
    return f"`{json.dumps(value)}`"


def _allowed(field: FieldInfo) -> str:
    choices = [each for part in (field.annotation, *get_args(field.annotation)) for each in _choices(part)]
    if choices:
        return ", ".join(f'`"{each}"`' for each in dict.fromkeys(choices))
    bounds = [
        f"{sign} {getattr(bound, kind.__name__.lower()):g}"
        for bound in field.metadata
        for kind, sign in BOUNDS.items()
        if isinstance(bound, kind)
    ]
    return ", ".join(bounds)


def _choices(part: object) -> tuple[str, ...]:
    return get_args(part) if get_origin(part) is Literal else ()


def _doc(kind: type[BaseModel]) -> str:
    return _paragraphs(kind.__doc__)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
