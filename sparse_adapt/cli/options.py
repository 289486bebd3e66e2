"""The options that several commands share, each said once."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from sparse_adapt.api.checks import a_corpus, a_device, a_model, a_teacher
from sparse_adapt.api.following import flag_of as flag_of
from sparse_adapt.api.options import WITH as WITH
from sparse_adapt.api.runs import BUNDLED as BUNDLED
from sparse_adapt.api.runs import RUNS as RUNS

Value = TypeVar("Value")


def checked(check: Callable[[str], object]) -> Callable[[typer.Context, Value], Value]:
    """The callback of an option whose value has to pass a check, if there is one."""

    def callback(context: typer.Context, value: Value) -> Value:
        if value is not None and not context.resilient_parsing:
            check(str(value))
        return value

    return callback


CORPUS_HELP = "A BEIR folder or its corpus.jsonl, a JSONL or TSV file, a bundled name or an ir_datasets id."
MODEL_HELP = "A model folder, the alias splade-tiny or hub:owner/name."
COLLECTION_HELP = "Documents, queries and judgements: a BEIR folder, a bundled name or an ir_datasets id."

Model = Annotated[str, typer.Option("--model", metavar="MODEL", help=MODEL_HELP, callback=checked(a_model))]
OptionalModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help=f"{MODEL_HELP} By default that of the latest run.",
        callback=checked(a_model),
    ),
]
CorpusArgument = Annotated[
    str, typer.Argument(metavar="CORPUS", help=f"{CORPUS_HELP} Also as --corpus.", callback=checked(a_corpus))
]
ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help=f"{MODEL_HELP} Also as --model.", callback=checked(a_model))
]
Corpus = Annotated[
    str, typer.Option("--corpus", metavar="CORPUS", help=CORPUS_HELP, callback=checked(a_corpus))
]
OptionalCorpus = Annotated[
    str | None,
    typer.Option(
        "--corpus",
        metavar="CORPUS",
        help=f"{CORPUS_HELP} By default what the model is for.",
        callback=checked(a_corpus),
    ),
]
Collection = Annotated[
    str, typer.Option("--collection", metavar="DIR", help=COLLECTION_HELP, callback=checked(a_corpus))
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="MODEL",
        help=f"The model to compare with. {MODEL_HELP}",
        callback=checked(a_model),
    ),
]
Split = Annotated[
    str, typer.Option("--split", metavar="NAME", help="Which judgements: those of qrels/NAME.tsv.")
]
Out = Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder to write.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace what is there, once the new result is complete.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where an unfinished run stopped.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Html = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FILE", help="Write a page with pictures, too. It replaces an earlier one."
    ),
]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Where the model runs: auto, cpu, cuda or mps.",
        callback=checked(a_device),
    ),
]
TeacherOption = Annotated[
    str,
    typer.Option(
        "--teacher",
        metavar="NAME_OR_PATH",
        help="Who scores documents: ensemble (base model, BM25 and a dense model together), bm25 (quick: without the "
        "dense model), a dense model, a cross-encoder, or a file of scores (candidates.jsonl or a TREC run).",
        callback=checked(a_teacher),
    ),
]
GeneratorOption = Annotated[
    str | None,
    typer.Option(
        "--query-generator",
        metavar="NAME_OR_PATH",
        help="A sequence-to-sequence model that writes queries, by folder or Hub id.",
    ),
]
Scale = Annotated[
    float | None,
    typer.Option(
        "--scale", help="What weights are multiplied by before they become whole numbers.", show_default="100"
    ),
]

TRAINING = "Training"
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        help="Seed of every random draw. The same seed gives the same model on a CPU.",
        rich_help_panel=TRAINING,
    ),
]
LearningRate = Annotated[
    float | None,
    typer.Option(
        "--learning-rate",
        help="Highest learning rate of the weights that the base model brought.",
        rich_help_panel=TRAINING,
    ),
]
Epochs = Annotated[
    float | None,
    typer.Option("--epochs", help="Passes over the data, instead of steps.", rich_help_panel=TRAINING),
]
BatchSize = Annotated[
    int | None, typer.Option("--batch-size", help="Texts or queries a step.", rich_help_panel=TRAINING)
]
TrainingDevice = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Where the model trains: auto, cpu, cuda or mps.",
        rich_help_panel=TRAINING,
        callback=checked(a_device),
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="NAME",
        help="Number format in which texts are read: float32, bfloat16 or float16.",
        rich_help_panel=TRAINING,
    ),
]
Preset = Annotated[
    str,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="default, or plain for the published recipe, experiment H4.",
        rich_help_panel=TRAINING,
    ),
]
TensorBoard = Annotated[
    bool,
    typer.Option(
        "--tensorboard", help="Write scalars for TensorBoard beside the model.", rich_help_panel=TRAINING
    ),
]

READING = "How much of a text is read"
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        min=8,
        help="Tokens of a text that are read; the rest is cut off.",
        show_default="as many as the model says",
        rich_help_panel=READING,
    ),
]
WindowsOption = Annotated[
    int | None,
    typer.Option(
        "--windows",
        min=0,
        metavar="N",
        help="Read all of a long document, in windows of N tokens; each token has its largest weight of all. 0: none.",
        show_default="as the model says",
        rich_help_panel=READING,
    ),
]
Overlap = Annotated[
    int | None,
    typer.Option(
        "--overlap",
        min=0,
        metavar="M",
        help="Tokens of a window that the next one repeats.",
        show_default="32",
        rich_help_panel=READING,
    ),
]

SETTINGS = ("seed", "learning_rate", "epochs", "batch_size", "device", "precision", "tensorboard")


def _training(
    seed: Seed = None,
    learning_rate: LearningRate = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    device: TrainingDevice = None,
    precision: Precision = None,
    tensorboard: TensorBoard = False,
) -> None:
    """What every command that trains takes."""


def trains(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of training after its own; `overrides` reads them from its context."""
    own = signature(command)

    @wraps(command)
    def with_training(**options: object) -> None:
        command(**{name: value for name, value in options.items() if name in own.parameters})

    return _taking(with_training, command, _training)


def _taking(
    whole: Callable[..., None], command: Callable[..., None], more: Callable[..., None], made: str = ""
) -> Callable[..., None]:
    """`whole`, which takes what a command takes but what is `made` for it, and then what `more` takes."""
    own, added = signature(command), signature(more)
    kept = [each for each in own.parameters.values() if each.name != made]
    whole.__signature__ = own.replace(parameters=[*kept, *added.parameters.values()])  # type: ignore[attr-defined]
    annotations = {name: kind for name, kind in command.__annotations__.items() if name != made}
    whole.__annotations__ = annotations | more.__annotations__
    return whole


def _reading(max_tokens: MaxTokens = None, windows: WindowsOption = None, overlap: Overlap = None) -> None:
    """What every command that encodes takes."""


def encodes(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of how much of a text is read after its own; it gets them as `reading`."""

    @wraps(command)
    def with_reading(**options: object) -> None:
        from sparse_adapt.model.reading import Reading

        given: dict[str, Any] = {name: options.pop(name) for name in signature(_reading).parameters}
        command(**options, reading=Reading(**given))

    return _taking(with_reading, command, _reading, made="reading")


def overrides(context: typer.Context) -> dict[str, Any]:
    """Settings named on the command line, under their own names; what was left out stays with the preset."""
    given = {name: context.params.get(name) for name in SETTINGS}
    return {name: value for name, value in given.items() if value is not None and value is not False}


def is_given(context: typer.Context, option: str) -> bool:
    """Whether an option stands on the command line."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"
