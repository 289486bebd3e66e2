"""What a run is to do: stages in their order, the settings of each, the files that they read.

A plan has nothing left to assume. It comes from a run file (`runfile.py`) or from a corpus that brings all of
its files along, and is written beside the results as a run file again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ValidationError

from sparse_adapt.collection.sources import file_beside
from sparse_adapt.errors import ConfigError, unknown
from sparse_adapt.files.place import absolute, portable
from sparse_adapt.files.records import toml
from sparse_adapt.settings import AUTO, Settings
from sparse_adapt.stages.table import find_stage, stage_names, usual_stages
from sparse_adapt.training.settings import Training

BASE_MODEL = "splade-tiny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Stages in their order and all that they need."""

    model: str
    corpus: str | None
    stages: tuple[str, ...]
    preset: str
    files: Mapping[str, str]  # by key: terms, dictionary, pairs, triplets, ...
    settings: Mapping[str, Settings]  # by stage, for those that have any

    @property
    def trained(self) -> dict[str, Training]:
        """The settings of the stages that train."""
        return {name: each for name, each in self.settings.items() if isinstance(each, Training)}

    def files_of(self, stage: str) -> dict[str, str]:
        """What a stage is given to read, by the keys of its inputs: the files that are named, and the corpus."""
        stage_row, files = find_stage(stage), {}
        if self.corpus is not None and any(each.key == "corpus" for each in stage_row.reads):
            files["corpus"] = self.corpus
        return files | {each.key: self.files[each.key] for each in stage_row.named if each.key in self.files}


def make_plan(
    corpus: str | None,
    *,
    model: str = BASE_MODEL,
    stages: Sequence[str] | None = None,
    preset: str = "default",
    overrides: Mapping[str, object] | None = None,
) -> Plan:
    """A plan without a run file: the corpus brings the files; `overrides` are for every stage that trains."""
    stages = usual_stages(preset) if stages is None else tuple(stages)
    settings = {
        name: settings_in_run(name, preset, overrides) for name in stages if find_stage(name).has_settings
    }
    files = files_for(corpus, stages, {}, str(corpus))
    return Plan(model=model, corpus=corpus, stages=stages, preset=preset, files=files, settings=settings)


def settings_in_run(stage: str, preset: str, overrides: Mapping[str, object] | None) -> Settings:
    """Settings of a stage where `overrides` are for every stage that trains."""
    return settings_of(stage, preset, overrides if find_stage(stage).trains else None)


def settings_for(
    stage: str, preset: str = "default", overrides: Mapping[str, object] | None = None
) -> Training:
    """Settings of a stage that trains: a preset's, but for what differs. Raises ConfigError for bad ones."""
    settings = settings_of(stage, preset, overrides)
    assert isinstance(settings, Training), stage
    return settings


def settings_of(
    stage: str, preset: str = "default", overrides: Mapping[str, object] | None = None
) -> Settings:
    """Settings of any stage: a preset's, but for what differs. Raises ConfigError for bad ones."""
    kind: type[Settings] = find_stage(stage).settings
    try:
        return kind.model_validate(laid_over(preset_of(stage, preset), overrides or {}))
    except ValidationError as error:
        raise ConfigError(f"{stage}: {first_error(error, kind)[1]}") from error


def presets() -> tuple[str, ...]:
    """The names of the presets of all stages."""
    named = [name for stage in map(find_stage, stage_names()) for name in stage.presets]
    return ("default", *dict.fromkeys(named))


def preset_of(stage: str, preset: str) -> dict[str, object]:
    """What a preset holds for one stage, as keys and values.

    Raises ConfigError for a preset that no stage has, or that this one lacks.
    """
    if preset not in presets():
        raise ConfigError(unknown("preset", preset, presets()))
    wanted = find_stage(stage)
    if not has_preset(stage, preset):
        there = ", ".join(("default", *wanted.presets))
        raise ConfigError(f"{stage}: has no preset {preset!r}, so that its defaults would be taken ({there})")
    settings: Settings = wanted.settings.model_validate(wanted.presets.get(preset, {}))
    return settings.model_dump()


