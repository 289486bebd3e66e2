"""The model card: the README.md of a model folder, as the Hub reads and shows it.

It holds the licence and the name of the base model, what was added to it, the stages with the settings that aren't
their defaults, measures where there are some, and how the model is loaded and made again. Files appear by their names:
the card names no path of this machine.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from huggingface_hub import ModelCardData

from sparse_adapt import __version__
from sparse_adapt.files.records import toml
from sparse_adapt.files.steps import PATH
from sparse_adapt.files.writing import write_text
from sparse_adapt.model.encoder import VOCABULARY_FILE, NewToken, read_beside, read_vocabulary
from sparse_adapt.model.entries import ENTRIES_FILE
from sparse_adapt.model.exact.defined import DEFINED_FILE, read_defined_settings
from sparse_adapt.model.exact.words import EXACT_WORDS_FILE
from sparse_adapt.model.folder import CARD_FILE, UNKNOWN, ModelOrigin, origin_of
from sparse_adapt.model.idf import TOKEN_SCALES_FILE
from sparse_adapt.model.layout import is_dense
from sparse_adapt.report.tables import MARKDOWN_SIGNS, Column, Table, to_markdown
from sparse_adapt.stages.record import StageRecord, read_stage_record
from sparse_adapt.stages.table import find_stage, stage_names

FIRST = 20  # terms that are named
TAGS = ("sentence-transformers", "sparse-adapt", "domain-adaptation")
OF_SPARSE, OF_DENSE = ("sparse-encoder", "sparse", "splade"), ("sentence-similarity", "dense")
MEASURES = (
    Column("name", "model", "text"),
    Column("ndcg@10", "nDCG@10", decimals=3),
    Column("recall@100", "recall@100", decimals=3),
    Column("general", "nDCG@10 of general questions", decimals=3),
    Column("nonzero_document", "weights a document", decimals=1),
    Column("nonzero_query", "weights a query", decimals=1),
)
HERE = "PATH_OR_HUB_ID"


class Making(NamedTuple):
    """How a model was made: from which base, by which stages (their records, the first one first), by what command.

    `measures` is a table of before and after, `general` one of general questions, where there are some. `ruling`:
    whether to use it, line by line, where a run has measured it.
    """

    base: str
    stages: Sequence[StageRecord] = ()
    command: str = ""
    measures: Table | None = None
    general: Table | None = None
    ruling: Sequence[str] = ()


def making_of(source: str | Path) -> Making:
    """What the records of a model folder, and of those that it was made from, tell; of anything else, its name."""
    record = read_stage_record(source)
    return Making(str(source), []) if record is None else with_record(record)


def with_record(record: StageRecord) -> Making:
    """How the model of a record was made, whose folder may not hold it yet."""
    records: list[StageRecord] = []
    seen, base = set[str](), ""
    before: StageRecord | None = record
    while before is not None and base not in seen:
        seen.add(base)
        base = str(before["model"][PATH])
        if before["stage"] not in stage_names():  # `adapt`, whose record holds all of its stages
            return _adapted(base, before, records)
        records.insert(0, before)
        before = read_stage_record(base) if Path(base).is_dir() else None
    return Making(base, records)


def _adapted(base: str, record: StageRecord, after: Sequence[StageRecord]) -> Making:
    """How an adapted model was made, and by which stages it was taught afterwards."""
    retention, general_figures = record.get("measures"), record.get("general")
    measures = (
        None
        if retention is None
        else Table("", _measured(retention["rows"]), retention["rows"], retention["note"])
    )
    general = None
    if general_figures:
        rows = [{**row, "change": row["model"] - row["baseline"]} for row in general_figures["rows"]]
        general = Table("", general_columns(compared=True), rows, general_figures["note"])
    return Making(base, [*record.get("stages", ()), *after], record.get("command", ""), measures, general)


def general_columns(*, compared: bool) -> tuple[Column, ...]:
    """Of general questions, by kind or question word: nDCG@10 of a model, before and after where two are compared."""
    before = [Column("baseline", "nDCG@10 before", decimals=3)] if compared else []
    change = [Column("change", "change", decimals=3, signed=True)] if compared else []
    first = [Column("first_baseline", "first right before", "share", decimals=1)] if compared else []
    return (
        Column("group", "general questions", "text"),
        Column("questions", "number"),
        *before,
        Column("model", "after" if compared else "nDCG@10", decimals=3),
        *change,
        Column("low", "from", decimals=3, signed=compared),
        Column("high", "to", decimals=3, signed=compared),
        *first,
        Column("first", "after" if compared else "first right", "share", decimals=1),
    )


def _measured(rows: Sequence[Mapping[str, object]]) -> tuple[Column, ...]:
    """The measures that some row has."""
    return tuple(column for column in MEASURES if any(column.key in row for row in rows))


def in_short(record: StageRecord) -> StageRecord:
    """What a card tells of a stage's record: files, and settings that are paths, by their names alone."""
    files = {key: {PATH: _name(entry[PATH])} for key, entry in record["files"].items()}
    settings = {key: _named(value) for key, value in record["settings"].items()}
    short: StageRecord = {"stage": record["stage"]}
    if "steps" in record:
        short["steps"] = record["steps"]
    return {**short, "settings": settings, "files": files}


