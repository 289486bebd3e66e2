"""Published: the six published loss terms as they are, with the weights that their authors' log gives away.

Kept to be compared with: `distill` has these terms on raw logits, on calibrated scores and beside an anchor.
A text of a step that is a candidate of two queries counts twice, as where every query brings its own candidates.
Dimensions: Q queries, N candidates each, C candidates of a step, D domain tokens, V vocabulary.
A loss term is a scalar: ().
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sparse_adapt.objectives.loss_terms import OBJECTIVES, term
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CANDIDATES, CORPUS, TERMS, Inputs, beside
from sparse_adapt.stages.stage import Stage
from sparse_adapt.training.settings import Trained, Training

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray
    from torch import Tensor

    from sparse_adapt.collection.examples import Candidates
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.objectives.scores import Compared, Drawn
    from sparse_adapt.objectives.token_scales import LearntScales


class PublishedWeights(Settings):
    """Weights of the six terms, solved from eight lines of the published log (they leave at most 6e-4)."""

    kd: float = term(1.0, "Squared distance of each score to the teacher's.", f"{OBJECTIVES}.scores:kd")
    rank: float = term(0.5, "The teacher's best candidate before the others.", f"{OBJECTIVES}.scores:rank")
    sparsity: float = term(
        1e-4,
        "Mean query weight times mean document weight, summed over all but domain tokens.",
        "sparse_adapt.plugins.research.stages.published:published_sparsity",
    )
    domain: float = term(
        10.0,
        "A domain token has weight where a text holds it.",
        "sparse_adapt.plugins.research.stages.published:published_domain",
    )
    contrast: float = term(
        5.0, "Relevant candidates score a margin above the others.", f"{OBJECTIVES}.scores:contrast"
    )
    expand: float = term(
        10.0,
        "A query has the domain tokens that its relevant documents hold.",
        "sparse_adapt.plugins.research.stages.published:published_expand",
    )


class Published(Training):
    """Score documents as a teacher does, by the six published terms and nothing else.

    Domain tokens are the terms that are one token of the model, those that it had before an extension as well.
    """

    weights: PublishedWeights = setting(PublishedWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    learning_rate: float | None = setting(
        1e-5, "Highest learning rate of the weights that the base model brought, however wide it is.", gt=0
    )
    new_learning_rate: float = setting(1e-5, gt=0)
    epochs: float | None = setting(50, gt=0, le=1e6)
    batch_size: int = setting(2, "Queries of a step, each with its candidates.", unit="queries", ge=1)
    ramp: float = setting(0.0, ge=0, le=1)
    tau: float = setting(1.0, "What scores are divided by in `rank`. Below 1 the best counts more.", gt=0)
    margin: float = setting(
        5.0, "Gap between relevant and other candidates in `contrast`.", unit="score", gt=0
    )
    floor: float = setting(
        2.0, "Weight that a domain token should have where a text holds it.", unit="weight", gt=0
    )


class PublishedTerms:
    """The task over queries with scored candidates, for `training.train`."""

    name = "published"
    token_scales: "LearntScales | None" = None

    def __init__(
        self,
        encoder: "SparseEncoder",
        candidates: "Sequence[Candidates]",
        documents: Mapping[str, str],
        settings: Published,
        terms: Sequence[str] = (),
    ) -> None:
        """`documents`: text of every document, by id; the candidates are among them.

        `terms`: those of them that are one token are domain tokens, as the new tokens of the encoder are.
        """
        import numpy as np

        from sparse_adapt.objectives.loss_terms import functions
        from sparse_adapt.objectives.matching import Cost, Matched
        from sparse_adapt.objectives.scores import ScoreComparison
        from sparse_adapt.objectives.texts import says

        self.settings = settings
        self.steps = settings.steps_for(len(candidates))
        self.weights: Mapping[str, float] = settings.weights.model_dump()
        self.functions = functions(type(settings.weights))
        self.matched = Matched(encoder, candidates, documents, None)
        self.comparison = ScoreComparison("mse", 1.0, None, settings.tau, settings.margin)
        self.domain = domain_tokens(encoder, terms)
        self.cost = Cost(0.0, 0.0, 0.0, None, encoder.old_size)
        self.queries_say = says(self.matched.queries.ids, self.domain)
        self.documents_say = says(self.matched.documents.ids, self.domain)
        row = self.matched.scored.row
        relevant = [[row[name] for name in relevant_of(entry)] for entry in candidates]
        self.wanted = np.array([self.documents_say[rows].any(axis=0) for rows in relevant])

    def batch(self, random: "Generator") -> "Drawn":
        """Queries drawn without repetition, each with all of its candidates."""
        return self.matched.scored.draw(self.settings.batch_size, random)

    def terms(self, encoder: "SparseEncoder", batch: "Drawn") -> "dict[str, Tensor]":
        """Each term of what the encoder makes of a batch, unweighted."""
        read = PublishedReading(self, encoder, batch, *self.matched.read(encoder, batch))
        return {key: function(read) for key, function in self.functions.items()}


@dataclass
class PublishedReading:
    """What one step has read: weights of its queries (Q, V) and of its documents (B, V)."""

    task: PublishedTerms
    encoder: "SparseEncoder"
    drawn: "Drawn"
    queries: "Tensor"
    documents: "Tensor"

    @cached_property
    def compared(self) -> "Compared":
        """The scores of the candidates beside the teacher's; what the teacher scores above 0 is relevant."""
        from sparse_adapt.training import losses

        products = losses.scores(self.queries, self.documents)
        scores = products.gather(1, self.drawn.places.to(self.encoder.device))
        comparison = self.task.matched.scored.compared(scores, self.drawn, self.task.comparison)
        return replace(comparison, positive=(comparison.teacher > 0.0) & comparison.present)

    @cached_property
    def slots(self) -> "Tensor":
        """The row of each candidate among the documents of the step: (C)."""
        return self.drawn.places[self.drawn.present]

    @cached_property
    def candidates(self) -> "Tensor":
        """Weights of all candidates, one that two queries share twice: (C, V)."""
        return self.documents[self.slots.to(self.encoder.device)]

    @property
    def domain(self) -> "Tensor":
        """Ids of the domain tokens: (D)."""
        import torch

        return torch.from_numpy(self.task.domain).to(self.encoder.device)


