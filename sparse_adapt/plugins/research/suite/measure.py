"""Many rankers over many collections: one table, with intervals, tests, costs and what decided.

DIR/suite.json      every figure, and the settings
DIR/suite.md        the tables for a page
DIR/suite.tex       and for a paper, with the rules of booktabs
DIR/suite.svg       the measure by collection and row, with intervals; also .png and .pdf (with the extra pages)
DIR/suite-queries.png  the measure by query, a box a row (with the extra plot)
DIR/vectors/        what was encoded, by checksum; a suite that is run again starts from it
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sparse_adapt.collection.opening import Location
from sparse_adapt.collection.readers import documents_at, read_queries
from sparse_adapt.collection.sources import bundled
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.files.folders import output_folder
from sparse_adapt.files.place import Place
from sparse_adapt.plugins.research.coin.coining import CARRIED
from sparse_adapt.plugins.research.coin.recovery import Recovery, recovered
from sparse_adapt.plugins.research.groups import GroupedText, of_length_one, read_members, v_measure
from sparse_adapt.plugins.research.suite.changes import Change, changes
from sparse_adapt.plugins.research.suite.rankers import Costs, Workshop, costs, mean_costs
from sparse_adapt.plugins.research.suite.settings import Suite, SuiteRanker
from sparse_adapt.report.progress import ProgressFor, no_progress_for
from sparse_adapt.retrieve.evaluate import Collection, Measured, evaluate_run, read_collection
from sparse_adapt.retrieve.search import TopDocuments
from sparse_adapt.retrieve.significance import Interval, Values, holm, interval, randomisation_test

VECTORS = "vectors"


class Reached(NamedTuple):
    """One row on one collection.

    Of a row of several models each query's measure and each cost is the mean over the models, and `spread` the
    standard deviation of the models' means in the suite's measure; None for a row of one.
    """

    row: str
    collection: str
    measured: Measured
    costs: Costs | None
    spread: float | None = None


class TrainingCost(NamedTuple):
    """What the run folder of a model tells: how long it was trained, in how much memory; None for unknown."""

    seconds: float | None
    peak_memory: int | None


class BaselineDifference(NamedTuple):
    """A row's measure less the baseline's on one collection.

    `p_value` comes from the paired randomisation test, `adjusted` is that after Holm's correction over all
    tests of the suite. `holds` says of a control whether it lost no more than it may; None elsewhere.
    """

    row: str
    collection: str
    value: Interval
    p_value: float
    adjusted: float
    holds: bool | None


class Clustered(NamedTuple):
    """One row on one file of groups: the V-measure of its clusters, of a row of several models their mean."""

    row: str
    groups: str
    v_measure: float


class MeasuredSuite(NamedTuple):
    """A whole suite, measured."""

    suite: Suite
    kinds: dict[str, tuple[str, ...]]  # of each collection's queries, in the order in which they are measured
    reached: tuple[Reached, ...]
    differences: tuple[BaselineDifference, ...]
    recoveries: dict[tuple[str, str], Recovery]  # of row and collection
    changes: tuple[Change, ...]
    training: dict[str, TrainingCost]
    clusters: tuple[Clustered, ...] = ()

    def at(self, row: str, collection: str) -> Reached:
        """One row on one collection."""
        return next(each for each in self.reached if (each.row, each.collection) == (row, collection))


def run_suite(
    suite: Suite,
    place: Place | None,
    *,
    explain: bool = False,
    device: str = "cpu",
    cache: Path | None = None,
    progress_for: ProgressFor = no_progress_for,
    finish: Callable[[MeasuredSuite, Path], None] | None = None,
) -> MeasuredSuite:
    """Measure every row on every collection. Everything that can be wrong is looked at before anything is encoded.

    `cache`: where vectors stay, by default in the folder. `progress_for` is called with each collection and how many
    documents it has; `finish` writes into the folder before it gets its name.
    """
    collections = {name: read_place(suite, name) for name in suite.collections}
    groups = {name: read_members(place.path) for name, place in suite.groups.items()}
    _check_coined(suite, collections)
    folder = nullcontext(None) if place is None else output_folder(place.reading(_read_by(suite)))
    with folder as work:
        own = cache is None and work is not None
        if cache is None and work is not None:
            cache = work / VECTORS
        old = None if place is None else place.folder / VECTORS
        members = members_of(suite)
        workshop = Workshop(
            {name: row for each in members.values() for name, row in each.items()}, cache, old, device
        )
        workshop.check()
        reached: list[Reached] = []
        changed: list[Change] = []
        for name, collection in collections.items():
            single = sum(row.sum is None for row in workshop.rows.values())
            progress = progress_for(name, single * len(collection.documents))
            rankers = workshop.rankers(collection, progress)
            rankings = {member: workshop.find(member, rankers) for member in workshop.rows}
            for row, of_row in members.items():
                measured = [
                    evaluate_run(as_run(collection, rankings[each]), _judged(collection)) for each in of_row
                ]
                spent = [costs(rankers.get(each)) for each in of_row]
                reached.append(_together(suite, row, name, measured, spent))
            if explain:
                first = {row: next(iter(of_row)) for row, of_row in members.items()}
                changed += changes(
                    suite,
                    name,
                    collection,
                    {each.row: each.measured for each in reached if each.collection == name},
                    {row: rankings[member] for row, member in first.items()},
                    {row: rankers[member] for row, member in first.items() if member in rankers},
                )
        clusters = tuple(clustered(suite, groups, members, workshop, progress_for))
        if own:
            workshop.forget_others()
        outcome = MeasuredSuite(
            suite,
            {name: tuple(query.kind for query in each.queries) for name, each in collections.items()},
            tuple(reached),
            tuple(_differences(suite, {(each.row, each.collection): each.measured for each in reached})),
            _recoveries(suite, collections, reached),
            tuple(changed),
            {name: training_of(row.models[0]) for name, row in suite.rows.items() if row.models},
            clusters,
        )
        if work is not None and finish is not None:
            finish(outcome, work)
    return outcome


def members_of(suite: Suite) -> dict[str, dict[str, SuiteRanker]]:
    """Each row's rankers by name: the row itself, or one for each of its models."""
    return {
        name: {name: row}
        if len(row.models) < 2
        else {
            f"{name}[{number}]": row.model_copy(update={"model": model})
            for number, model in enumerate(row.models, start=1)
        }
        for name, row in suite.rows.items()
    }