def write_card(folder: Path, making: Making | None = None) -> None:
    """Write the card of a model folder that is whole but for it; by default of what its records tell."""
    write_text(folder / CARD_FILE, card_text(folder, making or making_of(folder)))


def card_text(folder: Path, making: Making) -> str:
    """The card of a model folder."""
    origin = origin_of(making.base) if making.base else ModelOrigin("another model", "", UNKNOWN, "")
    tokens = [*read_vocabulary(folder)[0], *read_beside(folder)]
    parts = [
        _header(folder, origin),
        _opening(origin, tokens),
        _ruling(making),
        _added(folder, tokens),
        _words(folder),
        _made(making),
    ]
    for title, table in (
        ("Before and after", making.measures),
        ("What it keeps of general knowledge", making.general),
    ):
        if table is not None:
            note = f"\n{table.note}\n" if table.note else ""
            parts.append(f"## {title}\n\n{to_markdown(table)}{note}")
    parts += [_loading(folder), _licence(origin)]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)


# -- parts ----------------------------------------------------------------------------------------


def _header(folder: Path, origin: ModelOrigin) -> str:
    """What the Hub files the model by."""
    dense = is_dense(folder)
    data = ModelCardData(
        license=origin.licence,
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity" if dense else "feature-extraction",
        tags=[*TAGS, *(OF_DENSE if dense else OF_SPARSE)],
        base_model=origin.hub_id or None,
    )
    return f"---\n{data.to_yaml()}\n---\n"


def _opening(origin: ModelOrigin, tokens: Sequence[NewToken]) -> str:
    title = f"{origin.name} with {_counted(tokens)}" if tokens else f"{origin.name}, adapted"
    return f"# {title}\n\nMade from `{origin.hub_id or origin.name}` by sparse-adapt {__version__}.\n"


def _ruling(making: Making) -> str:
    """Whether to use it: the first line as a sentence, the others as a list."""
    if not making.ruling:
        return ""
    first, *others = (line.translate(MARKDOWN_SIGNS) for line in making.ruling)
    listed = "".join(f"- {line}\n" for line in others)
    return f"## Whether to use it\n\n{first}\n" + (f"\n{listed}" if listed else "")


def _added(folder: Path, tokens: Sequence[NewToken]) -> str:
    if not tokens:
        return "No term was added: the vocabulary is that of the base model.\n"
    named = ", ".join(code(token.term) for token in tokens[:FIRST])
    more = f" and {len(tokens) - FIRST:,} more" if len(tokens) > FIRST else ""
    longest = read_vocabulary(folder)[1]
    beside = sum(token.beside for token in tokens)
    has = "a token, an input row, an output row and a bias each"
    if beside:
        has = "an output row and a bias each; texts are read by their pieces as before"
        if beside < len(tokens):
            has += f", but for {len(tokens) - beside:,} that have a token of their own"
    if more:
        files = [VOCABULARY_FILE] * (beside < len(tokens)) + [ENTRIES_FILE] * bool(beside)
        more += f" ({' and '.join(f'`{name}`' for name in files)} list{'s' * (len(files) == 1)} them)"
    return f"## What was added\n\n{_counted(tokens)}, with {has}: {named}{more}. A text is cut at {longest:,} tokens.\n"


def _words(folder: Path) -> str:
    """What exact words are, and which programs know them."""
    if not (folder / EXACT_WORDS_FILE).is_file():
        return ""
    return (
        "## Exact words\n\nA document also matches by its words, as with BM25: they stand in its vector beside the "
        f"weights of tokens (`{EXACT_WORDS_FILE}` has their settings and statistics). sparse-adapt puts them there; "
        "transformers, sentence-transformers and others that load this folder get all weights of tokens and no words: "
        f"a text matches there by what it means alone.{_by_definition(folder)}\n"
    )


