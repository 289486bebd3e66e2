"""run.toml: any sequence of stages in one file.

    model = "splade-tiny"            # a folder, the alias or hub:owner/name
    corpus = "my-collection"         # a folder, a file, a bundled name or an ir_datasets id
    stages = ["extend", "warmup", "dictionary", "distill"]
    seed = 0
    preset = "default"

    [extend]
    terms = "terms.json"

    [warmup]
    steps = 300

    [dictionary]
    dictionary = "dictionary.jsonl"

    [dynamic]
    masking = "dynamic"

    [joint]
    pairs = "pairs.jsonl"

    [triplets]
    triplets = "triplets.jsonl"

    [labelled]
    labelled = "labelled.jsonl"

    [distill]
    candidates = "candidates.jsonl"
    weights = { kd = 0.5 }

Every key may be left out but the corpus. Paths are relative to the file; where the corpus is a folder that
holds `terms.json`, `dictionary.jsonl`, `pairs.jsonl`, ... under these names, they needn't be named. Unknown keys are
refused.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

import corpora
from sparse_adapt.collection.lines import read_lines
from sparse_adapt.collection.opening import readable
from sparse_adapt.collection.sources import READ_AS
from sparse_adapt.errors import ConfigError, InputError, first_line, unknown
from sparse_adapt.files.place import is_there
from sparse_adapt.pipeline.plan import (
    BASE_MODEL,
    Plan,
    files_for,
    first_error,
    has_preset,
    laid_over,
    merged,
    preset_of,
    presets,
    settings_of,
)
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.table import find_stage, stage_names, usual_stages

Keys = tuple[str, ...]
AnyModel = TypeVar("AnyModel", bound=BaseModel)


class Top(Settings):
    """The keys above the tables of the stages."""

    model: str = setting(
        BASE_MODEL, "Model to begin with: a folder, the alias splade-tiny or hub:owner/name."
    )
    corpus: str | None = setting(
        None, "Documents of the domain: a folder, a file or a name; a run needs one."
    )
    stages: list[str] | None = setting(
        None, "The stages in their order; by default those that the preset has."
    )
    seed: int | None = setting(
        None, "Seed of every stage that names none; by default each stage's own.", ge=0
    )
    preset: str = setting(
        "default",
        "Settings of every stage under one name: default, or the name of a published recipe. A stage of the run that "
        "has none under the name is refused.",
    )


def read_plan(path: str | Path, overrides: Mapping[str, object] | None = None) -> Plan:
    """The plan that a run file holds; `overrides` go before the settings of every stage that trains.

    Raises InputError where the file is no TOML, ConfigError with the line for a key or value that can't be.
    """
    file = TomlFile(path)
    known = stage_names()
    tables = {name: file.table(name) for name in known}
    top = file.validate(Top, file.content, (), also=known)
    stages = usual_stages(top.preset) if top.stages is None else tuple(top.stages)
    if not stages:
        file.fail(f"no stages; there are {', '.join(known)}", (), "stages")
    for name in stages:
        file.check_known("stage", name, known, "stages")
    file.check_known("preset", top.preset, presets(), "preset")
    for name in stages:
        if not has_preset(name, top.preset):
            file.fail(
                f"the stage {name} has no preset {top.preset!r}; it would take its defaults", (), "preset"
            )
    named = _named_files(file, tables)
    settings = _settings(file, tables, top, overrides or {})
    corpus = None if top.corpus is None else file.beside(top.corpus)
    inputs = {key: value for key, value in named.items() if value is not None}
    return Plan(
        model=file.beside(top.model),
        corpus=corpus,
        stages=stages,
        preset=top.preset,
        files=files_for(corpus, stages, inputs, str(path)),
        settings={name: each for name, each in settings.items() if name in stages},
    )


def _settings(
    file: "TomlFile", tables: Mapping[str, dict[str, object]], top: Top, overrides: Mapping[str, object]
) -> dict[str, Settings]:
    """The settings of every stage that has any."""
    seed = {} if top.seed is None else {"seed": top.seed}
    settings: dict[str, Settings] = {}
    for name, table in tables.items():
        stage = find_stage(name)
        preset = (
            top.preset if has_preset(name, top.preset) else "default"
        )  # of a stage that isn't carried out
        whole = laid_over(merged(preset_of(name, preset), seed if stage.trains else {}), table)
        checked = file.validate(stage.settings, whole, (name,), also=[each.key for each in stage.named])
        if stage.has_settings:
            own = laid_over(checked.model_dump(), overrides) if stage.trains else checked.model_dump()
            settings[name] = settings_of(name, preset, own)
    return settings


def _named_files(file: "TomlFile", tables: Mapping[str, dict[str, object]]) -> dict[str, str | None]:
    """The file that each key names, taken out of the tables. Raises ConfigError where two tables differ."""
    named: dict[str, str | None] = {}
    for name, table in tables.items():
        for each in find_stage(name).named:
            source, before = file.take(table, name, each.key), named.get(each.key)
            if source is not None and before is not None and source != before:
                file.fail(f"{each.key} is {before} for an earlier stage; a run has one", (name,), each.key)
            named[each.key] = source or before
    return named


class TomlFile:
    """A TOML file whose errors name the line."""

    def __init__(self, path: str | Path) -> None:
        self.path = readable(path)
        self.lines = [text for _, text in read_lines(path)]
        try:
            self.content = tomllib.loads("\n".join(self.lines) + "\n")
        except RecursionError as error:
            raise InputError(path, "broken TOML (nested too deep); write it anew") from error
        except tomllib.TOMLDecodeError as error:
            place = re.search(r" \(at line (\d+), column \d+\)$", str(error))
            reason = str(error).removesuffix(place[0] if place else " (at end of document)")
            line = int(place[1]) if place else max(1, len(self.lines))
            raise InputError(path, f"broken TOML ({reason}); mend this line", line=line) from error
        except ValueError as error:  # a whole number of thousands of digits
            raise InputError(path, f"broken TOML ({first_line(error)}); write it anew") from error

    def table(self, name: str) -> dict[str, object]:
        """The table of one stage, taken out of the content; empty where there is none."""
        table = self.content.pop(name, {})
        if not isinstance(table, dict):
            self.fail(f"needs a table [{name}] (found: {table!r})", (), name)
        return dict(table)

    def validate(
        self, kind: type[AnyModel], content: Mapping[str, object], table: Keys, also: Sequence[str]
    ) -> AnyModel:
        """The content of a table as settings. Raises ConfigError at the line of the first bad key."""
        try:
            return kind.model_validate(content)
        except ValidationError as error:
            where, problem = first_error(error, kind, also)
            self.fail(problem, (*table, *where[:-1]), where[-1])

    def check_known(self, what: str, name: str, known: Sequence[str], key: str) -> None:
        """Refuse a stage or a preset that doesn't exist."""
        if name not in known:
            self.fail(unknown(what, name, known), (), key)

    def take(self, table: dict[str, object], name: str, key: str) -> str | None:
        """The file that a stage's table names, as a path from here."""
        value = table.pop(key, None)
        if value is not None and not isinstance(value, str):
            self.fail(f"{key} needs a path in quotes (found: {value!r})", (name,), key)
        return None if value is None else self.beside(value)

    def beside(self, source: str) -> str:
        """A path relative to this file as one from here; names of models, corpora and data sets stay."""
        place = self.path.parent / Path(source).expanduser()
        if is_there(place):
            return str(place)
        is_path = source.startswith((".", "/", "~")) or source.endswith(READ_AS)
        return str(place) if is_path and source not in corpora.NAMES else source

    def fail(self, problem: str, table: Keys, key: str) -> NoReturn:
        """Raise ConfigError at the line that sets a key of a table."""
        where = f"[{'.'.join(table)}] " if table else ""
        line = next((number for number, keys in self._settings() if keys == (*table, key)), None)
        place = f"{self.path}:{line}" if line is not None else str(self.path)
        raise ConfigError(f"{place}: {where}{problem}")

    def _settings(self) -> Iterator[tuple[int, Keys]]:
        """Each line's number and the keys that it sets: as a table, alone, with dots, or inside braces."""
        inside: Keys = ()
        for number, text in enumerate(self.lines, start=1):
            header = re.match(r"\s*\[+([^\]]+)\]", text)
            if header:
                inside = _keys(header[1])
                yield number, inside
            elif "=" in text and not text.lstrip().startswith("#"):
                outer, _, value = text.partition("=")
                yield number, (*inside, *_keys(outer))
                for inner in re.findall(r"[{,]\s*([\w.-]+)\s*=", value):
                    yield number, (*inside, *_keys(outer), *_keys(inner))


def _keys(dotted: str) -> Keys:
    return tuple(part.strip(" \t\"'") for part in dotted.split("."))
