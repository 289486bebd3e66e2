"""How well a model ranks judged queries, beside another: `evaluate`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sparse_adapt.api.checks import a_baseline, check_split
from sparse_adapt.api.following import line
from sparse_adapt.api.insight import last_name
from sparse_adapt.api.options import (
    MODEL_HELP,
    Collection,
    Columns,
    Device,
    General,
    Model,
    Option,
    Reads,
    Split,
    declared,
)
from sparse_adapt.api.runs import BASE
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.report.charts import differences
from sparse_adapt.report.progress import Bars, progress_bars
from sparse_adapt.report.results import Shown
from sparse_adapt.report.sections import Beside, Part, Pictures, Prose, Section, TableRows
from sparse_adapt.report.tables import Column, Evaluated, Row, Table, tabulate_evaluation, to_csv, to_latex

if TYPE_CHECKING:
    from sparse_adapt.api.models import ModelLike
    from sparse_adapt.collection.arguments import Corpus, JudgementsLike, QueriesLike
    from sparse_adapt.collection.columns import ColumnsLike
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.retrieve.evaluate import Collection as JudgedCollection
    from sparse_adapt.retrieve.evaluate import ModelResult
    from sparse_adapt.selection.evidence import Evidence


FIRST, SHOWN = "ndcg@10", "nDCG@10"
BM25 = "bm25"  # word statistics as a baseline
RunnerUp = Annotated[
    "ModelLike | None",
    Option(
        f"What to compare with: a model, bm25 (word statistics with stems), or a TREC run file. {MODEL_HELP}",
        metavar="MODEL_OR_RUN",
        check=a_baseline,
    ),
]
Measures = Annotated[
    Sequence[str],
    Option(
        "Measures, with commas between them; p-values are corrected for the number of them. Another cut may stand "
        "behind @, such as ndcg@20. The first decides which queries won and lost.",
        metavar="A,B",
        commas=True,
        shown="ndcg@10,mrr@10,map,p@1,p@5,recall@100",
    ),
]
CHANGED = 10  # queries that won most, and as many that lost


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """Means of each measure over the judged queries, and each query's own figures.

    `title` says what was measured; `figures` is what `evaluate --json` prints. Measures lie between 0 and 1; those
    that begin with `nonzero` count weights of a document or a query.
    """

    title: str
    figures: Evaluated
    texts: Mapping[str, str] = field(default_factory=dict)  # of the queries, by their ids
    then: Sequence[str] = ()
    heading: str = ""
    lead: str = ""

    @property
    def measures(self) -> dict[str, float]:
        """The model's mean of each measure."""
        return dict(self.figures["model"])

    @property
    def baseline(self) -> dict[str, float] | None:
        """The baseline's, where there is one."""
        return self.figures.get("baseline")

    @property
    def difference(self) -> dict[str, float] | None:
        """The model's less the baseline's, where there is one."""
        return self.figures.get("difference")

    @property
    def p_value(self) -> dict[str, float] | None:
        """How likely chance alone gives so large a difference: two-sided paired randomisation test."""
        return self.figures.get("p_value")

    @property
    def queries(self) -> list[dict[str, Any]]:
        """The figures of each query."""
        return list(self.figures["queries"])

    @property
    def first(self) -> str:
        """The measure that decides: nDCG@10 unless others were asked for."""
        return FIRST if FIRST in self.measures else next(iter(self.measures))

    @property
    def shown(self) -> str:
        """How it reads."""
        return SHOWN if self.first == FIRST else self.first

    @property
    def headline(self) -> str:
        """The measure that decides, beside the baseline's where there is one."""
        headline = f"{self.title}: {self.first} {self.measures[self.first]:.3f}"
        return headline if self.baseline is None else f"{headline}, baseline {self.baseline[self.first]:.3f}"

    def to_dict(self) -> dict[str, object]:
        """Means, differences, then those of each kind of query, then each query's."""
        return dict(self.figures)

    def table(self) -> Table:
        """Measures in rows, over all queries and over those of each kind."""
        return tabulate_evaluation(self.figures, self.title)

    def rows(self) -> Sequence[Row]:
        """A row for each measure, and for each kind of query where these have one."""
        return self.table().rows

    def to_latex(self) -> str:
        """The table for a paper: a `tabular` with the rules of booktabs."""
        return to_latex(self.table())

    def to_csv(self) -> str:
        """The table for another program, numbers in full."""
        return to_csv(self.table())

    def per_query(self) -> Table:
        """A row for each query: its id, kind and text, each measure, and the baseline's where there is one."""
        measures = [name for name in self.queries[0]["model"] if name != "ranking"]
        columns = [Column(key, key, "text") for key in ("query_id", "kind", "query")]
        columns += [Column(name, name, decimals=4) for name in measures]
        if self.baseline is not None:
            columns += [Column(f"baseline {name}", f"baseline {name}", decimals=4) for name in measures]
        rows = [
            {
                "query_id": each["query_id"],
                "kind": each["kind"],
                "query": self.texts.get(str(each["query_id"]), ""),
            }
            | {name: each["model"][name] for name in measures}
            | {f"baseline {name}": each.get("baseline", {}).get(name) for name in measures}
            for each in self.queries
        ]
        return Table(f"{self.title}: each query", tuple(columns), rows)

    def sections(self) -> Sequence[Section]:
        """The table of measures; in detail what was gained and lost with intervals, and queries that changed most."""
        tables = [Section("measures", "", [TableRows(self.table())]), *self._general()]
        if self.baseline is None:
            return tables
        gained = Section("gained", "Gained and lost", self._gained(), detail=True)
        return [*tables, gained, *self._changed()]

    def _general(self) -> list[Section]:
        """General questions, all, by kind and by question word, where they were measured."""
        if "retention" not in self.figures:
            return []
        from sparse_adapt.selection.general import general_table, read_general_rows

        rows = read_general_rows(self.figures["retention"])
        return [Section("general", "", [TableRows(general_table(rows))])]

    def _gained(self) -> list[Part]:
        """The difference in a sentence; then of each kind of query, as a picture and in figures."""
        from sparse_adapt.selection.ruling import in_words

        evidence = [self._evidence(kind) for kind in ("", *self.figures.get("kinds", {}))]
        rows: list[Row] = [
            {
                "name": each.kind,
                "number": each.queries,
                "value": each.gain,
                "low": each.low,
                "high": each.high,
            }
            for each in evidence
        ]
        changes = "; ".join(f"{row['name']} {row['value']:+.3f}" for row in rows)
        picture = differences(
            f"Gained and lost, {self.shown}", rows, description=f"Difference of {self.shown}: {changes}"
        )
        columns = (
            Column("name", "queries", "text"),
            Column("number", "number"),
            Column("value", "change", decimals=3, signed=True),
            Column("low", "from", decimals=3, signed=True),
            Column("high", "to", decimals=3, signed=True),
        )
        note = (
            "The last two columns are the 95 % interval of the change, 1.96 standard errors to either side."
        )
        table = TableRows(Table(f"Change of {self.shown}", columns, rows, note))
        return [
            Prose(*in_words(evidence[0], self.shown)),
            Beside([Pictures([picture]), table]),
        ]

    def _evidence(self, kind: str) -> "Evidence":
        """Both models by the measure that decides, on the queries of one kind or on all."""
        import numpy as np

        from sparse_adapt.selection.evidence import ALL, evidence_of

        chosen = [each for each in self.queries if not kind or each["kind"] == kind]
        model, base = (
            np.array([each[which][self.first] for each in chosen]) for which in ("model", "baseline")
        )
        return evidence_of(kind or ALL, model, base)

    def _changed(self) -> list[Section]:
        if self.baseline is None:
            return []
        import numpy as np

        gaps = np.array([each["model"][self.first] - each["baseline"][self.first] for each in self.queries])
        order = np.argsort(-gaps, kind="stable")
        rows: list[Row] = [
            {
                "query": self._text(row),
                "kind": self.queries[row]["kind"],
                "gap": float(gaps[row]),
            }
            for row in dict.fromkeys([*order[:CHANGED].tolist(), *order[-CHANGED:].tolist()])
            if gaps[row]
        ]
        columns = (
            Column("query", "query", "text"),
            *([Column("kind", "kind", "text")] if self.figures.get("kinds") else []),
            Column("gap", f"change of {self.shown}", decimals=3, signed=True),
        )
        shown = [TableRows(Table("", columns, rows))]
        return [Section("queries", "Queries that won and lost most", shown, detail=True)]

    def _text(self, row: int) -> str:
        """A query's text, or its id where the text isn't known."""
        query_id = str(self.queries[row]["query_id"])
        return self.texts.get(query_id, query_id)


