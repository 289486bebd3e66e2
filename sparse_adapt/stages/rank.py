"""Rank: the whole model, of either kind, learns a teacher's ranking alone, gently, at no more weights a text.

For synthetic queries: they are made of the documents, so scores of other texts aren't to be trusted. The
vectors of background texts are held, and beside the model it is learnt what a match on each token counts.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from sparse_adapt.objectives.loss_terms import OBJECTIVES, term
from sparse_adapt.objectives.scoring import Penalised, Scoring
from sparse_adapt.registry import registry
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CANDIDATES, CORPUS, Inputs
from sparse_adapt.stages.record import before_extension
from sparse_adapt.stages.stage import Stage
from sparse_adapt.training.settings import Trained

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

    from sparse_adapt.collection.examples import Candidates
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.objectives.scores import CandidateBatch
    from sparse_adapt.training.loop import Task

PASSES, MOST_STEPS = 4, 300


class RankWeights(Settings):
    """Weights of the loss terms; with `balanced` they are shares of the gradient, but for that of the anchor."""

    anchor: float = term(
        10.0, "Distance of background texts to the vectors that they had.", f"{OBJECTIVES}.anchor:anchor"
    )
    kd: float = term(
        1.0, "Distance of the scores to the teacher's, as `kd` counts it.", f"{OBJECTIVES}.scores:kd"
    )
    sparsity: float = term(
        0.05,
        "Expected work of scoring queries and documents.",
        f"{OBJECTIVES}.matching:sparsity",
        source="Paria et al. 2020, arXiv:2004.05665",
        sparse=True,
    )


class Rank(Scoring):
    """Rank a query's candidates as a teacher does, while general texts keep their vectors. For synthetic queries."""

    weights: RankWeights = setting(RankWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    steps: int | None = setting(
        None,
        "How many times the weights move; by default as often as four passes over the queries take, 300 at the most.",
        unit="steps",
        ge=1,
    )
    batch_size: int = setting(8, "Queries of a step, each with its candidates.", unit="queries", ge=1)
    narrow_rate: ClassVar[float] = 6e-5
    new_learning_rate: float = setting(3e-4, gt=0)
    temperature: float = setting(2.0, gt=0)
    penalised: Penalised = setting("frequent")
    token_scales: Literal["none", "idf", "learnt"] = setting(
        "learnt", "What a match on each token counts: as it is, by its idf, or by a scale that is learnt."
    )
    token_scale_rate: float = setting(6e-3, "Highest learning rate of the token scales' logarithms.", gt=0)
    balanced: bool = setting(
        True,
        "Whether loss weights are shares of the gradient, beside that of the first term that has one.",
        source="Chen et al. 2018, arXiv:1711.02257",
    )

    def settled(self, *, queries: int = 0, terms: int = 0) -> Self:
        """These settings with nothing open: for so many queries, which few steps already teach by heart if few."""
        passes = math.ceil(PASSES * queries / (self.batch_size * self.gradient_accumulation))
        return self.model_copy(update={"steps": self.steps or max(1, min(MOST_STEPS, passes))})


class RankTask:
    """The task over queries with scored candidates, for `training.train`."""

    name = "rank"

    def __init__(
        self,
        encoder: "SparseEncoder",
        candidates: "Sequence[Candidates]",
        documents: Mapping[str, str],
        settings: Rank,
        before: "SparseEncoder | None" = None,
    ) -> None:
        """`documents`: text of every document, by id; the candidates are among them.

        `before`: whose vectors of background texts are held; by default the encoder's own.
        """
        import copy

        from sparse_adapt.objectives.anchor import SparseBackground
        from sparse_adapt.objectives.loss_terms import functions
        from sparse_adapt.objectives.matching import Cost, Matched, penalty
        from sparse_adapt.objectives.scores import ScoreComparison
        from sparse_adapt.objectives.token_scales import LearntScales, first_scales

        self.settings = settings
        self.steps = settings.steps_for(len(candidates))
        self.weights: Mapping[str, float] = settings.weights.model_dump()
        self.functions = functions(type(settings.weights))
        self.matched = Matched(encoder, candidates, documents, settings.longest)
        reference = copy.deepcopy(encoder).requires_grad_(False)
        self.background: SparseBackground | None = None
        if self.weights["anchor"] > 0.0:
            self.background = SparseBackground(encoder, before or reference, settings.seed)
        first, begun = self.matched.first_vectors(reference), None
        if settings.token_scales != "none" or reference.token_scales is not None:
            general = None if self.background is None else self.background.share
            begun = first_scales(reference, lambda: first.documents, general)
        rate = settings.token_scale_rate if settings.token_scales == "learnt" else 0.0
        self.token_scales = None if begun is None else LearntScales(begun, rate)
        self.beside = self.token_scales
        scale = first.scale(begun)
        self.comparison = ScoreComparison(
            settings.kd, settings.temperature, scale if settings.calibrate else None
        )
        costly = penalty(settings.penalised, encoder, first.share)
        first_new = self.matched.documents.first
        self.cost = Cost(settings.flops_query, settings.flops_document, settings.common, costly, first_new)

    def batch(self, random: "Generator") -> "CandidateBatch":
        """Queries drawn without repetition, each with all of its candidates, and background texts."""
        drawn = self.matched.scored.draw(self.settings.batch_size, random)
        others = [] if self.background is None else self.background.draw(random)
        return drawn.beside(others)

    def terms(self, encoder: "SparseEncoder", batch: "CandidateBatch") -> "dict[str, Tensor]":
        """Each term of what the encoder makes of a batch, unweighted: a scalar, ()."""
        from sparse_adapt.objectives.anchor import BackgroundReading

        read = BackgroundReading(self, encoder, batch, *self.matched.read(encoder, batch))
        return {key: function(read) for key, function in self.functions.items()}

    def conclude(self, encoder: "SparseEncoder") -> Mapping[str, object]:
        """Give a taught encoder the token scales that it was taught with; a table for queries takes them up."""
        if self.token_scales is not None:
            encoder.token_scales = self.token_scales.values
            encoder.fold_scales()
        return {}


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Rank) -> "Task[Any]":
    """The task over queries with scored candidates, with its weights at rest before the first step."""
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.objectives.balance import balanced
    from sparse_adapt.objectives.scores import with_theirs

    entries, device = inputs[CANDIDATES], str(encoder.device)
    settings = settings.settled(queries=len(entries))
    documents = {document.document_id: document.full_text for document in inputs[CORPUS]}
    documents = with_theirs(documents, entries)
    extended = inputs.model if settings.weights.anchor > 0.0 else None
    if not isinstance(encoder, SparseEncoder):
        named = ("rank", encoder, entries, documents, settings, extended)
        dense: Task[Any] = registry().find("tasks", "scores")(*named)
        return dense
    before = before_extension(extended, device, SparseEncoder.load)
    task = RankTask(encoder, entries, documents, settings, before)
    if settings.balanced:
        task.weights = balanced(encoder, task, apart={"anchor"})
    return task


RANK = Stage("rank", Rank, (CANDIDATES, CORPUS), build, texts=8.5)
