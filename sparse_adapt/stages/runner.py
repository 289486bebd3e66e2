"""The one runner: a model folder and files in, a stage carried out, a model folder with its record out.

A stage's folder holds the model, `history.jsonl` where it trained, and its record, `stage.json`.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from sparse_adapt.collection.sources import file_beside
from sparse_adapt.errors import ConfigError, ModelError, SparseAdaptError
from sparse_adapt.files.marker import empty, remove
from sparse_adapt.files.place import Place
from sparse_adapt.files.processes import common_folder, is_main
from sparse_adapt.files.steps import PATH, made_from_same, stamp
from sparse_adapt.files.writing import sync_all
from sparse_adapt.heap import trim_heap
from sparse_adapt.model.folder import ModelFolder, ModelSource, of_model
from sparse_adapt.model.kinds import EitherEncoder, load_encoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.settings import Settings
from sparse_adapt.stages.card import with_record, write_card
from sparse_adapt.stages.inputs import Inputs
from sparse_adapt.stages.record import (
    RECORD_FILE,
    StageRecord,
    extended_from,
    made_from,
    new_record,
    read_before,
    read_stage_record,
    source_of,
    write_record,
)
from sparse_adapt.stages.stage import Changed, Stage
from sparse_adapt.stages.table import find_stage
from sparse_adapt.synthetic.background import check_head
from sparse_adapt.training.loop import (
    HISTORY_FILE,
    NO_TERMS,
    Concluding,
    StepProgress,
    Task,
    Telling,
    device_of,
    epoch_means,
    read_history,
    train,
)
from sparse_adapt.training.memory import keep_within
from sparse_adapt.training.settings import Training
from sparse_adapt.training.state import STATE_FILE, forget

EXTENDED = "model before the extension"  # in the record of an unfinished stage


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage did: a sentence or two for the reader, and the record that lies beside the model.

    epochs: a line for each pass over the texts, where the stage counts its passes.
    """

    folder: Path
    message: str
    record: StageRecord
    epochs: Sequence[str] = ()

    @property
    def files(self) -> dict[str, str]:
        """The path of each input that the stage read, by its key."""
        return {key: entry["path"] for key, entry in self.record["files"].items()}


def carry_out_stage(
    name: str,
    model: ModelSource,
    named: Mapping[str, str | Path],
    place: Place,
    settings: Settings | None = None,
    progress: StepProgress | None = None,
) -> Outcome:
    """Carry out the stage of that name on a model. `named`: a path for each input that is named, by its key.

    Raises ConfigError where an input is missing, and what the readers raise, before the model is loaded, and
    ModelError for one whose head is too sick to be taught, or that the stage makes so.
    """
    trim_heap()  # of what was done before
    started, stage = time.monotonic(), find_stage(name)
    settings = stage.settings() if settings is None else settings
    files = files_of_stage(stage, model, named)
    inputs = Inputs(str(model), files)
    inputs.read(stage.reads)
    model = ModelFolder.of(model)
    encoder = _load(stage, model, settings)
    if isinstance(encoder, SparseEncoder):
        check_head(encoder, str(model))
    made = stage.made(encoder, inputs, settings)
    begun = new_record(stage.name, model, files, settings.model_dump(mode="json"), started)
    if isinstance(made, Changed):
        return _save(encoder, made, begun, place)
    assert isinstance(settings, Training), stage.name
    return _teach(encoder, made, settings, begun, place, started, progress)


def files_of_stage(stage: Stage[Any], model: ModelSource, named: Mapping[str, str | Path]) -> dict[str, str]:
    """Where each input of a stage is: named, in the corpus folder, or what the stage before read."""
    inherits = any(each.source == "inherited" for each in stage.reads)
    before, places = read_before(str(model)) if inherits else {}, dict[str, str]()
    corpus = named.get("corpus")
    for each in sorted(stage.reads, key=lambda one: one.key != "corpus"):
        source = named.get(each.key)
        if source is None and each.source == "inherited":
            source = before.get(each.key)
        if source is None and each.source in ("needed", "beside") and corpus is not None:
            beside = file_beside(corpus, each.file)
            source = None if beside is None else str(beside)
        if source is None and each.needed:
            raise ConfigError(f"the stage {stage.name} needs {each.key} ({each.description}); name a file")
        if source is not None:
            places[each.key] = str(source)
        if each.key == "corpus":
            corpus = source
    return {each.key: places[each.key] for each in stage.reads if each.key in places}


def _load(stage: Stage[Any], model: ModelFolder, settings: Settings) -> EitherEncoder:
    """The model where the stage trains, reading as much of a text as the settings say."""
    device = device_of(settings) if isinstance(settings, Training) else "cpu"
    encoder = load_encoder(model, device) if stage.dense else SparseEncoder.load(model, device)
    if isinstance(settings, Training) and settings.max_tokens is not None:
        encoder.read_up_to(settings.max_tokens)
    if isinstance(settings, Training):
        keep_within(encoder, settings, stage.name, stage.texts_of(settings))
    return encoder