@declared
def evaluate(
    model: Model,
    collection: Collection,
    *,
    queries: "QueriesLike | None" = None,
    judgements: "JudgementsLike | None" = None,
    baseline: RunnerUp = None,
    measures: Measures = (),
    general: General = None,
    split: Split = "test",
    columns: Columns = (),
    device: Device = "auto",
    progress: bool | None = None,
    **reading: Reads,
) -> Evaluation:
    """Encode a collection, search it exactly, and measure, compared with `baseline` where one is named.

    A corpus alone needs `queries` and `judgements`, in memory or as files. Queries without a positive judgement are
    left out. A document that has a query's own id is left out of that query's ranking, as BEIR does (ArguAna, Quora),
    unless such a document is judged relevant. Models may be sparse or dense. Measures are ndcg, mrr, map, p and recall,
    each with a cut (`["ndcg@20", "recall@1000"]`); p-values have Holm's correction over the measures and the kinds of
    query, and over nothing else. What `general` measures is `retention` in the figures. Raises InputError where a
    judged query has no text, and ConfigError where documents in memory come without queries or judgements, or a dense
    model with `general`.

    >>> import sparse_adapt as sa
    >>> found = sa.evaluate(
    ...     "splade-tiny", {"a": "a bird sings", "b": "we save money"}, device="cpu",
    ...     queries={"q": "birds"}, judgements={"q": ["a"]},
    ... )
    >>> found.measures["ndcg@10"]
    1.0
    """
    if isinstance(collection, str) and judgements is None:
        check_split(collection, split)
    from sparse_adapt.api.models import load
    from sparse_adapt.collection.arguments import Corpus
    from sparse_adapt.retrieve.evaluate import check_measure
    from sparse_adapt.selection.evidence import GENERAL
    from sparse_adapt.selection.questions import PACKAGED, general_collection, say_cautions

    for measure in measures:
        check_measure(measure)
    ranked = baseline is not None and is_ranking(baseline)
    if ranked and general is not None:
        raise ConfigError(f"--general compares models, and {baseline} is none; leave one of both out")
    source = Corpus.of(collection, columns)
    judged = _collection(source, queries, judgements, split, columns)
    judged = replace(judged, measures=tuple(measures)) if measures else judged
    named = [model] if baseline is None or ranked else [model, baseline]
    models = [load(each, device, **reading) for each in named]
    title = f"{models[0].source} on {source.name}, {split}"
    questions = None if general is None else general_collection(general)
    sources, encoders = [each.source for each in models], [each.encoder for each in models]
    with progress_bars(progress) as bars:
        other = _ranking(str(baseline), judged) if ranked else None
        figures = measure_models(
            sources, encoders, judged, questions, bars, other, sizes=not measures
        )  # measures that are named come alone
    sources += [str(baseline)] if ranked else []
    if general is not None and questions is not None and general != PACKAGED:
        general_figures = figures["retention"][GENERAL.name]
        say_cautions(
            general, questions, general_figures.get("baseline", general_figures["model"])[GENERAL.measure]
        )
    texts = {query.query_id: query.text for query in judged.queries}
    heading = f"{' beside '.join(map(last_name, sources))} on {last_name(source.name)}"
    lead = f"The judged queries of the split {split}."
    return Evaluation(
        title, figures, texts, _next(sources, source.name, split, judged.queries[0].text), heading, lead
    )