def _together(
    suite: Suite, row: str, name: str, measured: list[Measured], spent: list[Costs | None]
) -> Reached:
    """What one row reached: the mean over its rankers, and how far they lie apart."""
    values = {
        measure: np.mean([each.values[measure] for each in measured], axis=0)
        for measure in measured[0].values
    }
    known = [each for each in spent if each is not None]
    means = [each.means[suite.top.measure] for each in measured]
    return Reached(
        row,
        name,
        Measured(measured[0].query_ids, values),
        mean_costs(known) if known else None,
        float(np.std(means, ddof=1)) if len(means) > 1 else None,
    )


def read_place(suite: Suite, name: str) -> Collection:
    """A collection of a suite, its queries replaced where the suite names others."""
    place = suite.collections[name]
    if not bundled(place.path).exists() and place.path.startswith((".", "/", "~")):
        raise InputError(place.path, f"no such collection ([collections] {name}); check the path")
    collection = read_collection(place.path, suite.split(name))
    if place.queries is None:
        return collection
    texts = {query.query_id: query for query in read_queries(place.queries)}
    queries = tuple(texts[query.query_id] for query in collection.queries if query.query_id in texts)
    if not queries:
        raise InputError(
            place.queries, f"holds none of the queries that the split {suite.split(name)!r} judges"
        )
    return Collection(collection.documents, queries, collection.judgements)


def as_run(collection: Collection, rankings: list[TopDocuments]) -> dict[str, dict[str, float]]:
    """What was found, by ids."""
    return {
        query.query_id: {
            collection.documents[row].document_id: float(score)
            for row, score in zip(rows, scores, strict=True)
        }
        for query, (rows, scores) in zip(collection.queries, rankings, strict=True)
    }


def training_of(model: str) -> TrainingCost:
    """What the folder of a model, or of the run that it is a stage of, tells of its training."""
    folder = Path(model)
    for path in (folder.parent / "report.json", folder / "report.json", folder / "stage.json"):
        try:
            report = json.loads(path.read_text(encoding="utf-8"))
            training = report.get("adapt", report)  # of a whole adaptation, where the model was made by one
            seconds, memory = training.get("seconds"), training.get("peak_memory")
        except (OSError, ValueError, AttributeError):
            continue
        if isinstance(seconds, int | float):
            return TrainingCost(float(seconds), memory if isinstance(memory, int) else None)
    return TrainingCost(None, None)


