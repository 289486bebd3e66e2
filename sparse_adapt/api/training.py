"""One stage, carried out on a model: `train`."""

import tempfile
from pathlib import Path
from typing import Any

from sparse_adapt.api.inputs import InputFolder
from sparse_adapt.api.models import Model, ModelLike, load
from sparse_adapt.api.options import declared
from sparse_adapt.collection.arguments import Corpus, DocumentsLike
from sparse_adapt.errors import ConfigError, unknown
from sparse_adapt.files.place import Place
from sparse_adapt.pipeline.plan import settings_of
from sparse_adapt.report.progress import progress_bars
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.stages.table import find_stage


@declared
def train(
    stage: str,
    model: "ModelLike",
    corpus: "DocumentsLike | None" = None,
    *,
    out: str | Path | None = None,
    preset: str = "default",
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | None = None,
    **given: Any,  # noqa: ANN401 - inputs and settings differ from stage to stage
) -> Model:
    """Carry out one stage, and give back the model that it left; the model that is given stays as it is.

    stage: its name, such as warmup, dictionary or distill.
    corpus: a place, or documents in memory.
    out: the folder of the model that it leaves; by default a temporary one that lasts as long as the `Model`.
    preset: default, or another name that the stage has, such as published.
    resume: whether a stage that was stopped goes on in `out`.
    given: the stage's other inputs (terms, dictionary, candidates, pairs, triplets, labelled, before), each a path or
    records in memory, and its settings (`steps=200`, `weights={"mlm": 0.2}`), which go before the preset's.

    Raises ConfigError for a stage, an input or a setting that there isn't, and for an input that is missing.

    >>> import sparse_adapt as sa
    >>> model = sa.load("splade-tiny", device="cpu")
    >>> _ = model.extend(["gatrocraptic"])
    >>> taught = sa.train("warmup", model, "gatrocraptic", steps=2, device="cpu")
    >>> len(taught.history), taught.terms
    (2, ['gatrocraptic'])
    """
    wanted = find_stage(stage)
    keys = {each.key for each in wanted.reads}
    settings = {name: value for name, value in given.items() if name not in keys}
    if settings and not wanted.has_settings:
        raise ConfigError(f"{stage}: {unknown('input', next(iter(settings)), sorted(keys))}")
    chosen = settings_of(stage, preset, settings) if wanted.has_settings else None
    scratch = None if out is not None else tempfile.TemporaryDirectory(prefix="sparse-adapt-")
    folder = Path(out) if out is not None else Path(scratch.name if scratch else "") / stage
    place = Place(folder, overwrite, resume)
    inputs = InputFolder(place)
    with inputs.unless_refused():
        named = {"corpus": inputs.place("corpus", Corpus.of(corpus))} if corpus is not None else {}
        named |= {
            key: inputs.place(key, given[key])
            for key in keys
            if given.get(key) is not None and key != "before"
        }
        if given.get("before") is not None:
            named["before"] = load(given["before"]).source
        with progress_bars(progress) as bars:
            outcome = carry_out_stage(stage, inputs.model(model), named, place, chosen, bars.begin(stage))
            bars.end(stage, outcome)
    was = model if isinstance(model, Model) else None
    device = "auto" if was is None else str(was.encoder.device)
    trained = load(folder, device)
    trained.keeps = (*(() if was is None else was.keeps), *(() if scratch is None else (scratch,)))
    return trained
