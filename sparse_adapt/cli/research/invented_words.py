"""Commands on invented words: put them into a collection, and say how much a model recovers of them."""

from typing import TYPE_CHECKING, Annotated

import typer

from sparse_adapt.api.checks import a_corpus, a_file_or_folder, a_folder, a_model, check_output
from sparse_adapt.api.following import free
from sparse_adapt.cli.console import say, show_json, show_table, then, wrote
from sparse_adapt.cli.options import (
    MODEL_HELP,
    Collection,
    Device,
    Json,
    Model,
    Out,
    Overwrite,
    Split,
    checked,
    encodes,
)

if TYPE_CHECKING:
    from sparse_adapt.model.reading import Reading
    from sparse_adapt.report.tables import Row, Table
    from sparse_adapt.research.coin.coining import Report
    from sparse_adapt.research.coin.recovery import CoinedResult, Recovery


BASE = "splade-tiny"


def coin(
    collection: Collection,
    out: Out,
    terms: Annotated[int, typer.Option("--terms", min=1, help="Words to replace, at most.")] = 30,
    seed: Annotated[
        int,
        typer.Option("--seed", min=0, help="Seed of every random draw. The same seed gives the same words."),
    ] = 0,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="MODEL",
            help=f"The model whose vocabulary holds no invented word. {MODEL_HELP}",
            callback=checked(a_model),
        ),
    ] = BASE,
    split: Annotated[
        str,
        typer.Option(
            "--split", metavar="NAME", help="Which judgements of an ir_datasets id; a folder's are all kept."
        ),
    ] = "test",
    glossary: Annotated[
        str | None,
        typer.Option(
            "--glossary",
            metavar="FILE",
            help="Definitions of real words, a glossary or a folder with WordNet's files: those of the replaced words "
            "are written for the invented ones, to DIR/glossary.jsonl.",
            callback=checked(a_file_or_folder),
        ),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Replace words of a collection by invented ones.

    The documents change and the queries don't, so that only what a model learns of the invented words finds
    them.
    """
    check_output(out, overwrite=overwrite, resume=False)
    from sparse_adapt.model.saved import tokenizer_of
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.research.coin.coining import GLOSSARY_FILE, CoinSettings
    from sparse_adapt.research.coin.coining import coin as replace_words

    vocabulary = set(tokenizer_of(model).get_vocab())
    with Bars() as bars:
        report = replace_words(
            CoinSettings(collection=collection, terms=terms, seed=seed, split=split, glossary=glossary),
            vocabulary,
            out,
            overwrite=overwrite,
            counted=bars.count("documents counted"),
            written=bars.count("documents written"),
        )
    if json:
        show_json(report.model_dump())
    else:
        show_table(_coined_table(report))
    wrote(out, f"{report.changed:,} of {report.documents:,} documents changed, {report.carried:,} queries")
    defined = [] if glossary is None else ["--glossary", str(out / GLOSSARY_FILE)]
    then(
        ["adapt", str(out), "--model", model, *defined, "-o", free(f"{out}-adapted")],
        ["evaluate", "--model", model, "--collection", str(out), "--split", split],
    )


@encodes
def recovery(
    coined: Annotated[
        str,
        typer.Option(
            "--coined",
            metavar="DIR",
            help="A folder that `sparse-adapt coin` wrote.",
            callback=checked(a_folder),
        ),
    ],
    model: Model,
    baseline: Annotated[
        str,
        typer.Option(
            "--baseline",
            metavar="MODEL",
            help=f"The model before its adaptation. {MODEL_HELP}",
            callback=checked(a_model),
        ),
    ] = BASE,
    original: Annotated[
        str | None,
        typer.Option(
            "--original",
            metavar="DIR",
            help="The collection before words were replaced.",
            show_default="where `coin` read it",
            callback=checked(a_corpus),
        ),
    ] = None,
    split: Split = "test",
    device: Device = "auto",
    json: Json = False,
    *,
    reading: "Reading",
) -> None:
    """Measure how much of what invented words cost is regained.

    Compares a model adapted to a collection that `sparse-adapt coin` wrote with the model before.
    """
    from sparse_adapt.cli.devices import load
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.research.coin.recovery import measure_recovery, read_trial

    trial = read_trial(coined, split, original)
    adapted, unadapted = load(model, device, reading), load(baseline, device, reading)
    with Bars() as bars:
        heard = bars.count("documents", len(trial.coined.documents) * 3)
        result = measure_recovery(adapted, unadapted, trial, heard)
    if json:
        show_json({"model": model, "base": baseline, "coined": coined, **result.to_json()})
    else:
        show_table(_recovery_table(result, f"{model} on {coined}, {split}: {trial.words} invented words"))
    if model == baseline:
        say(
            f"{model} is the model before adaptation itself, so nothing can be regained; adapt a model to {coined}"
        )
    then(["explain", trial.coined.queries[0].text, "--model", model, "--corpus", coined])


def _coined_table(report: "Report") -> "Table":
    from sparse_adapt.report.tables import Column, Table

    columns = (
        Column("word", "word", "token"),
        Column("coined", "invented", "token"),
        Column("documents", "documents"),
        Column("queries", "queries"),
        Column("times_general", "times as common", decimals=0),
        Column("forms", "forms replaced", "text"),
    )
    rows: list[Row] = [
        {
            **{
                key: getattr(each, key) for key in ("word", "coined", "documents", "queries", "times_general")
            },
            "forms": ", ".join(f"{form} {count:,}" for form, count in each.forms.items()),
        }
        for each in report.coined
    ]
    note = f"{len(rows)} of {report.candidates:,} words that could be replaced; times as common: as in general language"
    return Table("", columns, rows, note)


def _recovery_table(result: "CoinedResult", title: str) -> "Table":
    from sparse_adapt.report.tables import Column, Table
    from sparse_adapt.research.coin.recovery import MEASURE

    columns = (
        Column("wording", "queries", "text"),
        Column("queries", "number"),
        Column("floor", "before", decimals=3),
        Column("adapted", "adapted", decimals=3),
        Column("ceiling", "with real words", decimals=3),
        Column("recovery", "regained", "share"),
        Column("low", "from", "share"),
        Column("high", "to", "share"),
    )
    rows = [
        _recovery_row("say the real word", result.said),
        _recovery_row("say the invented word", result.typed),
        _recovery_row("say neither", result.other),
    ]
    note = f"{MEASURE}; before: the model before adaptation; with real words: that model on the original documents; "
    note += "from, to: bounds that hold 95 % of resamples of the queries"
    return Table(title, columns, rows, note)


def _recovery_row(wording: str, measured: "Recovery") -> "Row":
    share = measured.recovery
    return {
        "wording": wording,
        "queries": measured.queries,
        "floor": measured.floor,
        "adapted": measured.adapted,
        "ceiling": measured.ceiling,
        "recovery": None if share is None else share.value,
        "low": None if share is None else share.low,
        "high": None if share is None else share.high,
    }
