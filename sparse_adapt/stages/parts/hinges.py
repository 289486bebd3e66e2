"""Terms that a text says, and terms that a query wants: which of them should be lit, and how brightly.

Dimensions: Q queries, B documents, D new tokens.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sparse_adapt.model.forms import Form
from sparse_adapt.stages.parts.made_up_lessons import marks
from sparse_adapt.stages.parts.targets import Targets
from sparse_adapt.training import losses

if TYPE_CHECKING:
    from sparse_adapt.stages.parts.six_terms import SixTermsReading


@dataclass(frozen=True, slots=True)
class Hinges:
    """How brightly terms should be lit, and by which texts.

    wanted: (all queries, D) terms of a query's relevant documents; unknown: (all documents, D) terms that a document
    may mean though it doesn't say them. `raw`: whether logits are held, or weights, which the form makes.
    """

    targets: Targets
    silence: float
    raw: bool
    form: Form
    wanted: NDArray[np.bool_]
    unknown: NDArray[np.bool_]

    def held(self, logits: Tensor, queries: int) -> tuple[Tensor, Tensor]:
        """What is held of queries and of documents, of largest raw logits (Q + B, D)."""
        values = logits if self.raw else self.form.activate(logits)
        return values[:queries], values[queries:]


def domain(read: "SixTermsReading") -> Tensor:
    """A term is lit where it is said, and silent where nothing is known of it."""
    hinges, drawn, matched = read.task.hinges, read.drawn, read.task.matched
    queries, documents = read.held
    targets = hinges.targets
    said_documents = marks(matched.documents.says[drawn.documents], documents)
    said_queries = marks(matched.queries.says[drawn.queries], queries)
    wanted = marks(hinges.wanted[drawn.queries], queries)
    unknown = marks(hinges.unknown[drawn.documents], documents)
    lit = losses.hinge_above(documents, said_documents, targets.said)
    lit = lit + losses.hinge_above(queries, said_queries, targets.meant)
    silent = losses.hinge_below(documents, ~said_documents & ~unknown, targets.quiet)
    silent = silent + losses.hinge_below(queries, ~said_queries & ~wanted, targets.quiet)
    return lit + hinges.silence * silent


def expand(read: "SixTermsReading") -> Tensor:
    """A query lights the terms that its relevant documents say."""
    hinges, (queries, _) = read.task.hinges, read.held
    wanted = marks(hinges.wanted[read.drawn.queries], queries)
    return losses.expand(queries - hinges.targets.meant, wanted)
