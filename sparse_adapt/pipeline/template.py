"""A run file or a suite file to fill in: every key with its meaning, its unit and its default, commented out.

sparse-adapt run --template > run.toml
"""

import json
import textwrap
from collections.abc import Iterator, Sequence

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sparse_adapt.files.records import toml
from sparse_adapt.pipeline.runfile import Top
from sparse_adapt.settings import AUTO, Settings
from sparse_adapt.stages.table import every_stage, find_stage, usual_stages

WIDTH = 100  # characters of a line


def run_template() -> str:
    """A run file with the usual stages, and every stage's inputs and settings. It runs once its corpus is named."""
    lines = [
        "# A run file: sparse-adapt run FILE. Every key has its default; take the sign # away to set another.",
        "# Paths are relative to this file.",
        "",
        "# The corpus: a folder, a file, a bundled name or an ir_datasets id.",
        'corpus = "gatrocraptic"',
        "",
        *keys(Top, without=("corpus",)),
    ]
    for row in every_stage():
        stage = find_stage(row.name)
        used = "" if row.name in usual_stages() else " Add it to stages first."
        lines += ["", *comment(f"{row.summary}{used}"), f"[{row.name}]"]
        for each in stage.needs:
            lines += [*comment(f"A file: {each.description}."), f"# {each.key} = {json.dumps(each.file)}"]
        lines += keys(stage.settings)
    return "\n".join(lines) + "\n"


def keys(kind: type[Settings], without: Sequence[str] = ()) -> Iterator[str]:
    """Every key of a table: what it means in a comment, then its default, commented out."""
    for name, field in kind.model_fields.items():
        if name not in without:
            yield from comment(_meaning(field))
            default = field.get_default(call_default_factory=True)
            if isinstance(default, Settings):  # the weights of a stage: what each term is
                for key, weight in type(default).model_fields.items():
                    yield from comment(f"- {key}: {_meaning(weight)}")
            if default is None and kind.may_be_auto(name):
                default = AUTO
            yield f"# {name} = {'' if default is None else toml(_plain(default))}".rstrip()


def comment(text: str) -> list[str]:
    """A text as lines of a comment."""
    return [f"# {line}" for line in textwrap.wrap(text, WIDTH - 2)]


def _plain(default: object) -> object:
    return default.model_dump() if isinstance(default, BaseModel) else default


def _meaning(field: FieldInfo) -> str:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    unit = f" Unit: {extra['unit']}." if extra.get("unit") else ""
    meaning = (field.description or "").strip()
    return f"{meaning[:1].upper()}{meaning[1:]}{'' if meaning.endswith('.') else '.'}{unit}"
