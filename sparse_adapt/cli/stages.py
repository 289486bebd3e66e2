"""The stages as commands: each reads a model folder and writes its own; `run` carries out several."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparse_adapt.cli.console import say, show, then, then_measure, wrote
from sparse_adapt.cli.options import (
    RUNS,
    Corpus,
    Judge,
    Model,
    OptionalCorpus,
    Out,
    Overwrite,
    Preset,
    Resume,
    Train,
    overrides,
    trains,
)
from sparse_adapt.errors import ConfigError

if TYPE_CHECKING:
    from sparse_adapt.stages.runner import Outcome, Place


PairsOption = Annotated[
    str, typer.Option("--pairs", metavar="FILE", help="pairs.jsonl, or a folder with one.")
]


def extend(
    terms: Annotated[str, typer.Option("--terms", metavar="FILE", help="terms.json, or a folder with one.")],
    out: Out,
    model: Model = "splade-tiny",
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Add a token to a model for each new term.

    Each token gets an input row, an output row and a bias. It starts as the mean of the pieces that it
    replaces.
    """
    from sparse_adapt.model.layout import is_dense
    from sparse_adapt.stages.runner import Place, carry_out

    outcome = carry_out("extend", model, {"terms": terms}, Place(out, overwrite, resume))
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
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="MODEL", help="By default the model that was extended to this one."
        ),
    ] = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Train an extended model to behave as before its extension.

    Each new token takes over from the pieces that it replaces, and all else stays as it was.
    """
    from sparse_adapt.model.layout import is_dense
    from sparse_adapt.pipeline.plan import settings_for
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.stages.runner import Place, carry_out

    settings = settings_for("behaviour", "default", overrides(context))
    with Bars() as bars:
        place, progress = Place(out, overwrite, resume), bars.begin("behaviour")
        named = {"corpus": corpus} | ({} if baseline is None else {"before": baseline})
        outcome = carry_out("behaviour", model, named, place, settings, progress)
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
    """Train the new tokens on the texts of a corpus.

    The model guesses masked words, and learns where a term is said or meant.
    """
    from sparse_adapt.pipeline.plan import settings_for
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.stages.runner import Place, carry_out

    settings = settings_for("warmup", preset, overrides(context))
    with Bars() as bars:
        place = Place(out, overwrite, resume)
        progress = bars.begin("warmup")
        outcome = carry_out("warmup", model, {"corpus": corpus}, place, settings, progress)
    told(outcome)
    definitions = _beside(corpus, "dictionary.jsonl")
    then(["dictionary", "--model", str(out), "--glossary", definitions, "-o", _sibling(out, "dictionary")])


@trains
def dictionary(
    context: typer.Context,
    model: Model,
    glossary: Annotated[
        str, typer.Option("--glossary", metavar="FILE", help="dictionary.jsonl, or a folder with one.")
    ],
    out: Out,
    corpus: OptionalCorpus = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    judge: Judge = None,
    preset: Preset = "default",
) -> None:
    """Train with definitions of the new terms.

    The model learns terms from definitions and definitions from terms, and from made-up texts which term is
    meant. All weights learn.
    """
    from sparse_adapt.pipeline.plan import settings_for
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.stages.runner import Place, carry_out

    settings = settings_for("dictionary", preset, overrides(context))
    with Bars() as bars:
        place = Place(out, overwrite, resume)
        progress = bars.begin("dictionary")
        named = {"dictionary": glossary} | ({} if corpus is None else {"corpus": corpus})
        outcome = carry_out("dictionary", model, named, place, settings, progress)
    told(outcome)
    source = corpus or outcome.files.get("corpus") or _folder_of(glossary)
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
    """Train the whole model to score documents as a teacher does.

    A sparse model also learns to keep its vectors short.
    """
    from sparse_adapt.pipeline.plan import settings_for
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.stages.runner import Place, carry_out

    settings = settings_for("distill", preset, overrides(context))
    with Bars() as bars:
        place = Place(out, overwrite, resume)
        named, progress = {"candidates": candidates, "corpus": corpus}, bars.begin("distill")
        outcome = carry_out("distill", model, named, place, settings, progress)
    told(outcome)
    then_measure(out, corpus, model, _sibling(out, "vectors"))


@trains
def dynamic(
    context: typer.Context,
    model: Model,
    corpus: Corpus,
    out: Out,
    pairs: Annotated[
        str | None,
        typer.Option(
            "--pairs",
            metavar="FILE",
            help="Go on with `contrast --form nt-xent` on these; DIR is a run then, a folder a stage.",
        ),
    ] = None,
    masking: Annotated[
        str | None,
        typer.Option(
            "--masking",
            metavar="NAME",
            help="dynamic: the hardest words; random: any.",
            rich_help_panel="Training",
        ),
    ] = None,
    train: Train = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Train on sentences whose hardest domain words are masked.

    The model guesses the domain's words that it finds hardest.
    """
    from sparse_adapt.pipeline.plan import settings_for
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.stages.runner import Place, carry_out

    given = overrides(context)
    settings = settings_for("dynamic", "default", given)
    place = Place(out, overwrite, resume)
    if pairs is not None:
        _teach_both(model, corpus, pairs, given, place)
        return
    with Bars() as bars:
        progress = bars.begin("dynamic")
        outcome = carry_out("dynamic", model, {"corpus": corpus}, place, settings, progress)
    told(outcome)
    files = ["--pairs", "pairs.jsonl", "--corpus", corpus]
    then(["contrast", "--model", str(out), *files, "--form", "nt-xent", "-o", str(out.with_name("contrast"))])