def has_preset(stage: str, preset: str) -> bool:
    """Whether a stage has settings under a name; those of a stage that trains nothing are the same under each."""
    wanted = find_stage(stage)
    return preset == "default" or preset in wanted.presets or not wanted.trains


def files_for(
    corpus: str | None, stages: Sequence[str], named: Mapping[str, str], place: str
) -> dict[str, str]:
    """What each stage reads beside the corpus: the file that is named, or else that of the corpus folder.

    Raises ConfigError, with `place` before it, for a file or a corpus that a stage needs and nobody names.
    """
    files = {}
    for name in stage_names():
        for each in find_stage(name).named if name in stages else ():
            beside = None if corpus is None or not each.needed else file_beside(corpus, each.file)
            source = named.get(each.key) or beside
            if source is None and each.needed:
                where = "no corpus is named" if corpus is None else f"{corpus} is no folder with {each.file}"
                advice = f'add {each.key} = "FILE" under [{name}]'
                raise ConfigError(f"{place}: the stage {name} needs {each.key}, and {where}; {advice}")
            if source is not None:
                files[each.key] = str(source)
    for name in stages:
        if corpus is None and find_stage(name).needs_corpus:
            raise ConfigError(f'{place}: the stage {name} needs a corpus; add corpus = "FOLDER"')
    return files


def plan_text(plan: Plan, folder: Path | None = None, home: Path | None = None) -> str:
    """The plan as a run file that reads back as the same plan, whatever the defaults will be by then.

    What lies in the `folder` of the file, or in the run `home` that the folder is part of, is named from there.
    """

    def named(source: str) -> str:
        return absolute(source) if folder is None else portable(source, folder, home or folder)

    lines = [f"model = {toml(named(plan.model))}"]
    if plan.corpus is not None:
        lines.append(f"corpus = {toml(named(plan.corpus))}")
    lines += [f"stages = {toml(plan.stages)}", f"preset = {toml(plan.preset)}"]
    for name in dict.fromkeys(plan.stages):
        fields = {
            each.key: named(plan.files[each.key]) for each in find_stage(name).named if each.key in plan.files
        }
        settings = plan.settings[name].model_dump(mode="json") if name in plan.settings else {}
        lines += ["", f"[{name}]"]
        written = {key: AUTO if value is None else value for key, value in (fields | settings).items()}
        lines += [f"{key} = {toml(value)}" for key, value in written.items()]
    return "\n".join(lines) + "\n"


# -- what settings and their errors are made of ---------------------------------------------------


def merged(under: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """Settings laid over others, tables within them too."""
    both = dict(under)
    for key, value in over.items():
        below = both.get(key)
        both[key] = (
            merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
        )
    return both


def laid_over(settings: Mapping[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """Settings of a stage with those that are given: a number of steps that is given goes before epochs that aren't."""
    if own.get("steps") is not None and "epochs" not in own:
        own = {**own, "epochs": None}
    return merged(settings, own)


def first_error(
    error: ValidationError, kind: type[BaseModel], also: Sequence[str] = ()
) -> tuple[tuple[str, ...], str]:
    """The keys that lead to the first thing wrong, and what it is. `also` are further right keys."""
    first = error.errors()[0]
    where = tuple(part for part in first["loc"] if isinstance(part, str))
    if first["type"] == "extra_forbidden":
        for part in where[:-1]:
            inner = kind.model_fields[part].annotation
            kinds = [inner, *get_args(inner)]  # a table that may be left out is one of two
            kind = next(each for each in kinds if isinstance(each, type) and issubclass(each, BaseModel))
        return where, unknown("key", where[-1], (*kind.model_fields, *also))
    problem = first["msg"].removeprefix("Input ")
    value = json.dumps(first["input"], default=str, ensure_ascii=False)[:60]
    return where, f"{where[-1]} {problem} (found: {value})"