def _read_by(suite: Suite) -> list[Location | str | None]:
    """What a suite reads, which its results never replace."""
    rows = [place for row in suite.rows.values() for place in (*row.models, row.dense)]
    collections = [
        place for each in suite.collections.values() for place in (documents_at(each.path), each.queries)
    ]
    return [*rows, *collections, *(each.path for each in suite.groups.values())]


def _judged(collection: Collection) -> dict[str, dict[str, int]]:
    return {query.query_id: collection.judgements[query.query_id] for query in collection.queries}


def _check_coined(suite: Suite, collections: dict[str, Collection]) -> None:
    for name, place in suite.collections.items():
        if place.coined_from is None:
            continue
        kinds = {query.kind for query in collections[name].queries}
        source = {query.query_id for query in collections[place.coined_from].queries}
        if CARRIED not in kinds or not {query.query_id for query in collections[name].queries} <= source:
            raise ConfigError(
                f"[collections] {name}: wasn't coined from {place.coined_from}, or no query of the split carried "
                "a coined word; make it with: sparse-adapt coin"
            )


def _recoveries(
    suite: Suite, collections: dict[str, Collection], reached: list[Reached]
) -> dict[tuple[str, str], Recovery]:
    """The recovery of every row; its floor and ceiling are the baseline's, on the coined and on the original."""
    values = {
        (each.row, each.collection): dict(
            zip(each.measured.query_ids, each.measured.values[suite.top.measure], strict=True)
        )
        for each in reached
    }
    recoveries = {}
    for name, place in suite.collections.items():
        if place.coined_from is None:
            continue
        carried = [query.query_id for query in collections[name].queries if query.kind == CARRIED]
        for row in suite.rows:
            settings = ((row, name), (suite.top.baseline, name), (suite.top.baseline, place.coined_from))
            ours, floor, ceiling = (_picked(values[setting], carried) for setting in settings)
            recoveries[row, name] = recovered(ours, floor, ceiling, seed=suite.top.seed)
    return recoveries


def _picked(values: dict[str, float], query_ids: list[str]) -> Values:
    """The values of some queries, in this order: (queries,)."""
    return np.array([values[query_id] for query_id in query_ids], np.float64)


# -- against the baseline, and against groups -------------------------------------------------------


def _differences(suite: Suite, measured: Mapping[tuple[str, str], Measured]) -> Iterator[BaselineDifference]:
    """Every row but the baseline, on every collection."""
    top = suite.top
    pairs = [(row, name) for name in suite.collections for row in suite.rows if row != top.baseline]
    gaps = [
        measured[row, name].values[top.measure] - measured[top.baseline, name].values[top.measure]
        for row, name in pairs
    ]
    p_values = [randomisation_test(gap, np.random.default_rng(top.seed)) for gap in gaps]
    for (row, name), gap, p_value, adjusted in zip(pairs, gaps, p_values, holm(p_values), strict=True):
        place = suite.collections[name]
        holds = bool(gap.mean() >= -place.loses_at_most) if place.control else None
        yield BaselineDifference(row, name, interval(gap), p_value, adjusted, holds)


def clustered(
    suite: Suite,
    groups: Mapping[str, Sequence[GroupedText]],
    members: Mapping[str, Mapping[str, SuiteRanker]],
    workshop: Workshop,
    progress_for: ProgressFor,
) -> Iterator[Clustered]:
    """Every row but the sums, which have no vectors, on every file of groups. `members`: the rankers of each row."""
    rows = [row for row, place in suite.rows.items() if place.sum is None]
    for name, texts in groups.items():
        member_texts = [member.text for member in texts]
        numbers = {group: row for row, group in enumerate(dict.fromkeys(each.group for each in texts))}
        of = np.array([numbers[each.group] for each in texts])
        progress = progress_for(name, len(member_texts) * sum(len(members[row]) for row in rows))
        for row in rows:
            vectors = [workshop.vectors(member, member_texts, progress) for member in members[row]]
            scores = [v_measure(of_length_one(each), of) for each in vectors]
            yield Clustered(row, name, float(np.mean(scores)))
