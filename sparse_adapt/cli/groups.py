"""The command that looks at groups of texts: how alike each is, and whether its texts are found by one another."""

from pathlib import Path
from typing import Annotated

import typer

from sparse_adapt.cli.console import say, show_json, show_table, then, wrote
from sparse_adapt.cli.options import MODEL_HELP, Device, Json, Model, Overwrite


def groups(
    model: Model,
    groups: Annotated[
        str, typer.Option("--groups", metavar="FILE", help='JSONL: "group", "text", optional "seen".')
    ],
    against: Annotated[
        str | None, typer.Option("--against", metavar="MODEL", help=f"The model before. {MODEL_HELP}")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="Folder for page, figures and heat maps."),
    ] = None,
    overwrite: Overwrite = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Say how alike a model finds the texts of each group, and how often one is found by another of its group."""
    from diagnostics.groups import measure_groups, read_members
    from diagnostics.groups_report import tables, to_object, write_report
    from sparse_adapt.cli.devices import load_either
    from sparse_adapt.folders import check_free

    if out is not None:
        check_free(out, overwrite=overwrite)
    members = read_members(groups)
    names = [name for name in (against, model) if name is not None]
    measured = {name: measure_groups(load_either(name, device), members) for name in names}
    if json:
        show_json(to_object(measured))
    else:
        for table in tables(measured):
            show_table(table)
    again = ["groups", "--model", model, *(["--against", against] if against else []), "--groups", groups]
    if out is None:
        then([*again, "-o", "groups"])
        return
    drawn = write_report(measured, out, overwrite=overwrite)
    wrote(out, f"groups.md, groups.json{', groups.png' if drawn else ''}")
    if not drawn:
        say("for heat maps: pip install 'sparse-adapt[plot]'")