def _teach_both(model: str, corpus: str, pairs: str, given: dict[str, Any], place: "Place") -> None:
    """The words and then the pairs, as a run of two stages."""
    from sparse_adapt.pipeline.plan import Plan, settings_for
    from sparse_adapt.pipeline.run import run
    from sparse_adapt.report.progress import Bars

    of_both = {key: value for key, value in given.items() if key != "masking"}
    plan = Plan(
        model=model,
        corpus=corpus,
        stages=("dynamic", "contrast"),
        preset="default",
        files={"pairs": pairs},
        settings={
            "dynamic": settings_for("dynamic", "default", given),
            "contrast": settings_for("contrast", "default", {**of_both, "form": "nt-xent"}),
        },
    )
    with Bars() as bars:
        finished = run(plan, place, bars)
    wrote(finished.folder, f"a folder a stage; the model is in {finished.model}")
    then(["evaluate", "--model", str(finished.model), "--collection", corpus])


@trains
def joint(
    context: typer.Context,
    model: Model,
    pairs: PairsOption,
    corpus: Corpus,
    out: Out,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Train with pairs whose new words are masked.

    The model learns which word is missing and which document is meant, both at once.
    """
    _teach("joint", context, model, pairs, corpus, out)
    files = ["--pairs", pairs, "--corpus", corpus]
    then(["contrast", "--model", str(out), *files, "-o", str(out.with_name("contrast"))])


@trains
def contrast(
    context: typer.Context,
    model: Model,
    pairs: PairsOption,
    corpus: Corpus,
    out: Out,
    form: Annotated[
        str | None,
        typer.Option(
            "--form",
            metavar="NAME",
            help="infonce: the document by the query; nt-xent: both ways, among all texts of the batch.",
            rich_help_panel="Training",
        ),
    ] = None,
    train: Train = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Train with pairs of a query and its document.

    The document of each query has to score above all other documents of its batch.
    """
    _teach("contrast", context, model, pairs, corpus, out)
    then(["evaluate", "--model", str(out), "--collection", corpus])


def _teach(stage: str, context: typer.Context, model: str, pairs: str, corpus: str, out: Path) -> None:
    from sparse_adapt.pipeline.plan import settings_for
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.stages.runner import Place, carry_out

    settings = settings_for(stage, "default", overrides(context))
    place = Place(out, context.params["overwrite"], context.params["resume"])
    with Bars() as bars:
        named = {"pairs": pairs, "corpus": corpus}
        outcome = carry_out(stage, model, named, place, settings, bars.begin(stage))
    told(outcome)


@trains
def triplets(
    context: typer.Context,
    model: Model,
    triplets: Annotated[
        Path, typer.Option("--triplets", metavar="FILE", help="What `sparse-adapt contradict` wrote.")
    ],
    out: Out,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Train sentences to be far from their contradictions.

    Each sentence has to be nearer to itself than to what contradicts it and to other sentences.
    """
    _teach_triplets("triplets", context, model, triplets, out)
    then(
        ["labelled", "--model", str(out), "--labelled", "FILE", "-o", f"{out}-labelled"],
        ["similarity", "--model", str(out), "--pairs", "FILE", "--baseline", model],
    )


@trains
def labelled(
    context: typer.Context,
    model: Model,
    labelled: Annotated[
        Path,
        typer.Option(
            "--labelled", metavar="FILE", help="JSONL of anchor, entailment, contradiction: inference pairs."
        ),
    ],
    out: Out,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Train with labelled pairs: what follows, what contradicts.

    Each sentence has to be nearer to one that follows from it than to one that contradicts it.
    """
    _teach_triplets("labelled", context, model, labelled, out)
    then(["similarity", "--model", str(out), "--pairs", "FILE", "--baseline", model])


def _teach_triplets(stage: str, context: typer.Context, model: str, file: Path, out: Path) -> None:
    from sparse_adapt.pipeline.plan import settings_for
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.stages.runner import Place, carry_out

    settings = settings_for(stage, "default", overrides(context))
    place = Place(out, context.params["overwrite"], context.params["resume"])
    with Bars() as bars:
        named = {stage: file}
        outcome = carry_out(stage, model, named, place, settings, bars.begin(stage))
    told(outcome)


@trains
def run(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="RUN.TOML", help="The stages, and what they read.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="Run folder; by default runs/ and the file's name."),
    ] = None,
    template: Annotated[
        bool, typer.Option("--template", help="Print a run file to fill in, every key explained.")
    ] = False,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Carry out the stages that a file (run.toml) names.

    Options given here replace what the file says.
    """
    if template:
        from sparse_adapt.pipeline.template import run_template

        show(run_template().rstrip("\n"))
        then(["run", "run.toml"])
        return
    if file is None:
        raise ConfigError("run needs a run file; make one with: sparse-adapt run --template > run.toml")
    from sparse_adapt.pipeline.run import run as carry_out
    from sparse_adapt.pipeline.runfile import read_plan
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.stages.runner import Place

    plan = read_plan(file, overrides(context))
    folder = out or RUNS / file.stem
    with Bars() as bars:
        done = carry_out(plan, Place(folder, overwrite, resume), bars)
    wrote(folder, f"{len(plan.stages)} stages, the last model in {done.model}")
    then_measure(done.model, done.corpus or "CORPUS", plan.model, f"{folder}-vectors")


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
    from sparse_adapt.collection.sources import beside

    if corpus in corpora.NAMES:
        return corpus
    return str(beside(corpus, name) or name)


def _folder_of(source: str) -> str:
    """The corpus that a file lies beside, if there is one."""
    import corpora
    from sparse_adapt.collection.sources import beside

    if source in corpora.NAMES:
        return source
    held = beside(source, "corpus.jsonl")
    return "CORPUS" if held is None else str(held.parent)
