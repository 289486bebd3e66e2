"""Commands on similar texts: how alike groups are, how well a model orders pairs, and which words it does so by."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparse_adapt.api.checks import a_file, check_output
from sparse_adapt.api.following import free
from sparse_adapt.cli.console import say, show_json, show_table, then, wrote
from sparse_adapt.cli.options import Baseline, Device, Json, Model, Overwrite, checked, encodes
from sparse_adapt.cli.research.contradictions import Language
from sparse_adapt.errors import InputError
from sparse_adapt.files.place import Place

if TYPE_CHECKING:
    from sparse_adapt.model.reading import Reading

Pairs = Annotated[
    Path,
    typer.Option(
        "--pairs",
        metavar="FILE",
        help="TSV of three columns: a number that is higher for more similar texts, and the two texts.",
        callback=checked(a_file),
    ),
]


@encodes
def groups(
    model: Model,
    groups: Annotated[
        str,
        typer.Option(
            "--groups",
            metavar="FILE",
            help='JSONL with a "group" and a "text" on each line; "seen": true for what was trained on.',
            callback=checked(a_file),
        ),
    ],
    baseline: Baseline = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", metavar="DIR", help="Folder to write: a page, the figures and heat maps."
        ),
    ] = None,
    overwrite: Overwrite = False,
    device: Device = "auto",
    json: Json = False,
    *,
    reading: "Reading",
) -> None:
    """Measure how alike the texts of each group are.

    Also how often a text is found by another text of its group.
    """
    read = [groups, model, baseline]
    if out is not None:
        check_output(out, overwrite=overwrite, resume=False, reads=read)
    from sparse_adapt.cli.devices import load_either
    from sparse_adapt.research.groups import measure_groups, read_members
    from sparse_adapt.research.groups_report import group_tables, groups_object, write_groups_report

    members = read_members(groups)
    names = [name for name in (baseline, model) if name is not None]
    measured = {name: measure_groups(load_either(name, device, reading), members) for name in names}
    if json:
        show_json(groups_object(measured))
    else:
        for table in group_tables(measured):
            show_table(table)
    again = ["groups", "--model", model, *(["--baseline", baseline] if baseline else []), "--groups", groups]
    if out is None:
        then([*again, "-o", free("groups")])
        return
    drawn = write_groups_report(measured, out, overwrite=overwrite, reads=read)
    wrote(out, f"groups.md, groups.json{', groups.png' if drawn else ''}")
    if not drawn:
        say("for heat maps: pip install 'sparse-adapt[plot]'")


@encodes
def similarity(
    model: Model,
    pairs: Pairs,
    baseline: Baseline = None,
    device: Device = "auto",
    json: Json = False,
    *,
    reading: "Reading",
) -> None:
    """Measure how well a model orders pairs by their similarity.

    The measure is Spearman's rank correlation.
    """
    import numpy as np

    from sparse_adapt.cli.devices import load_either
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.report.tables import Column, Table
    from sparse_adapt.research.similarity import correlation, cosines, read_graded

    graded = read_graded(pairs)
    wanted = np.array([pair.similarity for pair in graded])
    firsts, seconds = [pair.first for pair in graded], [pair.second for pair in graded]
    texts = len({*firsts, *seconds})
    encoders = [(name, load_either(name, device, reading)) for name in (model, baseline) if name is not None]
    with Bars() as bars:
        found = [cosines(each, firsts, seconds, bars.count(name, texts)) for name, each in encoders]
    measured = {"model": correlation(found[0], wanted)}
    if baseline is not None:
        measured["baseline"] = correlation(found[1], wanted)
        measured["difference"] = correlation(found[0], wanted, found[1])
    if json:
        figures: dict[str, Any] = {which: each._asdict() for which, each in measured.items()}
        show_json({"measure": "spearman", "pairs": len(graded), **figures})
    else:
        columns = (
            Column("which", "rank correlation", "text"),
            Column("value", "value", decimals=3),
            Column("low", "from", decimals=3),
            Column("high", "to", decimals=3),
        )
        rows = [{"which": which, **each._asdict()} for which, each in measured.items()]
        note = f"{len(graded):,} pairs; from, to: bounds that hold 95 % of resamples of the pairs"
        show_table(Table(f"{model} on {pairs}", columns, rows, note))
    then(["relevant-words", "--model", model, "--pairs", str(pairs)])


@encodes
def relevant_words(
    model: Model,
    pairs: Pairs,
    language: Language = "en",
    least: Annotated[
        float, typer.Option("--least", help="Lowest number of a pair whose texts count as related.")
    ] = 4.0,
    every: Annotated[
        bool,
        typer.Option(
            "--every",
            help="Choose among all words, each with all of its occurrences, as published; not content words alone.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="DIR",
            help="Folder to write: words and their parts of speech as JSON, and a plot.",
        ),
    ] = None,
    device: Device = "auto",
    json: Json = False,
    overwrite: Overwrite = False,
    *,
    reading: "Reading",
) -> None:
    """Show which words make related texts similar.

    Words are counted by their part of speech.
    """
    if out is not None:
        check_output(out, overwrite=overwrite, resume=False, reads=[pairs, model])
    from sparse_adapt.cli.devices import load_either
    from sparse_adapt.files.folders import output_folder, write_json
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.research.relevance import plot_relevance, tabulate_relevance
    from sparse_adapt.research.relevance import relevant_words as find
    from sparse_adapt.research.similarity import read_likenesses
    from sparse_adapt.terms.language import Parser

    related = [pair for pair in read_likenesses(pairs) if pair.similarity >= least]
    if not related:
        raise InputError(pairs, f"no pair has a similarity of {least:g} or more; lower --least")
    parser, encoder = Parser(language), load_either(model, device, reading)
    with Bars() as bars:
        relevance = find(encoder, related, parser, bars.count("texts"), every=every)
    if out is not None:
        with output_folder(Place(out, overwrite=overwrite, resumable=False, reads=[pairs, model])) as work:
            write_json(work / "relevance.json", relevance.to_dict())
            plot_relevance(relevance, work / "relevance.png")
    if json:
        show_json(relevance.to_dict())
    else:
        show_table(tabulate_relevance(relevance))
    if out is not None:
        wrote(out, "relevance.json, relevance.png")
