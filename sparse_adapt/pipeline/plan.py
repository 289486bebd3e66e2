"""What a run is to do: stages in their order, the settings of each, the files that they read.

A plan has nothing left to assume. It comes from a run file (`runfile.py`) or from a corpus that brings all of
its files along, and is written beside the results as a run file again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from sparse_adapt import config
from sparse_adapt.collection.sources import beside
from sparse_adapt.errors import ConfigError, unknown
from sparse_adapt.pipeline import presets
from sparse_adapt.stages import USUAL

SETTINGS: dict[str, type[config.Training]] = {
    "behaviour": config.Behaviour,
    "warmup": config.Warmup,
    "dictionary": config.Dictionary,
    "dynamic": config.Dynamic,
    "joint": config.Joint,
    "contrast": config.Contrast,
    "triplets": config.Triplets,
    "labelled": config.Triplets,
    "distill": config.Distill,
}
PRESETS = ("default", "plain", "corpus")
BASE_MODEL = "splade-tiny"
NEED_CORPUS = ("behaviour", "warmup", "dynamic", "joint", "contrast", "distill")
IGNORE_CORPUS = ("extend", "triplets", "labelled")


class Reads(NamedTuple):
    """A file that a stage needs: its key in the stage's table, its name in a corpus folder.

    Stages with the same key read the same file.
    """

    stage: str
    key: str
    file: str


FILES = (
    Reads("extend", "terms", "terms.json"),
    Reads("dictionary", "dictionary", "dictionary.jsonl"),
    Reads("joint", "pairs", "pairs.jsonl"),
    Reads("contrast", "pairs", "pairs.jsonl"),
    Reads("triplets", "triplets", "triplets.jsonl"),
    Reads("labelled", "labelled", "labelled.jsonl"),
    Reads("distill", "candidates", "candidates.jsonl"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Stages in their order and all that they need."""

    model: str
    corpus: str | None
    stages: tuple[str, ...]
    preset: str
    files: Mapping[str, str]  # by key: terms, dictionary, pairs, triplets, ...
    settings: Mapping[str, config.Training]  # by stage, for those that train


def make_plan(
    corpus: str | None,
    *,
    model: str = BASE_MODEL,
    stages: Sequence[str] = USUAL,
    preset: str = "default",
    overrides: Mapping[str, Any] | None = None,
) -> Plan:
    """A plan without a run file: the corpus brings the files; `overrides` are for every stage that trains."""
    settings = {name: settings_for(name, preset, overrides) for name in stages if name in SETTINGS}
    files = files_for(corpus, stages, {}, str(corpus))
    return Plan(
        model=model, corpus=corpus, stages=tuple(stages), preset=preset, files=files, settings=settings
    )


def settings_for(
    stage: str, preset: str = "default", overrides: Mapping[str, Any] | None = None
) -> config.Training:
    """Settings of a stage that trains: a preset's, but for what differs. Raises ConfigError for bad ones."""
    try:
        return SETTINGS[stage].model_validate(merged(preset_of(stage, preset), overrides or {}))
    except ValidationError as error:
        raise ConfigError(f"{stage}: {first_error(error, SETTINGS[stage])[1]}") from error


def preset_of(stage: str, preset: str) -> dict[str, Any]:
    """What a preset holds for one stage, as keys and values."""
    if preset not in PRESETS:
        raise ConfigError(unknown("preset", preset, PRESETS))
    return presets.preset(preset)[stage].model_dump()


def files_for(
    corpus: str | None, stages: Sequence[str], named: Mapping[str, str], place: str
) -> dict[str, str]:
    """What each stage reads beside the corpus: the file that is named, or else that of the corpus folder.

    Raises ConfigError, with `place` before it, for a file or a corpus that a stage needs and nobody names.
    """
    files = {}
    for row in FILES:
        if row.stage not in stages:
            continue
        held = None if corpus is None else beside(corpus, row.file)
        if row.key not in named and held is None:
            where = "no corpus is named" if corpus is None else f"{corpus} is no folder with {row.file}"
            advice = f'add {row.key} = "FILE" under [{row.stage}]'
            raise ConfigError(f"{place}: the stage {row.stage} needs {row.key}, and {where}; {advice}")
        files[row.key] = named.get(row.key) or str(held)
    for stage in NEED_CORPUS:
        if corpus is None and stage in stages:
            raise ConfigError(f'{place}: the stage {stage} needs a corpus; add corpus = "FOLDER"')
    return files


def plan_text(plan: Plan) -> str:
    """The plan as a run file that reads back as the same plan, whatever the defaults will be by then."""
    lines = [f"model = {_toml(_absolute(plan.model))}"]
    if plan.corpus is not None:
        lines.append(f"corpus = {_toml(_absolute(plan.corpus))}")
    lines += [f"stages = {_toml(plan.stages)}", f"preset = {_toml(plan.preset)}"]
    for name in dict.fromkeys(plan.stages):
        fields = {row.key: _absolute(plan.files[row.key]) for row in FILES if row.stage == name}
        settings = plan.settings[name].model_dump(mode="json") if name in plan.settings else {}
        lines += ["", f"[{name}]"]
        lines += [
            f"{key} = {_toml(value)}" for key, value in (fields | settings).items() if value is not None
        ]
    return "\n".join(lines) + "\n"


def _absolute(source: str) -> str:
    return str(Path(source).resolve()) if Path(source).exists() else source


def _toml(value: object) -> str:
    """A value as TOML writes it; JSON's strings, numbers and lists are TOML's too."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


# -- what settings and their errors are made of ---------------------------------------------------


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Settings laid over others, tables within them too."""
    both = dict(under)
    for key, value in over.items():
        below = both.get(key)
        both[key] = (
            merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
        )
    return both


def first_error(
    error: ValidationError, kind: type[BaseModel], also: Sequence[str] = ()
) -> tuple[tuple[str, ...], str]:
    """The keys that lead to the first thing wrong, and what it is. `also` are further right keys."""
    first = error.errors()[0]
    where = tuple(part for part in first["loc"] if isinstance(part, str))
    if first["type"] == "extra_forbidden":
        for part in where[:-1]:
            inner = kind.model_fields[part].annotation
            assert isinstance(inner, type) and issubclass(inner, BaseModel), where
            kind = inner
        return where, unknown("key", where[-1], (*kind.model_fields, *also))
    problem = first["msg"].removeprefix("Input ")
    found = json.dumps(first["input"], default=str, ensure_ascii=False)[:60]
    return where, f"{where[-1]} {problem} (found: {found})"
