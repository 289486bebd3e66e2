"""The stages as commands: each reads a model folder and writes its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from sparse_adapt.cli.console import say, then, then_measure, wrote
from sparse_adapt.cli.options import (
    Corpus,
    Judge,
    Model,
    OptionalCorpus,
    Out,
    Overwrite,
    Preset,
    Resume,
    overrides,
    trains,
)

if TYPE_CHECKING:
    from sparse_adapt import config
    from sparse_adapt.stages.steps import Outcome


def extend(
    terms: Annotated[str, typer.Option("--terms", metavar="FILE", help="terms.json, or a folder with one.")],
    out: Out,
    model: Model = "splade-tiny",
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Give every term a token, an input row, a head row and a bias of its own."""
    from sparse_adapt.model.layout import is_dense
    from sparse_adapt.stages import steps

    outcome = steps.extend(model, terms, steps.Place(out, overwrite, resume))
    told(outcome)
    corpus = _folder_of(terms)
    following = "behaviour" if is_dense(out) else "warmup"
    then([following, "--model", str(out), "--corpus", corpus, "-o", _sibling(out, following)])


@trains
def behaviour(
    context: typer.Context,
    model: Model,
    corpus: Corpus,
    out: Out,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="MODEL", help="By default the model that was extended to this one."),
    ] = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Have an extended model do again what the model before it did."""
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.model.layout import is_dense
    from sparse_adapt.running.plan import settings_for
    from sparse_adapt.stages import steps

    settings = cast("config.Behaviour", settings_for("behaviour", "default", overrides(context)))
    with Bars() as bars:
        place, progress = steps.Place(out, overwrite, resume), bars.begin("behaviour")
        outcome = steps.run_behaviour(model, corpus, settings, place, before=before, progress=progress)
    told(outcome)
    following = ["warmup"]
    if is_dense(out):
        following = ["joint", "--pairs", _beside(corpus, "pairs.jsonl")]
    then([*following, "--model", str(out), "--corpus", corpus, "-o", _sibling(out, following[0])])


@trains
def warmup(
    context: typer.Context,
    model: Model,
    corpus: Corpus,
    out: Out,
    overwrite: Overwrite = False,
    resume: Resume = False,
    preset: Preset = "default",
) -> None:
    """Teach the new rows from a corpus: masked words, and where a term is said or meant."""
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.running.plan import settings_for
    from sparse_adapt.stages import steps

    settings = cast("config.Warmup", settings_for("warmup", preset, overrides(context)))
    with Bars() as bars:
        place = steps.Place(out, overwrite, resume)
        outcome = steps.run_warmup(model, corpus, settings, place, bars.begin("warmup"))
    told(outcome)
    definitions = _beside(corpus, "dictionary.jsonl")
    then(["dictionary", "--model", str(out), "--dictionary", definitions, "-o", _sibling(out, "dictionary")])


@trains
def dictionary(
    context: typer.Context,
    model: Model,
    dictionary: Annotated[
        str, typer.Option("--dictionary", metavar="FILE", help="dictionary.jsonl, or a folder with one.")
    ],
    out: Out,
    corpus: OptionalCorpus = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    judge: Judge = None,
    preset: Preset = "default",
) -> None:
    """Teach from definitions, both ways, and from made-up texts which term is meant; every weight learns."""
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.running.plan import settings_for
    from sparse_adapt.stages import steps

    settings = cast("config.Dictionary", settings_for("dictionary", preset, overrides(context)))
    with Bars() as bars:
        place = steps.Place(out, overwrite, resume)
        progress = bars.begin("dictionary")
        outcome = steps.run_dictionary(model, dictionary, corpus, settings, place, progress)
    told(outcome)
    source = corpus or steps.inherited(str(out)).get("corpus") or _folder_of(dictionary)
    then(_distill(str(out), source, _sibling(out, "distill")))


@trains
def distill(
    context: typer.Context,
    model: Model,
    candidates: Annotated[
        str, typer.Option("--candidates", metavar="FILE", help="candidates.jsonl, or a folder with one.")
    ],
    corpus: Corpus,
    out: Out,
    overwrite: Overwrite = False,
    resume: Resume = False,
    judge: Judge = None,
    preset: Preset = "default",
) -> None:
    """Teach the whole model, sparse or dense, to score as a teacher does; a sparse one with short vectors."""
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.running.plan import settings_for
    from sparse_adapt.stages import steps

    settings = cast("config.Distill", settings_for("distill", preset, overrides(context)))
    with Bars() as bars:
        place = steps.Place(out, overwrite, resume)
        outcome = steps.run_distill(model, candidates, corpus, settings, place, bars.begin("distill"))
    told(outcome)
    then_measure(out, corpus, model, _sibling(out, "vectors"))


# -- words ----------------------------------------------------------------------------------------


def told(outcome: "Outcome") -> None:
    """What a stage did, and where its model is."""
    say(outcome.said)
    wrote(outcome.folder, "a model for transformers, sentence-transformers and tokenizers")


def _distill(model: str, corpus: str, out: str) -> list[str]:
    candidates = _beside(corpus, "candidates.jsonl")
    return ["distill", "--model", model, "--candidates", candidates, "--corpus", corpus, "-o", out]


def _sibling(out: Path, name: str) -> str:
    return str(out.with_name(name) if out.name != name else out.with_name(f"{name}-2"))


def _beside(corpus: str, name: str) -> str:
    """A file of a corpus folder as a command takes it, or its bare name where there is none."""
    import corpora
    from sparse_adapt.reading.sources import beside

    if corpus in corpora.NAMES:
        return corpus
    return str(beside(corpus, name) or name)


def _folder_of(source: str) -> str:
    """The corpus that a file lies beside, if there is one."""
    import corpora
    from sparse_adapt.reading.sources import beside

    if source in corpora.NAMES:
        return source
    held = beside(source, "corpus.jsonl")
    return "CORPUS" if held is None else str(held.parent)
