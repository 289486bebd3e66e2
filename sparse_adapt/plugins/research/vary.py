"""How much a result depends on one setting: a plan carried out once for each value of it.

OUT/1-extend/, 2-warmup/   the stages before the varied one, made once
OUT/value-0/3-distill/     what follows with the plan's own value; value-1 and so on with the others
OUT/vary.json              the measures of each last model, and their change against the plan's own value
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, NotRequired, TypedDict, cast

from pydantic import ValidationError

from sparse_adapt.collection.readers import read_documents
from sparse_adapt.errors import ConfigError, unknown
from sparse_adapt.files.place import Place
from sparse_adapt.files.processes import common_folder, is_main
from sparse_adapt.files.steps import Step, carry_out, check_request
from sparse_adapt.files.writing import write_json
from sparse_adapt.model.folder import ModelFolder, of_model
from sparse_adapt.pipeline.plan import Plan, first_error, laid_over
from sparse_adapt.pipeline.run import (
    Listener,
    check_files,
    read_by,
    run_stage,
    stage_folder,
)
from sparse_adapt.selection.evidence import ALL, BACKGROUND, FALSE_ACTIVATIONS, RETAINED
from sparse_adapt.stages.record import source_of
from sparse_adapt.training.settings import Training

VARY_FILE, MEASURES_FILE, REQUEST_FILE = "vary.json", "measures.json", "request.json"


class Value(NamedTuple):
    """A value in words, and the settings of the varied stage with it."""

    text: str
    settings: Training


@dataclass(frozen=True, slots=True)
class Variation:
    """A setting of a stage and its values: the plan's own, then the others in the order in which they were named."""

    stage: str
    key: str
    values: tuple[Value, ...]

    @property
    def setting(self) -> str:
        """The setting as a run file names it."""
        return f"{self.stage}.{self.key}"


class OfValue(TypedDict):
    """The last model with one value, what it measures, and the change against the plan's own value."""

    value: str
    model: str
    measures: dict[str, float]
    change: NotRequired[dict[str, float]]


class Varied(TypedDict):
    """What `vary.json` holds: a setting, its values, and a row for each, the plan's own first."""

    setting: str
    values: list[str]
    rows: list[OfValue]


def read_variation(assignment: str, plan: Plan) -> Variation:
    """What STAGE.SETTING=V1,V2 asks for of a plan; a weight is STAGE.weights.NAME.

    Raises ConfigError for a stage, a setting or a value that the plan can't have.
    """
    name, _, values = assignment.partition("=")
    stage, _, key = name.strip().partition(".")
    if not key or not values.strip():
        raise ConfigError(f"--vary {assignment}: needs STAGE.SETTING=VALUE,VALUE, such as distill.tau=0.5,2")
    if stage not in plan.trained:
        raise ConfigError(f"--vary {assignment}: {unknown('stage that trains', stage, tuple(plan.trained))}")
    own = plan.trained[stage]
    tried_values = [Value(_as_text(_value_of(own, key, assignment)), own)]
    for text in map(str.strip, values.split(",")):
        settings = _with(own, key, text, assignment)
        if all(settings != each.settings for each in tried_values):
            tried_values.append(Value(_as_text(_value_of(settings, key, assignment)), settings))
    if len(tried_values) == 1:
        raise ConfigError(f"--vary {assignment}: the plan has this value; name another")
    return Variation(stage, key, tuple(tried_values))


def _with(own: Training, key: str, text: str, assignment: str) -> Training:
    """Settings with another value of one key, which may lie in a table."""
    *tables, last = key.split(".")
    overrides: dict[str, object] = {last: _parsed(text)}
    for table in reversed(tables):
        overrides = {table: overrides}
    try:
        return type(own).model_validate(laid_over(own.model_dump(), overrides))
    except ValidationError as error:
        raise ConfigError(f"--vary {assignment}: {first_error(error, type(own))[1]}") from error


