"""What a report on one term holds: four sections of findings, the corpus around them, and what to do next.

A term that is one token has one entry in the sections on logits and weight; a term in pieces has one for
each piece.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import RenderableType

from diagnostics.advice import State, Step
from sparse_adapt.report.html.parts import Section
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import Row


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Section 1. `replaced` holds the old pieces that a new token stands for, `category` its term's.

    `unspelled` marks an entry that no text is ever split into as a word of its own, such as `##ing`; `listed` says
    whether the file of terms beside the corpus holds the term, and is None where there is no such file.
    """

    token_ids: tuple[int, ...]
    tokens: tuple[str, ...]
    single: bool
    unspelled: bool
    new: bool
    category: str
    replaced: tuple[str, ...]
    listed: bool | None = None


@dataclass(frozen=True, slots=True)
class PositionLogit:
    """One position of the document: the token that stands there, and how strongly it activates the term."""

    position: int
    token: str
    logit: float
    occurrence: bool


@dataclass(frozen=True, slots=True)
class Logits:
    """Section 2 for one token of the term: its logit at every position, and least and average where it stands.

    `occurs_at` lists the positions where it stands for the term; `maximum` is the largest logit of all positions.
    """

    token_id: int
    token: str
    positions: tuple[PositionLogit, ...]
    maximum: PositionLogit
    average_where_it_occurs: float | None
    verdict: str
    occurs_at: tuple[int, ...] = ()
    minimum_where_it_occurs: float | None = None


@dataclass(frozen=True, slots=True)
class Weight:
    """Section 3 for one token of the term: from the largest logit to the weight, twice over.

    `after_log1p` is the weight as the model's form makes it, of all positions where it sums. `encoder_weight` comes
    from `encode`, the others from this module's own reading of the head.
    """

    token_id: int
    token: str
    maximum_logit: float
    after_relu: float
    after_log1p: float
    encoder_weight: float


@dataclass(frozen=True, slots=True)
class RankedToken:
    """One non-zero token of the document. `rank` counts from 1, the heaviest."""

    rank: int
    token_id: int
    token: str
    weight: float
    of_term: bool
    new: bool


@dataclass(frozen=True, slots=True)
class TermRanking:
    """Section 4: where the term's tokens stand among the document's non-zero ones; no rank means weight 0."""

    nonzero: int
    ranks: tuple[int | None, ...]
    heaviest: tuple[RankedToken, ...]


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """The term in one document that holds it, one figure per token of the term."""

    document_id: str
    occurrences: int
    average_logits: tuple[float | None, ...]
    weights: tuple[float, ...]
    ranks: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class CorpusSummary:
    """The term over the corpus: documents that hold it, and how many of the others it fires on all the same.

    It fires where each of its tokens has a weight, and is as heavy as the lightest of them.
    """

    documents: int
    holding: int
    summaries: tuple[DocumentSummary, ...]
    others_examined: int
    others_firing: int
    heaviest_other: str | None
    heaviest_other_weight: float


@dataclass(frozen=True, slots=True, repr=False)
class TokenReport(Result):
    """The five sections on one term. Where no document holds it, `document_id` is None, `text` the term."""

    term: str
    state: State
    vocabulary: Vocabulary
    document_id: str | None
    text: str
    logits: tuple[Logits, ...]
    weights: tuple[Weight, ...]
    ranking: TermRanking
    corpus: CorpusSummary
    next_steps: tuple[Step, ...]

    @property
    def headline(self) -> str:
        """The term, its tokens, its state, and how many documents hold it."""
        tokens = " ".join(self.vocabulary.tokens)
        held = f"in {self.corpus.holding:,} of {self.corpus.documents:,} documents"
        return f"{self.term!r}, {tokens}, {self.state}, {held}"

    def to_dict(self) -> dict[str, Any]:
        """Everything that the tables show, as plain objects and lists."""
        return asdict(self)

    def rows(self) -> Sequence[Row]:
        """The term in each document that holds it, of several tokens the weakest."""
        from diagnostics.report import tabulate_documents  # which reads these reports

        return tabulate_documents(self).rows

    def sections(self) -> Sequence[Section]:
        """The five sections of a page."""
        from diagnostics.pages import term_sections

        return term_sections(self)

    def renderable(self) -> RenderableType:
        """The five sections, under the term and its state."""
        from diagnostics.report import render_token_report

        return render_token_report(self)
