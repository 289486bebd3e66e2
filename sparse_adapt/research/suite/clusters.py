"""How well clusters of each row's vectors are the groups that people made of some texts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sparse_adapt.report.watching import Watch
from sparse_adapt.research.clusters import of_length_one, v_measure
from sparse_adapt.research.grouped import GroupedText
from sparse_adapt.research.suite.rankers import Workshop
from sparse_adapt.research.suite.settings import Suite, SuiteRanker


class Clustered(NamedTuple):
    """One row on one file of groups: the V-measure of its clusters, of a row of several models their mean."""

    row: str
    groups: str
    v_measure: float


def clustered(
    suite: Suite,
    groups: Mapping[str, Sequence[GroupedText]],
    members: Mapping[str, Mapping[str, SuiteRanker]],
    workshop: Workshop,
    watch: Watch,
) -> Iterator[Clustered]:
    """Every row but the sums, which have no vectors, on every file of groups. `members`: the rankers of each row."""
    rows = [row for row, place in suite.rows.items() if place.sum is None]
    for name, texts in groups.items():
        said = [member.text for member in texts]
        numbers = {group: row for row, group in enumerate(dict.fromkeys(each.group for each in texts))}
        of = np.array([numbers[each.group] for each in texts])
        heard = watch(name, len(said) * sum(len(members[row]) for row in rows))
        for row in rows:
            vectors = [workshop.vectors(member, said, heard) for member in members[row]]
            found = [v_measure(of_length_one(each), of) for each in vectors]
            yield Clustered(row, name, float(np.mean(found)))