def _parsed(text: str) -> object:
    """A value as a run file would hold it; what is no number and no yes or no is a word."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def _value_of(settings: Training, key: str, assignment: str) -> object:
    value: object = settings.model_dump()
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            known = tuple(value) if isinstance(value, Mapping) else (key.rpartition(".")[0],)
            raise ConfigError(f"--vary {assignment}: {unknown('key', part, known)}")
        value = value[part]
    if isinstance(value, Mapping):
        raise ConfigError(
            f"--vary {assignment}: {key} is a table; name one of {', '.join(value)} behind a dot"
        )
    return value


def _as_text(value: object) -> str:
    return "auto" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


# -- carried out --------------------------------------------------------------------------------------


def vary(plan: Plan, variation: Variation, place: Place, listener: Listener) -> Varied:
    """Carry out a plan once for each value, and measure the last models, as `vary.json` holds it.

    With `place.resume`, what is done stays. Raises what `run` raises.
    """
    if plan.corpus is None:
        raise ConfigError('--vary compares models on a corpus; add corpus = "FOLDER" to the run file')
    request = {"setting": variation.setting, "values": [each.text for each in variation.values]}
    whole = place.folder / VARY_FILE
    if place.resume and not place.overwrite and whole.is_file():
        check_request(place.folder / REQUEST_FILE, request)
        return cast("Varied", json.loads(whole.read_bytes()))
    check_files(plan)
    with common_folder(place.reading(read_by(plan))) as work:
        if is_main():
            check_request(work / REQUEST_FILE, request)
            write_json(work / REQUEST_FILE, request)
        model = through(
            plan, 0, plan.stages.index(variation.stage), ModelFolder.of(plan.model), work, listener
        )
        rows = [
            _of_value(plan, variation, number, model, work, listener)
            for number in range(len(variation.values))
        ]
        if is_main():
            write_json(work / VARY_FILE, {**request, "rows": [*_with_changes(rows)]})
    return cast("Varied", json.loads(whole.read_bytes()))


def through(
    plan: Plan,
    first: int,
    end: int,
    model: ModelFolder,
    folder: Path,
    listener: Listener,
    home: Path | None = None,
    named: str = "",
) -> ModelFolder:
    """The model behind some stages of a plan, each in its folder: those that are done there stay."""
    for number, stage in enumerate(plan.stages[first:end], start=first + 1):
        made = stage_folder(folder, number, stage)
        run_stage(stage, plan, model, made, listener, name=f"{stage}{named}", home=home or folder)
        model = ModelFolder.of(made)
    return model


def _of_value(
    plan: Plan, variation: Variation, number: int, model: ModelFolder, work: Path, listener: Listener
) -> OfValue:
    """The value of a number, its last model and what that measures."""
    value, folder = variation.values[number], work / f"value-{number}"
    if is_main():
        folder.mkdir(exist_ok=True)
    own = replace(plan, settings={**plan.settings, variation.stage: value.settings})
    first = plan.stages.index(variation.stage)
    named = f", {variation.key} = {value.text}"
    last = through(own, first, len(plan.stages), model, folder, listener, work, named)
    measures = _measured(plan, last, folder, work) if is_main() else {}
    return {"value": value.text, "model": str(last.path.relative_to(work)), "measures": measures}


def _measured(plan: Plan, last: ModelFolder, folder: Path, work: Path) -> dict[str, float]:
    """The measures of a model, taken once."""
    assert plan.corpus is not None

    def measure() -> str:
        measures = dict(measures_of(plan, last.path, work))
        write_json(folder / MEASURES_FILE, measures)
        return f"{len(measures)} measures"

    sources = {"model": of_model(last), "corpus": source_of("corpus", plan.corpus)}
    carry_out(Step("measures", sources, [MEASURES_FILE], measure), folder, work)
    return dict(json.loads((folder / MEASURES_FILE).read_bytes()))


def measures_of(plan: Plan, last: Path, work: Path) -> Iterator[tuple[str, float]]:
    """What the report of a run says of its last model: on judged queries, and of what it retains.

    The base model, which is the same for every value, isn't measured. Nothing for a dense model.
    """
    from sparse_adapt.model.kinds import load_encoder  # all of it is slow to import
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.retrieve.evaluate import evaluate_model
    from sparse_adapt.selection.comparison import JudgedDocuments
    from sparse_adapt.selection.retention import measure_alone

    model = load_encoder(last)
    if plan.corpus is None or not isinstance(model, SparseEncoder):
        return
    queries = JudgedDocuments.of(plan.corpus, work).queries
    if queries is not None:
        result = evaluate_model(model, queries)
        for query_kind in (None, *result.kinds):
            yield f"ndcg@10, {query_kind or ALL}", float(result.select(query_kind)["ndcg@10"].mean())
    retention = measure_alone(model, list(read_documents(plan.corpus)))
    for kind in (*RETAINED, FALSE_ACTIVATIONS, BACKGROUND):
        if kind.name in retention:
            yield f"{kind.measure}, {kind.name}", retention[kind.name]["model"][kind.measure]


def _with_changes(rows: Sequence[OfValue]) -> Iterator[OfValue]:
    """Each row with its changes against the first, that of the plan's own value."""
    own = rows[0]["measures"]
    for row in rows:
        changes = {key: value - own[key] for key, value in row["measures"].items() if key in own}
        yield {**row, "change": changes}


# -- how long it takes --------------------------------------------------------------------------------


def times(plan: Plan, variation: Variation) -> list[tuple[str, Training, int]]:
    """Each stage that trains, its settings and how often they are carried out; every value by itself."""
    first, rows = plan.stages.index(variation.stage), list[tuple[str, Training, int]]()
    for number, stage in enumerate(plan.stages):
        if stage == variation.stage:
            rows += [(stage, value.settings, 1) for value in variation.values]
        elif stage in plan.trained:
            rows.append((stage, plan.trained[stage], 1 if number < first else len(variation.values)))
    return rows


def expected_seconds(plan: Plan, variation: Variation) -> float:
    """How long it may take on this machine, by a moment's work of each kind."""
    from sparse_adapt.pipeline.estimate import of_plan

    trained = [(stage, settings) for stage, settings, often in times(plan, variation) for _ in range(often)]
    return of_plan(plan, len(variation.values), trained=trained).total
