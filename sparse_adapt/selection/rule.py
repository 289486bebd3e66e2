"""The rule that selects a model, in two sentences.

Of the models that lose at most half a point on general questions and have at most a tenth more weights a document, the
smallest change that loses nothing to the best is selected. It takes the base model's place if it gains on definitions
in other words where it was taught some, and on synthetic queries elsewhere, and loses on no other kind of query.

A gain and a loss are differences whose 95 % interval leaves out 0. Synthetic queries share words with the documents
that they were made from, each kind in its own way, and say nothing of meaning; so each kind counts for itself, known
items count beside them, and definitions decide where there are some. There the synthetic queries count together, beside
the base model and beside a model that learnt to rank and no words: what words bring is no use where it costs every
other query. `models.choose` carries out the first sentence, `decide` the second; `ruling` puts both in words.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sparse_adapt.selection.evidence import IN_OTHER_WORDS, SYNTHETIC, Evidence

MAY_LOSE = 0.005  # of a measure, without a word
ACTIVATIONS_ENOUGH = 0.05  # share of general questions that activate a new term

BESIDE_RANKING = f"{SYNTHETIC.name}, beside ranking alone"
TOGETHER = (SYNTHETIC.name, BESIDE_RANKING)


class Decision(NamedTuple):
    """The evidence that decides, and the kinds of query that lose where their loss counts."""

    deciding: Evidence
    fallen: tuple[Evidence, ...]

    @property
    def refused(self) -> bool:
        """Whether the model doesn't take the base model's place."""
        return not self.deciding.gains or bool(self.fallen)


def decide(rows: Sequence[Evidence]) -> Decision:
    """The decision by some evidence, of which the first is of all queries together."""
    deciding = next((row for row in rows if row.kind == IN_OTHER_WORDS.name), rows[0])
    others = rows if deciding.kind != IN_OTHER_WORDS.name else [row for row in rows if row.kind in TOGETHER]
    fallen = [row for row in others if row.loses and row is not deciding]
    return Decision(deciding, tuple(fallen))


def falls(evidence: Evidence) -> bool:
    """Whether a model loses beyond chance and half a point."""
    return evidence.loses and evidence.gain < -MAY_LOSE
