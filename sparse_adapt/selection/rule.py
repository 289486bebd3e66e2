"""The rule that selects a model, in two sentences.

Of the models that lose at most half a point on general questions and have at most a tenth more weights a document, the
smallest change that loses nothing to the best is selected. It takes the base model's place if it gains on definitions
in other words where it was taught some, and on synthetic queries elsewhere, and loses on no other kind of query.

A gain and a loss are differences whose 95 % interval leaves out 0. Synthetic queries share words with the documents
that they were made from, each kind in its own way, and say nothing of meaning; so each kind counts for itself, known
items count beside them, and definitions decide where there are some. There the synthetic queries count together, beside
the base model and beside a model that learnt to rank and no words: what words bring is no use where it costs every
other query.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sparse_adapt.report.tables import Retained
from sparse_adapt.selection.evidence import (
    BACKGROUND,
    FALSE_ACTIVATIONS,
    IN_OTHER_WORDS,
    KNOWN_ITEMS,
    RETAINED,
    SYNTHETIC,
    Evidence,
)
from sparse_adapt.selection.general import general_sentences, read_general_rows

MAY_LOSE = 0.005  # of a measure, without a word
ACTIVATIONS_ENOUGH = 0.05  # share of general questions that activate a new term

BESIDE_RANKING = f"{SYNTHETIC.name}, beside ranking alone"
TOGETHER = (SYNTHETIC.name, BESIDE_RANKING)

Figures = Mapping[str, Retained]  # by kind of query


class Decision(NamedTuple):
    """The evidence that decides, and the kinds of query that lose beyond chance where their loss counts."""

    deciding: Evidence
    fallen: tuple[Evidence, ...]

    @property
    def refused(self) -> str | None:
        """Why the base model is kept, in words; None where the adapted one is taken."""
        if not self.deciding.gains:
            return f"no gain beyond chance: {self.deciding}"
        return f"a gain that costs others: {self.fallen[0]}" if self.fallen else None


def falls(evidence: Evidence) -> bool:
    """Whether a model loses beyond chance and half a point."""
    return evidence.loses and evidence.gain < -MAY_LOSE


def decide(rows: Sequence[Evidence]) -> Decision:
    """The decision by some evidence, of which the first is of all queries together."""
    deciding = next((row for row in rows if row.kind == IN_OTHER_WORDS.name), rows[0])
    others = rows if deciding.kind != IN_OTHER_WORDS.name else [row for row in rows if row.kind in TOGETHER]
    fallen = [row for row in others if row.loses and row is not deciding]
    return Decision(deciding, tuple(fallen))


# -- what the base model knew, in words -----------------------------------------------------------


def retention_lines(retention: Figures, others: Sequence[str] = ()) -> list[str]:
    """First any fall, by more than half a point; then as much as may be lost, and what was measured.

    others: falls that are known besides.
    """
    if not retention:
        return []
    fallen = [*_falls(retention), *others]
    sentences = [kind.in_words(*kind.figures(retention)) for kind in RETAINED if kind.name in retention]
    general, background = FALSE_ACTIVATIONS.figures(retention)[1], BACKGROUND.figures(retention)[1]
    false_activations = (
        f"{general:.1%} of general questions and {background:.1%} of background texts activate a new term"
    )
    lines = [*general_sentences(read_general_rows(retention)), f"{'; '.join(sentences)}; {false_activations}"]
    return [f"FALLS: {'; '.join(fallen)}", *lines] if fallen else lines


def _falls(retention: Figures) -> Iterator[str]:
    for kind in RETAINED:
        if kind.name in retention and falls(kind.evidence(retention)):
            yield kind.in_words(*kind.figures(retention))
    false_activations = FALSE_ACTIVATIONS.figures(retention)[1]
    if false_activations > ACTIVATIONS_ENOUGH:
        yield f"{false_activations:.0%} of general questions activate a new term"


def falls_of_choice(rows: Sequence[Evidence]) -> Iterator[str]:
    """What falls on queries set aside, whatever is gained beside it."""
    for row in rows:
        means_less = row.kind == IN_OTHER_WORDS.name and row.gain < -MAY_LOSE
        if row.kind != KNOWN_ITEMS.name and (row.loses or means_less):
            yield f"nDCG@10 of {row.kind} {row.base:.3f} -> {row.model:.3f}"