def _next(sources: Sequence[str], collection: str, split: str, query: str) -> list[str]:
    """The base model to compare with, or a query whose ranking may be looked into."""
    model, named = sources[0], ["--model", sources[0]]
    if len(sources) == 1 and model != BASE:
        parts = [] if split == "test" else ["--split", split]
        return [line("evaluate", *named, "--collection", collection, *parts, "--baseline", BASE)]
    return [line("explain", query, *named, "--corpus", collection)]


def measure_models(
    sources: Sequence[str],
    encoders: "Sequence[EitherEncoder]",
    judged: "JudgedCollection",
    general: "JudgedCollection | None",
    bars: Bars,
    ranked: "ModelResult | None" = None,
    *,
    sizes: bool = True,
) -> Evaluated:
    """The figures of one model, or of two of which the second is the baseline; with what they keep of `general`.

    ranked: a baseline that is a ranking; sizes: whether non-zero weights are counted.
    """
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.retrieve.evaluate import evaluate_model, evaluation
    from sparse_adapt.selection.retention import (
        evaluate_with_retention,
        retention_figures,
        texts_in,
        with_p_values,
    )

    texts = texts_in(judged) if general is None else texts_in(judged, general)
    advance = [bars.count(source, texts) for source in sources]
    if general is None:
        pairs = zip(encoders, advance, strict=True)
        results = [evaluate_model(encoder, judged, progress=each) for encoder, each in pairs]
        return evaluation(*results, *([] if ranked is None else [ranked]), sizes=sizes)
    sparse = [encoder for encoder in encoders if isinstance(encoder, SparseEncoder)]
    if len(sparse) < len(encoders):
        raise ConfigError("what a model keeps is measured of sparse models only; leave out general")
    both, groups = zip(*evaluate_with_retention(sparse, judged, general, advance), strict=True)
    content = evaluation(*both, sizes=sizes)
    retention = retention_figures(*groups, questions=general.queries)
    return {**content, "retention": with_p_values(retention, *groups)}


