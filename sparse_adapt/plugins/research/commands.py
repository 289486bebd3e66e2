"""The commands of research, each a function: invented words, contradictions, similar texts, and a suite of models."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sparse_adapt.api.checks import (
    a_corpus,
    a_file,
    a_file_or_folder,
    a_folder,
    check_free_file,
    check_output,
)
from sparse_adapt.api.following import free, line
from sparse_adapt.api.options import (
    BASELINE,
    COLLECTION_HELP,
    CORPUS_HELP,
    MODEL_HELP,
    Device,
    Option,
    Out,
    Overwrite,
    Reads,
    Resume,
    Split,
    declared,
    model_option,
    out_option,
)
from sparse_adapt.errors import InputError
from sparse_adapt.files.place import Place
from sparse_adapt.report.progress import progress_bars
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import Column, Row, Table

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.plugins.research.coin.coining import CoinReport
    from sparse_adapt.plugins.research.coin.recovery import CoinedResult, Recovery

BASE = "splade-tiny"
CASES = 50  # rows of a table that are shown
ModelNamed = Annotated[str, model_option()]
BaselineNamed = Annotated[str | None, BASELINE]
Language = Annotated[str, Option("Language of the texts: en or ja.", metavar="NAME")]
Pairs = Annotated[
    str,
    Option(
        "TSV of three columns: a number that is higher for more similar texts, and the two texts.",
        metavar="FILE",
        check=a_file,
    ),
]


# -- invented words -------------------------------------------------------------------------------------


@declared
def coin(
    collection: Annotated[str, Option(COLLECTION_HELP, metavar="DIR", check=a_corpus)],
    out: Out,
    *,
    terms: Annotated[int, Option("Words to replace, at most.", ge=1)] = 30,
    seed: Annotated[int, Option("Seed of every random draw. The same seed gives the same words.", ge=0)] = 0,
    model: Annotated[
        str, model_option(f"The model whose vocabulary holds no invented word. {MODEL_HELP}")
    ] = BASE,
    split: Annotated[
        str, Option("Which judgements of an ir_datasets id; a folder's are all kept.", metavar="NAME")
    ] = "test",
    glossary: Annotated[
        str | None,
        Option(
            "Definitions of real words, a glossary or a folder with WordNet's files: those of the replaced words "
            "are written for the invented ones, to DIR/glossary.jsonl.",
            metavar="FILE",
            check=a_file_or_folder,
        ),
    ] = None,
    overwrite: Overwrite = False,
    progress: bool | None = None,
) -> Result:
    """Replace words of a collection by invented ones.

    The documents change and the queries don't, so that only what a model learns of the invented words finds them.
    """
    folder = Path(out)
    place = Place(folder, overwrite)
    check_output(place)
    from sparse_adapt.model.saved import tokenizer_of
    from sparse_adapt.plugins.research.coin.coining import GLOSSARY_FILE, CoinSettings, replace_words

    settings = CoinSettings(collection=collection, terms=terms, seed=seed, split=split, glossary=glossary)
    with progress_bars(progress) as bars:
        report = replace_words(
            settings,
            set(tokenizer_of(model).get_vocab()),
            place,
            counted=bars.count("documents counted"),
            written=bars.count("documents written"),
        )
    contents = f"{report.changed:,} of {report.documents:,} documents changed, {report.carried:,} queries"
    meanings = [] if glossary is None else ["--glossary", folder / GLOSSARY_FILE]
    then = [
        line("adapt", folder, "--model", model, *meanings, "-o", free(f"{folder}-adapted")),
        line("evaluate", "--model", model, "--collection", folder, "--split", split),
    ]
    return Result(contents, report.model_dump(), [_coined_table(report)], [(folder, contents)], then)


@declared
def recovery(
    coined: Annotated[str, Option("A folder that `sparse-adapt coin` wrote.", metavar="DIR", check=a_folder)],
    model: ModelNamed,
    *,
    baseline: Annotated[str, model_option(f"The model before its adaptation. {MODEL_HELP}")] = BASE,
    original: Annotated[
        str | None,
        Option(
            "The collection before words were replaced.",
            metavar="DIR",
            shown="where `coin` read it",
            check=a_corpus,
        ),
    ] = None,
    split: Split = "test",
    device: Device = "auto",
    progress: bool | None = None,
    **reading: Reads,
) -> Result:
    """Measure how much of what invented words cost is regained.

    Compares a model adapted to a collection that `sparse-adapt coin` wrote with the model before.
    """
    from sparse_adapt.model.kinds import open_sparse
    from sparse_adapt.model.reading import Reading
    from sparse_adapt.plugins.research.coin.recovery import measure_recovery, read_trial

    trial, read_as = read_trial(coined, split, original), Reading(device=device, **reading)
    adapted, unadapted = open_sparse(model, read_as), open_sparse(baseline, read_as)
    with progress_bars(progress) as bars:
        advance = bars.count("documents", len(trial.coined.documents) * 3)
        result = measure_recovery(adapted, unadapted, trial, advance)
    table = _recovery_table(result, f"{model} on {coined}, {split}: {trial.words} invented words")
    same = f"{model} is the model before adaptation itself, so nothing can be regained; adapt a model to {coined}"
    query = trial.coined.queries[0].text
    then = [line("explain", query, "--model", model, "--corpus", coined)]
    content = {"model": model, "base": baseline, "coined": coined, **result.to_json()}
    return Result(table.title, content, [table], then=then, notes=[same] if model == baseline else [])


def _coined_table(report: "CoinReport") -> Table:
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
            **each.model_dump(),
            "forms": ", ".join(f"{form} {count:,}" for form, count in each.forms.items()),
        }
        for each in report.coined
    ]
    note = f"{len(rows)} of {report.candidates:,} words that could be replaced; times as common: as in general language"
    return Table("", columns, rows, note)


def _recovery_table(result: "CoinedResult", title: str) -> Table:
    from sparse_adapt.plugins.research.coin.recovery import MEASURE

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
    wordings = {
        "say the real word": result.said,
        "say the invented word": result.typed,
        "say neither": result.other,
    }
    rows: list[Row] = [{"wording": wording, **_regained(each)} for wording, each in wordings.items()]
    note = f"{MEASURE}; before: the model before adaptation; with real words: that model on the original documents; "
    note += "from, to: bounds that hold 95 % of resamples of the queries"
    return Table(title, columns, rows, note)


def _regained(measured: "Recovery") -> Row:
    figures = asdict(measured)
    del figures["recovery"]
    return figures | measured.share()


# -- contradictions -------------------------------------------------------------------------------------


@declared
def write_contradictions(
    corpus: Annotated[
        str,
        Option(
            f"{CORPUS_HELP} Or a text file (.txt) with a sentence on each line. Also as --corpus.",
            metavar="CORPUS",
            place=True,
            check=a_corpus,
        ),
    ],
    out: Annotated[str | Path, out_option("File to write, triplets.jsonl.")],
    *,
    model: Annotated[
        str, model_option(f"The model whose guesses for masked words are filled in. {MODEL_HELP}")
    ] = BASE,
    generator: Annotated[
        str | None,
        Option("What fills in instead: a T5 model or a masked language model.", metavar="NAME_OR_PATH"),
    ] = None,
    language: Language = "en",
    detect: Annotated[bool, Option("Leave out sentences that a detector finds in another language.")] = False,
    sentences: Annotated[int, Option("Sentences to contradict, at most.", ge=1)] = 2_000,
    each: Annotated[int, Option("Contradictions of each sentence, at most.", ge=1)] = 5,
    tune: Annotated[
        int,
        Option("Steps in which the generator first learns to restore parts of these sentences.", ge=0),
    ] = 0,
    tuned: Annotated[
        Path | None,
        Option("Keep the tuned generator in this folder, for --generator next time.", metavar="DIR"),
    ] = None,
    at_once: Annotated[
        bool,
        Option(
            "Replace all noun phrases of a sentence together, as published, or one of them.",
            flag="--at-once/--one-at-a-time",
        ),
    ] = True,
    shortest: Annotated[int, Option("Tokens of a sentence, at least.", ge=1)] = 5,
    optimiser: Annotated[
        str,
        Option(
            "What tunes the generator: adamw at a rate of 3e-4, or adafactor at 1e-3, as published.",
            metavar="NAME",
        ),
    ] = "adamw",
    seed: Annotated[
        int, Option("Seed of every random draw. The same seed gives the same sentences.", ge=0)
    ] = 0,
    device: Device = "auto",
    overwrite: Overwrite = False,
    resume: Resume = False,
    progress: bool | None = None,
) -> Result:
    """Write sentences that contradict those of a corpus.

    In each, every noun phrase is replaced by another, or with --one-at-a-time only one. Tags of HTML are left out.
    """
    place = Place(Path(out), overwrite, resume)
    if not resume:
        check_free_file(place, "triplets")
    from sparse_adapt.model.reading import choose_device
    from sparse_adapt.plugins.research.contradicting.writing import ContradictRequest, write

    request = ContradictRequest(
        corpus=corpus,
        generator=generator or model,
        language=language,
        sentences=sentences,
        each=each,
        tune=tune,
        seed=seed,
        at_once=at_once,
        shortest=shortest,
        optimiser=optimiser,
        detect=detect,
    )
    tuned_place = None if tuned is None else Path(tuned)
    with progress_bars(progress) as bars:
        tally = write(
            request,
            place,
            tuned=tuned_place,
            device=choose_device(device),
            progress_for=bars.count,
        )
    rows: list[Row] = [
        {"what": name.replace("_", " "), "count": count} for name, count in tally.to_json().items()
    ]
    note = "anchors: sentences with a contradiction; unchanged, duplicates: fillings that were left out"
    table = Table("", (Column("what", "what", "text"), Column("count", "number")), rows, note)
    contents = f"{tally.contradictions:,} contradictions of {tally.anchors:,} sentences; read some"
    written = [(place.folder, contents)]
    if tuned_place is not None:
        written.append((tuned_place, "the tuned generator"))
    following = line("triplets", "--model", model, "--triplets", place.folder, "-o", free("taught"))
    return Result(contents, tally.to_json(), [table], written, [following])


# -- similar texts --------------------------------------------------------------------------------------


@declared
def groups(
    model: ModelNamed,
    groups: Annotated[
        str,
        Option(
            'JSONL with a "group" and a "text" on each line; "seen": true for what was trained on; "entity": whose '
            "other texts don't count as found.",
            metavar="FILE",
            check=a_file,
        ),
    ],
    *,
    baseline: BaselineNamed = None,
    out: Annotated[
        str | Path | None, out_option("Folder to write: a page, the figures and heat maps.", "DIR")
    ] = None,
    overwrite: Overwrite = False,
    device: Device = "auto",
    **reading: Reads,
) -> Result:
    """Measure how alike the texts of each group are.

    Also which share of a text's nearest is of its group, and how near to each other all texts are.
    """
    reads = [groups, model, baseline]
    place = None if out is None else Place(Path(out), overwrite, reads=reads, resumable=False)
    if place is not None:
        check_output(place)
    from sparse_adapt.plugins.research.groups import measure_groups, read_members
    from sparse_adapt.plugins.research.groups_report import group_tables, groups_object, write_groups_report

    members = read_members(groups)
    names = [name for name in (baseline, model) if name is not None]
    measured = {name: measure_groups(_either(name, device, reading), members) for name in names}
    shown = group_tables(measured)
    if place is None:
        beside = ["--baseline", baseline] if baseline else []
        again = line("groups", "--model", model, *beside, "--groups", groups, "-o", free("groups"))
        return Result(groups, groups_object(measured), shown, then=[again])
    drawn = write_groups_report(measured, place)
    wrote = [(place.folder, f"groups.md, groups.json{', groups.png' if drawn else ''}")]
    notes = [] if drawn else ["for heat maps: pip install 'sparse-adapt[plot]'"]
    return Result(groups, groups_object(measured), shown, wrote, notes=notes)


@declared
def similarity(
    model: ModelNamed,
    pairs: Pairs,
    *,
    baseline: BaselineNamed = None,
    device: Device = "auto",
    progress: bool | None = None,
    **reading: Reads,
) -> Result:
    """Measure how well a model orders pairs by their similarity.

    The measure is Spearman's rank correlation. Where several pairs begin with one text, its candidates are shown too.
    """
    import numpy as np

    from sparse_adapt.plugins.research.similarity import cases, correlation, cosines, read_graded

    graded = read_graded(pairs)
    wanted = np.array([pair.similarity for pair in graded])
    firsts, seconds = [pair.first for pair in graded], [pair.second for pair in graded]
    texts = len({*firsts, *seconds})
    encoders = [(name, _either(name, device, reading)) for name in (model, baseline) if name is not None]
    with progress_bars(progress) as bars:
        values = [cosines(each, firsts, seconds, bars.count(name, texts)) for name, each in encoders]
    measured = {"model": correlation(values[0], wanted)}
    if baseline is not None:
        measured["baseline"] = correlation(values[1], wanted)
        measured["difference"] = correlation(values[0], wanted, values[1])
    columns = (
        Column("which", "rank correlation", "text"),
        Column("value", "value", decimals=3),
        Column("low", "from", decimals=3),
        Column("high", "to", decimals=3),
    )
    rows: list[Row] = [{"which": which, **each._asdict()} for which, each in measured.items()]
    note = f"{len(graded):,} pairs; from, to: bounds that hold 95 % of resamples of the pairs"
    figures = {which: each._asdict() for which, each in measured.items()}
    several = cases(graded, dict(zip(("model", "baseline"), values, strict=False)))
    title = f"{model} on {pairs}"
    return Result(
        title,
        {"measure": "spearman", "pairs": len(graded), **figures, "cases": several},
        [Table(title, columns, rows, note), *([_cases_table(several)] if several else [])],
        then=[line("relevant-words", "--model", model, "--pairs", pairs)],
    )


def _cases_table(cases: Sequence[Row]) -> Table:
    columns = (
        Column("query", "query", "text"),
        Column("candidate", "candidate", "text"),
        Column("label", "label", decimals=1),
        Column("model", "cosine", decimals=3),
        *([Column("baseline", "baseline", decimals=3)] if "baseline" in cases[0] else []),
    )
    note = f"the first {min(CASES, len(cases)):,} of {len(cases):,} candidates"
    return Table("Queries with several candidates", columns, cases[:CASES], note)


@declared
def relevant_words(
    model: ModelNamed,
    pairs: Pairs,
    *,
    language: Language = "en",
    least: Annotated[float, Option("Lowest number of a pair whose texts count as related.")] = 4.0,
    every: Annotated[
        bool,
        Option(
            "Choose among all words of both texts, each with all of its occurrences, one of each pair, as published; "
            "not a content word of each text."
        ),
    ] = False,
    out: Annotated[
        str | Path | None,
        out_option("Folder to write: words and their parts of speech as JSON, and a plot.", "DIR"),
    ] = None,
    device: Device = "auto",
    overwrite: Overwrite = False,
    progress: bool | None = None,
    **reading: Reads,
) -> Result:
    """Show which words make related texts similar.

    Words are counted by their part of speech.
    """
    reads = [pairs, model]
    place = None if out is None else Place(Path(out), overwrite, reads=reads, resumable=False)
    if place is not None:
        check_output(place)
    from sparse_adapt.plugins.research.parsing import Parser
    from sparse_adapt.plugins.research.relevance import (
        find_relevant_words,
        tabulate_relevance,
        write_relevance,
    )
    from sparse_adapt.plugins.research.similarity import read_likenesses

    related = [pair for pair in read_likenesses(pairs) if pair.similarity >= least]
    if not related:
        raise InputError(pairs, f"no pair has a similarity of {least:g} or more; lower --least")
    parser, encoder = Parser(language), _either(model, device, reading)
    with progress_bars(progress) as bars:
        relevance = find_relevant_words(encoder, related, parser, bars.count("texts"), every=every)
    if place is not None:
        write_relevance(relevance, place)
    wrote = [] if place is None else [(place.folder, "relevance.json, relevance.png")]
    return Result(f"{model} on {pairs}", relevance.to_dict(), [tabulate_relevance(relevance)], wrote)


def _either(model: str, device: str, reading: dict[str, int | None]) -> "EitherEncoder":
    """A SPLADE model or a dense one, on a device."""
    from sparse_adapt.model.kinds import open_encoder
    from sparse_adapt.model.reading import Reading

    return open_encoder(model, Reading(device=device, **reading))


# -- many models on many collections ----------------------------------------------------------------------


def suite(
    file: str | Path,
    out: str | Path | None = None,
    *,
    explain: bool = False,
    overwrite: bool = False,
    resume: bool = False,
    device: str = "auto",
    progress: bool | None = None,
) -> Result:
    """Measure every row of a suite file on every collection: in tables, a file for each form, a plot."""
    from sparse_adapt.model.reading import choose_device
    from sparse_adapt.plugins.research.suite.measure import run_suite
    from sparse_adapt.plugins.research.suite.settings import read_suite
    from sparse_adapt.plugins.research.suite.tables import drawn, suite_object, suite_tables, write_results

    plan, place = read_suite(file), None if out is None else Path(out)
    with progress_bars(progress) as bars:
        outcome = run_suite(
            plan,
            None if place is None else Place(place, overwrite, resume),
            explain=explain,
            device=choose_device(device),
            progress_for=bars.count,
            finish=write_results,
        )
    again = ["evaluate", "--suite", file, "-o", free("suite") if place is None else place]
    wrote, notes = [], list[str]()
    if place is not None:
        pictures, lacking = drawn(place)
        wrote = [(place, f"suite.json, suite.md, suite.tex, {', '.join(pictures)}, vectors")]
        notes = [lacking] if lacking else []
        again += ["--overwrite", "--explain"]
    result = suite_object(outcome), suite_tables(outcome)
    return Result(str(file), *result, wrote, [line(*again)], notes=notes)


def suite_file() -> Result:
    """A suite file to fill in, every key explained."""
    from sparse_adapt.plugins.research.suite.settings import suite_template

    text = suite_template().rstrip("\n")
    return Result("a suite file to fill in", text, [text])
