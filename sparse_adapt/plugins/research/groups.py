"""What a model makes of groups of texts: are those of a group alike, and is one of them found by another?

A group may be an entity under several names, a kind of part, a topic. A group's vector is the mean of those of its
texts, each divided by its length first, so that a long text counts as much as a short one. Two matrices of G groups
by G: the mean absolute difference of two groups' vectors, over the dimensions that any group has a weight in (all, of
a dense model), and the mean cosine of their texts, on the diagonal that of a group's texts with each other.

A file of groups is JSONL, a text on each line; `seen` may say whether a model learnt from it, and `entity` what it is
a text of, whose other texts then don't count as found:

    {"group": "spending", "entity": "zorvex", "text": "what a team spent", "seen": true}

Dimensions: T texts, G groups, V width of the vectors.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import fsum
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.collection.lines import read_objects
from sparse_adapt.collection.streams import Unique, at_least_one
from sparse_adapt.errors import InputError, MissingExtraError
from sparse_adapt.model.kinds import EitherEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode

AT = (1, 3, 5)
ALL = "all"
ROWS_AT_ONCE = 256

Matrix = NDArray[np.float64]


class GroupedText(NamedTuple):
    """A text and the group that it belongs to.

    seen: whether it was among what a model learnt from, where that is known; entity: what of the group it is a text of.
    """

    group: str
    text: str
    seen: bool | None = None
    entity: str | None = None


def read_members(path: str | Path) -> list[GroupedText]:
    """`group`, `text` and perhaps `seen` and `entity` of each line of a JSONL file.

    One text may be of several groups, as a name that two domains share. Raises InputError with the line, for a text
    that a group has twice, and where there are fewer than two groups or none has two texts.
    """
    members, unique = [], Unique(path, "text of a group")
    for record in at_least_one(read_objects(path), path, "groups"):
        seen = record.fields.get("seen")
        if seen is not None and not isinstance(seen, bool):
            raise record.needs("true or false as", "seen")
        entity = record.words("entity") if record.fields.get("entity") is not None else None
        member = GroupedText(record.words("group"), record.words("text"), seen, entity)
        unique.add(f"{member.group}\t{member.text}", record.line)
        members.append(member)
    names = [member.group for member in members]
    if len(set(names)) < 2:
        raise InputError(path, f'all texts are of one group, "{names[0]}"; compare at least two')
    if len(set(names)) == len(names):
        raise InputError(path, "no group has two texts; add another text of one of them")
    return members


@dataclass(frozen=True, slots=True)
class GroupAccuracy:
    """How the k nearest other texts agree with the group of a text, for each k of AT.

    accuracy: which share of them is of its group, A@k of Zhang et al. 2025 (Electronics 14, 4882); it may fall with k.
    found: how often one of them at least is of its group; it can't fall. None where there are no queries.
    Nearest by cosine; of texts equally near the first in the file comes first. Texts of the same entity are left out.
    A text that is the only one of its group can't be found and has no query; it stands among the others as one that
    may be found instead.
    """

    queries: int
    accuracy: dict[int, float | None]
    found: dict[int, float | None]


class Nearest(NamedTuple):
    """A text as a query, the other text that is nearest to it, whether both are of a group, and their cosine."""

    query: str
    candidate: str
    label: bool
    similarity: float


@dataclass(frozen=True, slots=True)
class Groups:
    """One model on groups of texts. `similarity` on the diagonal is None for a group of one text.

    `anisotropy`: the mean cosine of any two texts, 1 where all vectors have collapsed into one direction (Ethayarajh
    2019, arXiv:1909.00512). `v_measure`: how well as many clusters as there are groups, found by k-means, are the
    groups: the harmonic mean of homogeneity and completeness (Rosenberg and Hirschberg 2007).
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    difference: tuple[tuple[float, ...], ...]  # (G, G)
    mean_difference: float  # of all entries of the matrix, its diagonal of zeros too
    similarity: tuple[tuple[float | None, ...], ...]  # (G, G)
    within: float | None  # mean cosine of two texts of a group, each pair once
    between: float | None  # of two texts of different groups
    anisotropy: float  # of any two texts
    found: dict[str, GroupAccuracy]  # all; seen and unseen, where any text says so
    v_measure: float
    nearest: tuple[Nearest, ...]

    def matrices(self) -> dict[str, NDArray[np.float64]]:
        """Both (G, G), by what their entries are; NaN where there is none."""
        return {
            "mean absolute difference": np.array(self.difference, dtype=float),
            "mean cosine": np.array(self.similarity, dtype=float),
        }

    def to_dict(self) -> dict[str, object]:
        """Everything that the tables show, as plain objects and lists."""
        return {**asdict(self), "nearest": [each._asdict() for each in self.nearest]}