def is_ranking(baseline: "ModelLike") -> bool:
    """Whether a baseline is BM25 or a run file, and no model."""
    return baseline == BM25 or (isinstance(baseline, str | Path) and Path(baseline).is_file())


def _ranking(baseline: str, judged: "JudgedCollection") -> "ModelResult":
    """What BM25 or a run file reaches. Raises InputError for a run that answers none of the queries."""
    from sparse_adapt.collection.readers import read_run
    from sparse_adapt.retrieve.evaluate import DEPTH, evaluate_ranking, own_documents
    from sparse_adapt.teachers.bm25 import Bm25

    if baseline != BM25:
        run = read_run(baseline)
        if not any(query.query_id in run for query in judged.queries):
            raise InputError(baseline, "answers none of the judged queries; name the run of this collection")
        return evaluate_ranking(run, judged)
    index = Bm25.fit([document.full_text for document in judged.documents])
    depth = DEPTH + bool(own_documents(judged))
    found = index.top_k([query.text for query in judged.queries], depth)
    ids = [document.document_id for document in judged.documents]
    pairs = zip(judged.queries, found, strict=True)
    return evaluate_ranking(
        {
            query.query_id: {ids[row]: float(score) for row, score in zip(rows, scores, strict=True)}
            for query, (rows, scores) in pairs
        },
        judged,
    )


def _collection(
    source: "Corpus",
    queries: "QueriesLike | None",
    judgements: "JudgementsLike | None",
    split: str,
    columns: "ColumnsLike",
) -> "JudgedCollection":
    """Documents, queries and judgements: what isn't given lies in the collection's own folder."""
    from sparse_adapt.collection.arguments import judgements_of, queries_of
    from sparse_adapt.retrieve.evaluate import measurable

    place = source.place or source.table
    for name, value in (("queries", queries), ("judgements", judgements)):
        if value is None and not place:
            raise ConfigError(f"documents in memory have no {name}; pass {name}= as well")
    query_source = queries if queries is not None else place
    judged = judgements if judgements is not None else place
    assert query_source is not None and judged is not None, "checked before"
    return measurable(
        source.name, judgements_of(judged, split), queries_of(query_source, columns), source.read(), split
    )
