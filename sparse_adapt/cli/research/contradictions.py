"""The command that writes contradictions of a corpus's sentences."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparse_adapt.api.checks import a_corpus, a_model, check_free_file
from sparse_adapt.api.following import free
from sparse_adapt.cli.console import show_json, show_table, then, wrote
from sparse_adapt.cli.options import (
    CORPUS_HELP,
    MODEL_HELP,
    Device,
    Json,
    Overwrite,
    Resume,
    checked,
)

if TYPE_CHECKING:
    from sparse_adapt.report.tables import Row, Table
    from sparse_adapt.research.contradicting.contradict import Tally


Language = Annotated[str, typer.Option("--language", metavar="NAME", help="Language of the texts: en or ja.")]


def contradict(
    corpus: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS",
            help=f"{CORPUS_HELP} Or a text file (.txt) with a sentence on each line. Also as --corpus.",
            callback=checked(a_corpus),
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="File to write, triplets.jsonl.")],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="MODEL",
            help=f"The model whose guesses for masked words are filled in. {MODEL_HELP}",
            callback=checked(a_model),
        ),
    ] = "splade-tiny",
    generator: Annotated[
        str | None,
        typer.Option(
            "--generator",
            metavar="NAME_OR_PATH",
            help="What fills in instead: a T5 model or a masked language model.",
        ),
    ] = None,
    language: Language = "en",
    detect: Annotated[
        bool,
        typer.Option("--detect", help="Leave out sentences that a detector finds in another language."),
    ] = False,
    sentences: Annotated[
        int, typer.Option("--sentences", min=1, help="Sentences to contradict, at most.")
    ] = 2_000,
    each: Annotated[int, typer.Option("--each", min=1, help="Contradictions of each sentence, at most.")] = 5,
    tune: Annotated[
        int,
        typer.Option(
            "--tune",
            min=0,
            help="Steps in which the generator first learns to restore parts of these sentences.",
        ),
    ] = 0,
    tuned: Annotated[
        Path | None,
        typer.Option(
            "--tuned",
            metavar="DIR",
            help="Keep the tuned generator in this folder, for --generator next time.",
        ),
    ] = None,
    at_once: Annotated[
        bool,
        typer.Option(
            "--at-once/--one-at-a-time",
            help="Replace all noun phrases of a sentence together, as published, or one of them.",
        ),
    ] = True,
    shortest: Annotated[int, typer.Option("--shortest", min=1, help="Tokens of a sentence, at least.")] = 5,
    optimiser: Annotated[
        str,
        typer.Option("--optimiser", metavar="NAME", help="What tunes the generator: adamw or adafactor."),
    ] = "adamw",
    seed: Annotated[
        int,
        typer.Option(
            "--seed", min=0, help="Seed of every random draw. The same seed gives the same sentences."
        ),
    ] = 0,
    device: Device = "auto",
    json: Json = False,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Write sentences that contradict those of a corpus.

    In each, every noun phrase is replaced by another, or with --one-at-a-time only one.
    """
    if not resume:
        check_free_file(out, "triplets", overwrite=overwrite)
    from sparse_adapt.model.reading import choose_device
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.research.contradicting.writing import ContradictRequest, write

    asked = ContradictRequest(
        corpus,
        generator or model,
        language,
        sentences,
        each,
        tune,
        seed,
        at_once,
        shortest,
        optimiser,
        detect,
    )
    with Bars() as bars:
        tally = write(
            asked,
            out,
            overwrite=overwrite,
            resume=resume,
            tuned=tuned,
            device=choose_device(device),
            watch=bars.count,
        )
    if json:
        show_json(tally.to_json())
    else:
        show_table(_table(tally))
    wrote(out, f"{tally.contradictions:,} contradictions of {tally.anchors:,} sentences; read some")
    if tuned is not None:
        wrote(tuned, "the tuned generator")
    then(["triplets", "--model", model, "--triplets", str(out), "-o", free("taught")])


def _table(tally: "Tally") -> "Table":
    from sparse_adapt.report.tables import Column, Table

    columns = (Column("what", "what", "text"), Column("count", "number"))
    rows: list[Row] = [
        {"what": name.replace("_", " "), "count": count} for name, count in tally.to_json().items()
    ]
    note = "anchors: sentences with a contradiction; unchanged, duplicates: fillings that were left out"
    return Table("", columns, rows, note)