def _save(encoder: EitherEncoder, done: Changed, begun: StageRecord, place: Place) -> Outcome:
    """Write an encoder that a stage has changed."""
    record = cast("StageRecord", {**begun, **done.record})
    with _folder(place, begun, resumable=False) as work:
        if is_main():
            encoder.save(work)
            write_card(work, with_record(record))
            write_record(work, record, place.home)
    return Outcome(place.folder, done.message, record)


def _teach(
    encoder: EitherEncoder,
    task: Task[Any],
    settings: Training,
    begun: StageRecord,
    place: Place,
    started: float,
    progress: StepProgress | None,
) -> Outcome:
    """Train an encoder on a task, and write it. What was begun with the same is gone on with."""
    with _folder(place, begun) as work:
        before = _begun_before(work, begun, place)
        if before is not None and "steps" in before:  # whole but for its renaming
            record, history = before, read_history(work / HISTORY_FILE)
        else:
            if is_main():
                write_record(work, cast("StageRecord", {**begun, EXTENDED: _extended(begun)}), place.home)
            history = _train(encoder, task, work, progress)
            record = {
                **begun,
                "steps": len(history),
                "settled": _settled(settings, task.settings, encoder.width),
                "seconds": round(time.monotonic() - started, 1),
            }
            if isinstance(task, Concluding):
                record = cast("StageRecord", {**record, **task.conclude(encoder)})
            if is_main():
                encoder.save(work)
                write_card(work, with_record(record))
                sync_all(work)  # before the record says that it is whole
                write_record(work, record, place.home)
        if is_main():
            forget(work)
    message = f"{len(history):,} steps in {record['seconds']:.0f} s"
    rate = settings.rate_at(encoder.width)
    if settings.train != "new" and settings.learning_rate is None and rate < settings.narrow_rate:
        message += f" at a learning rate of {rate:.2g}, for a body {encoder.width} wide"
    message += "; "
    epochs: list[str] = []
    if settings.epochs is None:
        message += f"at the end {_terms(history[-1])}"
    else:
        means = epoch_means(history, settings.epochs)
        epochs = [f"epoch {number} of {len(means)}: {_terms(mean)}" for number, mean in enumerate(means, 1)]
        message += f"mean of the last epoch {_terms(means[-1])}"
    if isinstance(task, Telling):
        message += f"; {task.tell(record)}"
    return Outcome(place.folder, message, record, epochs)


def _terms(values: Mapping[str, float]) -> str:
    """Loss terms in words."""
    terms = {key: value for key, value in values.items() if key not in NO_TERMS}
    return ", ".join(f"{key} {value:.3g}" for key, value in terms.items())


def _train(
    encoder: EitherEncoder, task: Task[Any], work: Path, progress: StepProgress | None
) -> list[dict[str, float]]:
    """The history of the training. Raises ModelError where that made the head sick.

    Nothing stays of a sick model, nor of a training that was refused before there was anything to go on from.
    """
    try:
        history = train(encoder, task, work, progress=progress)
        if isinstance(encoder, SparseEncoder):
            check_head(encoder, f"the stage {task.name} made the model sick", taught=True)
    except SparseAdaptError as error:
        if is_main() and (isinstance(error, ModelError) or not (work / STATE_FILE).is_file()):
            remove(work)
        raise
    return history


def _folder(place: Place, begun: StageRecord, *, resumable: bool = True) -> AbstractContextManager[Path]:
    """The folder to write a stage in, which is none that the stage reads."""
    sources = [of_model(begun["model"][PATH])]
    sources += [source_of(key, entry[PATH]) for key, entry in begun["files"].items()]
    reads = [source.place for source in sources]
    return common_folder(replace(place, resumable=resumable, reads=reads))


def _begun_before(work: Path, begun: StageRecord, place: Place) -> StageRecord | None:
    """The record of an unfinished stage that was begun with the same; None where there is nothing to go on from.

    Raises ConfigError for one that was begun with something else, unless that may go.
    """
    before = read_stage_record(work)
    if before is None:
        return None
    was, now = made_from(before), made_from(begun)
    if EXTENDED in before and "steps" not in before:
        was[EXTENDED], now[EXTENDED] = dict(before)[EXTENDED], _extended(begun)
    if made_from_same(work / RECORD_FILE, was, now, again=place.again):
        return before
    if is_main():
        empty(work)
    return None


def _extended(begun: StageRecord) -> dict[str, str] | None:
    """The stamp of the model before the extension, which some stages learn from without its being named."""
    source = extended_from(begun["model"][PATH])
    return None if source is None else stamp(of_model(source))


def _settled(settings: Training, settings_of_model: Training, width: int) -> dict[str, object]:
    """What the settings left open and the stage settled by what it learns from, and by how wide the body is."""
    before = settings.model_dump(mode="json")
    after = settings_of_model.model_dump(mode="json")
    after["learning_rate"] = settings_of_model.rate_at(width)
    return {key: value for key, value in after.items() if before[key] != value}