def measure_groups(encoder: EitherEncoder, members: Sequence[GroupedText]) -> Groups:
    """What a model of either kind makes of groups."""
    texts = [member.text for member in members]
    if isinstance(encoder, SparseEncoder):
        return compare_groups(encode(encoder, texts, "document"), members)
    return compare_groups(csr_matrix(encoder.encode(texts)), members)


def compare_groups(vectors: csr_matrix, members: Sequence[GroupedText]) -> Groups:
    """The same for vectors that are there already: (T, V). A text without weights has a cosine of 0 with any other."""
    names = tuple(dict.fromkeys(member.group for member in members))
    place = {name: number for number, name in enumerate(names)}
    of = np.array([place[member.group] for member in members])
    sizes = np.bincount(of, minlength=len(names))
    units = of_length_one(vectors)
    belongs = csr_matrix((np.ones(len(of)), (of, np.arange(len(of)))), shape=(len(names), len(of)))
    sums = belongs @ units
    similarity, pairs = _similarity(units, sums, of, sizes)
    inside, total = np.diag(similarity * pairs), similarity * pairs
    across, difference = pairs - np.diag(np.diag(pairs)), _difference(sums, sizes)
    return Groups(
        names=names,
        sizes=tuple(sizes.tolist()),
        difference=tuple(map(tuple, difference.tolist())),
        mean_difference=float(difference.mean()),
        similarity=tuple(
            tuple(float(value) if count else None for value, count in zip(*row, strict=True))
            for row in zip(similarity, pairs, strict=True)
        ),
        within=float(inside.sum() / np.diag(pairs).sum()) if np.diag(pairs).any() else None,
        between=float((total * (across > 0)).sum() / across.sum()) if across.any() else None,
        anisotropy=anisotropy(units),
        found=_found(units, of, members),
        v_measure=v_measure(units, of),
        nearest=tuple(_nearest(units, members)),
    )


def _difference(sums: csr_matrix, sizes: NDArray[np.int64]) -> Matrix:
    """Mean absolute difference of the groups' means (G, G), from their sums (G, V) and sizes (G)."""
    used = np.unique(sums.indices)
    means = sums[:, used].toarray() / sizes[:, None]
    if not len(used):
        return np.zeros((len(sizes), len(sizes)))
    return np.stack([np.abs(means - row).mean(axis=1) for row in means])


