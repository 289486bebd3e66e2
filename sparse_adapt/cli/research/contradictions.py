"""The command that writes contradictions of a corpus's sentences."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparse_adapt.cli.console import show_json, show_table, wrote
from sparse_adapt.cli.following import then
from sparse_adapt.cli.options import (
    Device,
    Json,
    Overwrite,
    Resume,
)

if TYPE_CHECKING:
    from sparse_adapt.lab.contradicting.contradict import Tally
    from sparse_adapt.report.tables import Row, Table


Language = Annotated[str, typer.Option("--language", metavar="NAME", help="en or ja.")]


def contradict(
    corpus: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS", help="A corpus as elsewhere, or a text file (.txt) of one sentence a line."
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="triplets.jsonl to write.")],
    model: Annotated[
        str,
        typer.Option("--model", metavar="MODEL", help="Its masked words fill, unless a generator is named."),
    ] = "splade-tiny",
    generator: Annotated[
        str | None,
        typer.Option(
            "--generator", metavar="NAME_OR_PATH", help="T5 or its like, or a masked language model."
        ),
    ] = None,
    language: Language = "en",
    sentences: Annotated[int, typer.Option("--sentences", min=1, help="To contradict, at most.")] = 2_000,
    each: Annotated[int, typer.Option("--each", min=1, help="Contradictions of a sentence, at most.")] = 5,
    tune: Annotated[
        int, typer.Option("--tune", min=0, help="Steps of denoising spans of these sentences before.")
    ] = 0,
    tuned: Annotated[
        Path | None,
        typer.Option("--tuned", metavar="DIR", help="Keep what was tuned here, a --generator for next time."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same sentences.")] = 0,
    device: Device = "auto",
    json: Json = False,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Write sentences that contradict those of a corpus.

    In each, one noun phrase is replaced by another.
    """
    from sparse_adapt.lab.contradicting.writing import ContradictRequest, write
    from sparse_adapt.model.devices import choose
    from sparse_adapt.report.progress import Bars

    asked = ContradictRequest(corpus, generator or model, language, sentences, each, tune, seed)
    with Bars() as bars:
        account = write(
            asked,
            out,
            overwrite=overwrite,
            resume=resume,
            tuned=tuned,
            device=choose(device),
            watch=bars.count,
        )
    if json:
        show_json(account.to_json())
    else:
        show_table(_table(account))
    wrote(out, f"{account.contradictions:,} contradictions of {account.anchors:,} sentences; read some")
    if tuned is not None:
        wrote(tuned, "the generator as it was tuned")
    then(["triplets", "--model", model, "--triplets", str(out), "-o", "taught"])


def _table(account: "Tally") -> "Table":
    from sparse_adapt.report.tables import Column, Table

    columns = (Column("what", "what", "text"), Column("count", "number"))
    rows: list[Row] = [
        {"what": name.replace("_", " "), "count": count} for name, count in account.to_json().items()
    ]
    note = "unchanged, duplicates: fills that were dropped"
    return Table("", columns, rows, note)