def _by_definition(folder: Path) -> str:
    """How many words a query may mean unsaid, and what tells so."""
    defined = read_defined_settings(folder)
    if defined is None:
        return ""
    return (
        f"\n\nA query that means one of {len(defined.words):,} words by its definition, and doesn't say it, "
        f"gets the word as well (`{DEFINED_FILE}` lists them): in sparse-adapt, where {defined.labeller} "
        "reads each query for that."
    )


def _made(making: Making) -> str:
    """The stages, and a run file with the settings that aren't their defaults."""
    if not making.stages:
        return f"## How it was made\n\n```shell\n{making.command}\n```\n" if making.command else ""
    steps = ", ".join(
        f"`{record['stage']}` ({record['steps']:,} steps)" if "steps" in record else f"`{record['stage']}`"
        for record in making.stages
    )
    if making.command:
        again = (
            f"To make it again:\n\n```shell\n{making.command}\n```\n\nIts stages, where not set by default:\n"
        )
    else:
        again = (
            "To make it again, save this as `run.toml` and run `sparse-adapt run run.toml -o made-again`:\n"
        )
    return (
        f"## How it was made\n\nStages, in their order: {steps}. {again}\n```toml\n{_run_file(making)}```\n"
    )


def _run_file(making: Making) -> str:
    files: dict[str, str] = {}
    for record in making.stages:
        files |= {key: _name(entry[PATH]) for key, entry in record.get("files", {}).items()}
    lines = [f"model = {toml(_name(making.base))}"]
    lines += [f"corpus = {toml(files['corpus'])}"] if "corpus" in files else []
    lines += [f"stages = {toml([record['stage'] for record in making.stages])}"]
    for record in making.stages:
        stage = find_stage(record["stage"])
        needed = {each.key: files[each.key] for each in stage.needs if each.key in files}
        default = stage.settings().model_dump(mode="json")
        own = {key: _named(value) for key, value in record["settings"].items() if value != default.get(key)}
        table = {key: value for key, value in {**needed, **own}.items() if value is not None}
        if table:
            lines += ["", f"[{stage.name}]", *(f"{key} = {toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _loading(folder: Path) -> str:
    kind, made = ("SentenceTransformer", "dense") if is_dense(folder) else ("SparseEncoder", "sparse")
    token_scales = (
        f"\n`{TOKEN_SCALES_FILE}` holds a factor for each token, with which sparse-adapt multiplies its weights. "
        "sentence-transformers knows none: there, multiply the vectors of queries by the squares of the token scales, "
        "and the scores are the same.\n"
        if (folder / TOKEN_SCALES_FILE).is_file()
        else ""
    )
    return (
        "## How to load it\n\n"
        f'```python\nfrom sentence_transformers import {kind}\n\nmodel = {kind}("{HERE}")\n'
        f'vectors = model.encode(["a text"])  # {made}\n```\n\n'
        f'```python\nimport sparse_adapt as sa\n\nmodel = sa.load("{HERE}")\nvectors = model.encode(["a text"])\n```\n'
        f"{token_scales}"
    )


def _licence(origin: ModelOrigin) -> str:
    if origin.licence == UNKNOWN:
        sentence = (
            f"Nothing here says under which licence `{origin.name}` may be used: find out before you pass this "
            "model on."
        )
    else:
        name = origin.hub_id or origin.name
        sentence = f"The licence of `{name}` is {origin.licence}, according to {origin.licence_source}."
    return f"## Licence\n\n{sentence} What the stages learnt from may have a licence of its own.\n"


# -- names ----------------------------------------------------------------------------------------


def _name(source: str) -> str:
    """A source by its name where it is a path of this machine."""
    return Path(source).name if Path(source).is_absolute() or Path(source).exists() else source


def _named(value: object) -> object:
    return _name(value) if isinstance(value, str) else value


def _counted(tokens: Sequence[NewToken]) -> str:
    return f"{len(tokens):,} new {'term' if len(tokens) == 1 else 'terms'}"


def code(text: str) -> str:
    """A text as code, whatever signs it holds."""
    return f"<code>{json.dumps(text, ensure_ascii=False)[1:-1]}</code>" if "`" in text else f"`{text}`"
