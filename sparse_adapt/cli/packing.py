"""Commands that move new terms from one copy of a base model to others: pack, unpack, packs."""

from pathlib import Path
from typing import Annotated

import typer

from sparse_adapt.api.checks import a_corpus, a_file, a_model, check_free_file, check_output
from sparse_adapt.api.following import free
from sparse_adapt.cli.console import show, show_json, then, wrote
from sparse_adapt.cli.options import CORPUS_HELP, MODEL_HELP, Json, ModelArgument, Out, Overwrite, checked
from sparse_adapt.errors import ConfigError


def pack(
    model: ModelArgument,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="Term pack to write.")],
    base: Annotated[
        str,
        typer.Option(
            "--base",
            metavar="MODEL",
            help=f"The model that MODEL was made from, which the pack is for. {MODEL_HELP}",
            callback=checked(a_model),
        ),
    ],
    terms: Annotated[
        list[str] | None,
        typer.Option(
            "--terms",
            metavar="A,B",
            help="The terms to pack, with commas between them. May be given several times.",
            show_default="all that the base model lacks",
        ),
    ] = None,
    author: Annotated[
        str | None,
        typer.Option(
            "--author",
            metavar="NAME",
            help="Who is said to have made the pack.",
            show_default="who is logged in",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write new terms of a model into a small file, a term pack.

    Every weight that the base model brought has to be as it was: teach the terms with dictionary --train rows, or by a
    stage with --train new, as warmup is unasked.
    """
    check_free_file(out, "pack", overwrite=overwrite, reads=[model])
    from sparse_adapt.api.packing import pack as pack_now

    chosen = [term.strip() for each in terms or () for term in each.split(",") if term.strip()]
    done = pack_now(model, out, base=base, terms=chosen, author=author, overwrite=overwrite)
    show(done.renderable())
    wrote(out, f"{len(done.terms):,} terms; by {done.header.made.author}, whom --author replaces")
    then(["packs", str(out)], ["unpack", str(out), "--model", done.base, "-o", free("with-terms")])


def unpack(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="MODEL",
            help=f"The base model of the packs, or a model that holds other packs. {MODEL_HELP}",
            callback=checked(a_model),
        ),
    ],
    out: Out,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Term packs to put in.", show_default="none"),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            "--remove",
            metavar="NAME",
            help="Take this pack out of the model, by the name that `packs` shows. May be given several times.",
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            "--corpus",
            metavar="CORPUS",
            help=f"Find which of these documents have to be encoded again. {CORPUS_HELP}",
            callback=checked(a_corpus),
        ),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Put term packs into a model, or take some out of it.

    Every other weight stays as it is, bit for bit, and a pack that is taken out leaves no trace.
    """
    if not files and not remove:
        raise ConfigError("unpack needs FILE, a term pack to put in, or --remove NAME, one to take out")
    for file in files or ():
        a_file(file)
    check_output(out, overwrite=overwrite, resume=False, reads=[model, *(files or ())])
    from sparse_adapt.api.packing import unpack as unpack_now

    done = unpack_now(
        files or [], model, out, remove=remove or (), corpus=corpus, overwrite=overwrite, progress=True
    )
    if json:
        show_json(done.to_dict())
    else:
        show(done.renderable())
    wrote(out, f"a model with {len(done.found):,} packs and {len(done.terms):,} of their terms")
    then(["packs", str(out)])


def packs(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL_OR_FILE", help="A model folder, or the file of a term pack. Also as --model."
        ),
    ],
    json: Json = False,
) -> None:
    """List the term packs of a model, or show the one in a file.

    Each with its terms, what taught them, who made it and when, and the base model that it fits.
    """
    if not Path(model).is_file():
        a_model(model)
    from sparse_adapt.api.packing import packs as packs_now

    found = packs_now(model)
    if json:
        show_json(found.to_dict())
    else:
        show(found.renderable())