def _similarity(
    units: csr_matrix, sums: csr_matrix, of: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[Matrix, Matrix]:
    """Mean cosine of the texts of two groups, and how many pairs of texts that is of, both (G, G)."""
    products = (sums @ sums.T).toarray()
    squares = np.asarray(
        units.multiply(units).sum(axis=1)
    ).ravel()  # of each text with itself, which is no pair
    products -= np.diag(np.bincount(of, squares, minlength=len(sizes)))
    pairs = np.outer(sizes, sizes).astype(np.float64) - np.diag(sizes)
    return np.divide(products, pairs, out=np.zeros_like(products), where=pairs > 0), pairs


def _nearest(units: csr_matrix, members: Sequence[GroupedText]) -> Iterator[Nearest]:
    """For each text the nearest other one, by vectors of length 1 (T, V); of several as near the first in the file."""
    for row, order in _by_nearness(units, members):
        if not len(order):  # all texts are of one entity
            continue
        own, other = members[row], members[int(order[0])]
        cosine = float(np.round((units[row] @ units[int(order[0])].T).sum(), 12))
        yield Nearest(own.text, other.text, own.group == other.group, cosine)


def _by_nearness(
    units: csr_matrix, members: Sequence[GroupedText]
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each text with the others, nearest first, but for those of its entity; units: (T, V) of length 1."""
    entities = np.array([f"{each.group}\t{each.entity}" for each in members])
    named = np.array([each.entity is not None for each in members])
    for start in range(0, len(members), ROWS_AT_ONCE):
        cosines = (units[start : start + ROWS_AT_ONCE] @ units.T).toarray()
        for row, values in enumerate(cosines, start=start):
            order = np.argsort(-np.round(values, 12), kind="stable")
            own = (entities == entities[row]) & named if named[row] else np.arange(len(members)) == row
            yield row, order[~own[order]]


def _found(
    units: csr_matrix, of: NDArray[np.int64], members: Sequence[GroupedText]
) -> dict[str, GroupAccuracy]:
    """How a text's nearest agree with its group; units: (T, V) of length 1, of: (T) its group."""
    right = {k: np.zeros(len(of)) for k in AT}  # the share of the k nearest that is of the same group
    asked = np.zeros(len(of), dtype=bool)
    for row, order in _by_nearness(units, members):
        same = of[order] == of[row]
        asked[row] = same.any()
        for k, shares in right.items():
            shares[row] = same[:k].mean() if len(same) else 0.0
    seen = [member.seen for member in members]
    groups = {ALL: asked}
    if any(each is not None for each in seen):
        groups["seen"] = asked & np.array([each is True for each in seen])
        groups["unseen"] = asked & np.array([each is False for each in seen])
    return {
        name: GroupAccuracy(
            int(rows.sum()),
            {k: fsum(shares[rows]) / rows.sum() if rows.any() else None for k, shares in right.items()},
            {k: float((shares[rows] > 0).mean()) if rows.any() else None for k, shares in right.items()},
        )
        for name, rows in groups.items()
    }


# -- vectors ----------------------------------------------------------------------------------------


def of_length_one(vectors: csr_matrix) -> csr_matrix:
    """The same vectors (T, V) divided by their lengths; an empty one stays empty."""
    rows = csr_matrix(vectors, dtype=np.float64)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return csr_matrix(rows.multiply(scale[:, None]))


def anisotropy(units: csr_matrix) -> float:
    """Mean cosine of any two of some texts, by vectors of length 1 (T, V): 1 where all have collapsed into one."""
    texts = units.shape[0]
    together = np.asarray(units.sum(axis=0)).ravel()
    alone = float(units.multiply(units).sum())
    return float((together @ together - alone) / max(1, texts * (texts - 1)))


def v_measure(units: csr_matrix, of: NDArray[np.int64]) -> float:
    """How well k-means finds the groups: 1 where its clusters are the groups, 0 where they say nothing of them.

    units: (T, V) vectors of length 1; of: (T) the number of each text's group. There are as many clusters as groups.
    The harmonic mean of homogeneity and completeness: Rosenberg and Hirschberg 2007.

    Raises MissingExtraError, with its pip line, without scikit-learn.
    """
    try:
        from sklearn.cluster import KMeans  # which takes a second to load
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.metrics import v_measure_score
    except ModuleNotFoundError as error:
        raise MissingExtraError("scikit-learn", "research") from error

    means = KMeans(n_clusters=int(of.max()) + 1, n_init=10, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # where texts are the same
        clusters = means.fit_predict(units)
    return float(v_measure_score(of, clusters))