def published_sparsity(read: PublishedReading) -> "Tensor":
    """Mean query weight times mean candidate weight, over all tokens but those of the domain."""
    import torch

    from sparse_adapt.training import losses

    old = torch.ones(read.queries.shape[1], device=read.queries.device)
    old[read.domain] = 0.0
    return losses.cross_sparsity(read.queries, read.candidates, old)


def published_domain(read: PublishedReading) -> "Tensor":
    """Domain tokens have the weight of the floor where a query or a candidate holds them."""
    import numpy as np

    from sparse_adapt.objectives.texts import marks
    from sparse_adapt.training import losses

    task, drawn = read.task, read.drawn
    queries, candidates = read.queries[:, read.domain], read.candidates[:, read.domain]
    in_queries = marks(task.queries_say[drawn.queries], queries)
    in_documents = marks(task.documents_say[np.array(drawn.documents)[read.slots.numpy()]], queries)
    floor = task.settings.floor
    return losses.hinge_share(queries, in_queries, floor) + losses.hinge_share(
        candidates, in_documents, floor
    )


def published_expand(read: PublishedReading) -> "Tensor":
    """A query has the domain tokens that its relevant documents hold."""
    from sparse_adapt.objectives.texts import marks
    from sparse_adapt.training import losses

    weights = read.queries[:, read.domain]
    return losses.expand_by_query(weights, marks(read.task.wanted[read.drawn.queries], weights))


def domain_tokens(encoder: "SparseEncoder", terms: Sequence[str]) -> "NDArray[np.int64]":
    """Sorted ids of the new tokens and of the terms that are one token: (D)."""
    import numpy as np

    new = {token.token_id for token in encoder.new_tokens}
    inside = [f" {text}" for text in terms]  # as within a text, where some tokenizers mark a word's beginning
    pieces = encoder.tokenizer(inside, add_special_tokens=False)["input_ids"] if inside else []
    single = {ids[0] for ids in pieces if len(ids) == 1} - {encoder.tokenizer.unk_token_id}
    return np.array(sorted(new | single), dtype=np.int64)


def relevant_of(entry: "Candidates") -> list[str]:
    """The candidates that the teacher scores above 0."""
    return [name for name, score in zip(entry.document_ids, entry.teacher_scores, strict=True) if score > 0]


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Published) -> "PublishedTerms":
    """The task over queries with scored candidates. Terms that nobody names lie beside the corpus."""
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.objectives.scores import with_theirs

    assert isinstance(encoder, SparseEncoder)
    documents = {document.document_id: document.full_text for document in inputs[CORPUS]}
    documents = with_theirs(documents, inputs[CANDIDATES])
    terms = [each.text for each in inputs.get(TERMS) or ()]
    return PublishedTerms(encoder, inputs[CANDIDATES], documents, settings, terms)


PUBLISHED = Stage(
    "published",
    Published,
    (CANDIDATES, CORPUS, beside(TERMS)),
    build,
    dense=False,
    refuses=("sum", "table", "prompts", "beside"),
    presets={"published": {}},  # its defaults are the source's
    texts=8.0,
)
