"""Distill: the whole model, of either kind, learns to score as a teacher does.

Of a sparse encoder queries, their candidates and the first synthetic texts are read in one pass; every loss term is a
function of what was read. Dimensions: Q queries, N candidates each, B documents, S synthetic texts, D new tokens,
V vocabulary.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, compress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

from sparse_adapt.objectives.loss_terms import OBJECTIVES, term
from sparse_adapt.objectives.scoring import Scoring
from sparse_adapt.objectives.targets import LABELLER, Targets, many_steps
from sparse_adapt.registry import registry
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CANDIDATES, CORPUS, DICTIONARY, Inputs, inherited
from sparse_adapt.stages.stage import Stage
from sparse_adapt.training.settings import Trained

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray
    from torch import Tensor

    from sparse_adapt.collection.examples import Candidates
    from sparse_adapt.collection.glossary import Definition
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.objectives.hinges import TermReading
    from sparse_adapt.objectives.meanings import Sources
    from sparse_adapt.objectives.scores import CandidateBatch
    from sparse_adapt.synthetic.windows import SyntheticTexts
    from sparse_adapt.training.loop import Task

FEW = 32  # queries up to which a distillation is short
MANY_QUERIES = 300  # steps of more queries, for one term


class DistillWeights(Settings):
    """Weights of the six terms, of the anchor, which keeps the rest, and of examples of synthetic texts."""

    kd: float = term(
        0.05, "Distance of the scores to the teacher's, as `kd` counts it.", f"{OBJECTIVES}.scores:kd"
    )
    rank: float = term(0.5, "The teacher's best candidate before the others.", f"{OBJECTIVES}.scores:rank")
    sparsity: float = term(
        0.1,
        "Expected work of scoring queries and documents.",
        f"{OBJECTIVES}.matching:sparsity",
        source="Paria et al. 2020, arXiv:2004.05665",
        sparse=True,
    )
    contrast: float = term(
        0.2, "Relevant candidates score a margin above the others.", f"{OBJECTIVES}.scores:contrast"
    )
    domain: float = term(
        1.0,
        "A term is active where it is said, and nowhere else.",
        f"{OBJECTIVES}.hinges:domain",
        sparse=True,
    )
    expand: float = term(
        1.0,
        "A query activates the terms that its relevant documents say.",
        f"{OBJECTIVES}.hinges:expand",
        sparse=True,
    )
    anchor: float = term(
        20.0,
        "Distance of texts to the vectors that they had; of dense encoders background texts.",
        f"{OBJECTIVES}.anchor:anchor",
    )
    recall: float = term(
        1.0,
        "A term is active where it is meant, in synthetic texts.",
        f"{OBJECTIVES}.hinges:recall_term",
        sparse=True,
    )


class Distill(Scoring):
    """Score a query's candidates as a teacher does, while other texts keep their vectors. For queries of people."""

    weights: DistillWeights = setting(DistillWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    steps: int | None = setting(
        None,
        "How many times the weights move; the default follows from the numbers of queries and terms.",
        unit="steps",
        ge=1,
    )
    batch_size: int | None = setting(  # type: ignore[assignment] # settled before use
        None, "Queries of a step; the default follows from the number of queries.", unit="queries", ge=1
    )
    new_learning_rate: float = setting(1e-3, gt=0)
    kd: Literal["mse", "margin_mse", "kl"] = setting("margin_mse")
    tau: float = setting(1.0, "What scores are divided by in `rank`. Below 1 the best counts more.", gt=0)
    margin: float = setting(
        5.0, "Gap between relevant and other candidates in `contrast`.", unit="score", gt=0
    )
    targets: Targets | None = setting(
        None, "Logits that a term should have; the default follows from the number of terms."
    )
    labeller: str = setting(
        LABELLER,
        "Dense encoder that tells which term a synthetic text means; with `none` a text means what it was made from.",
    )
    samples: int = setting(
        64,
        "Synthetic texts of a step that are drawn from everywhere; as many more mean a term.",
        unit="texts",
        ge=1,
    )
    raw_logits: bool = setting(
        True, "Whether terms are held to raw logits. Pooled weights give an inactive token no gradient."
    )
    common: float = setting(10.0, ge=0)
    general_candidates: int = setting(
        4,
        "General passages among the candidates of each query, those that the model finds first; 0 for none.",
        unit="passages",
        ge=0,
    )
    balanced: bool = setting(
        False,
        "Whether loss weights are shares of the gradient, beside that of the first term that has one.",
        source="Chen et al. 2018, arXiv:1711.02257",
    )
    inactive_weight: float = setting(
        2.0,
        "Weight of texts that don't mean a term, beside those that do: a higher one gives fewer false activations.",
        ge=0,
    )

    def settled(self, *, queries: int = 0, terms: int = 0) -> Self:
        """These settings with nothing open: what isn't given is that for so many queries and new terms.

        Many queries are drawn two at a time, so that more steps teach, by synthetic texts, which of many terms is
        meant.
        """
        steps, size = (150, 4) if queries <= FEW else (many_steps(terms, MANY_QUERIES), 2)
        return self.model_copy(update={"steps": self.steps or steps, "batch_size": self.batch_size or size})


class SixTerms:
    """The task over queries with scored candidates, for `training.train`."""

    name = "distill"

    def __init__(
        self,
        encoder: "SparseEncoder",
        candidates: "Sequence[Candidates]",
        documents: Mapping[str, str],
        settings: Distill,
        definitions: "Sequence[Definition]" = (),
        passages: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`documents`, `passages`: texts of the corpus and of elsewhere, by id; the candidates are among them.

        `definitions`: what the labeller knows besides of texts that mean a term.
        """
        import copy

        from sparse_adapt.objectives.anchor import CorpusAnchor
        from sparse_adapt.objectives.hinges import Hinges
        from sparse_adapt.objectives.loss_terms import functions
        from sparse_adapt.objectives.matching import Cost, Matched, penalty
        from sparse_adapt.objectives.scores import ScoreComparison
        from sparse_adapt.objectives.texts import general_passages
        from sparse_adapt.objectives.token_scales import LearntScales

        terms = len(encoder.new_tokens)
        self.targets = settings.targets or Targets.of(labelled=settings.labeller != "none")
        settings = settings.settled(queries=len(candidates), terms=terms).model_copy(
            update={"targets": self.targets}
        )
        self.settings = settings
        self.steps = settings.steps_for(len(candidates))
        self.weights: Mapping[str, float] = settings.weights.model_dump()
        self.functions = functions(type(settings.weights))
        self.matched = Matched(encoder, candidates, {**documents, **passages}, settings.longest)
        self.reference = copy.deepcopy(encoder).requires_grad_(False)
        first = self.matched.first_vectors(self.reference)
        own = None if self.reference.token_scales is None else self.reference.token_scales_of()
        self.token_scales = None if own is None else LearntScales(own, 0.0)
        self.beside = self.token_scales
        scale = first.scale(own)
        self.comparison = ScoreComparison(
            settings.kd,
            settings.temperature,
            scale if settings.calibrate else None,
            settings.tau,
            settings.margin,
        )
        wanted = self._wanted(candidates)
        share, unknown = first.share, self.matched.documents.says & False
        sources, rows = self._sources(encoder, definitions, wanted, len(documents))
        self.meanings = self._meanings(sources, rows)
        if self.meanings is not None:
            share = self.meanings.document_share
            unknown[: len(rows)] = self.meanings.unknown[rows.start : rows.stop]
        known = self.meanings is not None and self.matched.documents.new > 0
        self.learns_meanings = known and self.weights["recall"] > 0.0
        self.hinges = Hinges(
            self.targets, settings.inactive_weight, settings.raw_logits, encoder.form, wanted, unknown
        )
        costly = penalty(settings.penalised, encoder, share)
        first_new = self.matched.documents.first
        self.cost = Cost(settings.flops_query, settings.flops_document, settings.common, costly, first_new)
        self.anchor: CorpusAnchor | None = None
        if self.weights["anchor"] > 0.0:
            self.anchor = CorpusAnchor(
                self.reference, self.matched.documents, general_passages(encoder), costly
            )

    def batch(self, random: "Generator") -> "CandidateBatch":
        """Queries drawn without repetition, each with all of its candidates, and texts beside them."""
        from sparse_adapt.objectives.texts import some_passages

        assert self.settings.batch_size is not None, "settled when the task was made"
        drawn = self.matched.scored.draw(self.settings.batch_size, random)
        samples = None if self.meanings is None else self.meanings.draw(self.settings.samples, random)
        others = [] if self.anchor is None else self.anchor.draw(len(drawn.queries), random)
        general = [] if self.anchor is None else some_passages(self.anchor.general, random)
        return drawn.beside(others, general, samples)

    def terms(self, encoder: "SparseEncoder", batch: "CandidateBatch") -> "dict[str, Tensor]":
        """Each term of what the encoder makes of a batch, unweighted: a scalar, ()."""
        read = self.read(encoder, batch)
        return {key: function(read) for key, function in self.functions.items()}

    def read(self, encoder: "SparseEncoder", batch: "CandidateBatch") -> "TermReading":
        """Queries, documents and, where the anchor holds some, the first synthetic texts, in one pass."""
        import torch

        from sparse_adapt.objectives.anchor import SHORT
        from sparse_adapt.objectives.hinges import TermReading

        documents, before = self.matched.documents, None
        short = [] if batch.samples is None or self.anchor is None else batch.samples.token_ids[:SHORT]
        queries = documents.unclipped
        if self.anchor is not None:
            with torch.no_grad():
                before = self.anchor.before.weights(batch.documents)
            queries = queries.expand(len(batch.queries), -1)
            queries = torch.cat([queries, documents.unclipped_beside(before, len(short))])
        pooled = encoder([*self.matched.ids(batch), *short], queries)
        parts = pooled.weights.split([len(batch.queries), len(batch.documents), len(short)])
        return TermReading(self, encoder, batch, parts[0], parts[1], parts[2], short, pooled.maximum, before)

    def conclude(self, encoder: "SparseEncoder") -> Mapping[str, object]:
        """Give a taught encoder the token scales that it was taught with."""
        if self.token_scales is not None:
            encoder.token_scales = self.token_scales.values
        return {}

    def _wanted(self, candidates: "Sequence[Candidates]") -> "NDArray[np.bool_]":
        """New tokens that the relevant documents of each query say: (all queries, D)."""
        import numpy as np

        from sparse_adapt.objectives.scores import relevant_to

        says, row = self.matched.documents.says, self.matched.scored.row
        columns = []
        for entry in candidates:
            relevant = compress(entry.document_ids, relevant_to(entry))
            columns.append(says[[row[name] for name in relevant]].any(axis=0))
        return np.array(columns)

    def _sources(
        self,
        encoder: "SparseEncoder",
        definitions: "Sequence[Definition]",
        wanted: "NDArray[np.bool_]",
        own: int,
    ) -> "tuple[Sources, range]":
        """What texts are made up of, in the order of the dictionary stage, so that these are the same texts.

        Beside it which of them are documents that a search is to find: the first `own`, which are the corpus's.
        wanted: (Q, D) terms that a query's documents say.
        """
        from sparse_adapt.objectives.meanings import Sources, defined, sayings
        from sparse_adapt.objectives.texts import Texts

        of_each = [sayings(definition) for definition in definitions]
        texts = Texts(encoder, list(chain.from_iterable(of_each)))
        documents, queries = self.matched.documents, self.matched.queries
        sources = Sources(texts.sources, defined(of_each, texts.says))
        sources += Sources(documents.sources[:own], documents.says[:own])
        sources += Sources(queries.sources, wanted | queries.says)
        return sources, range(len(texts), len(texts) + own)

    def _meanings(self, sources: "Sources", documents: range) -> "SyntheticTexts | None":
        """Synthetic texts, where they teach anything or are held by the anchor."""
        from sparse_adapt.objectives.meanings import meanings

        settings = self.settings
        if self.weights["anchor"] == self.weights["recall"] == 0.0:
            return None
        return meanings(self.reference, sources, settings.labeller, settings.seed, documents)


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Distill) -> "Task[Any]":
    """The task over queries with scored candidates; definitions read before tell what else means a term."""
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.objectives.general_candidates import with_general
    from sparse_adapt.objectives.scores import with_theirs

    entries = inputs[CANDIDATES]
    documents = {document.document_id: document.full_text for document in inputs[CORPUS]}
    documents = with_theirs(documents, entries)
    if isinstance(encoder, SparseEncoder):
        entries, passages = with_general(encoder, entries, documents, settings.general_candidates)
        task = SixTerms(encoder, entries, documents, settings, inputs.get(DICTIONARY) or [], passages)
        return with_balance(encoder, task, settings)
    extended = inputs.model if settings.weights.anchor > 0.0 else None
    settings = settings.settled()  # the other pace was measured on sparse models
    named = ("distill", encoder, entries, documents, settings, extended)
    dense: Task[Any] = registry().find("tasks", "scores")(*named)
    return dense


def with_balance(encoder: "SparseEncoder", task: "SixTerms", settings: Distill) -> "Task[Any]":
    """The same task, whose weights but for the anchor's are shares of the gradient where the settings say so."""
    from sparse_adapt.objectives.balance import balanced

    if settings.balanced:
        task.weights = balanced(encoder, task, apart={"anchor"})
    return task


DISTILL = Stage(
    "distill",
    Distill,
    (CANDIDATES, CORPUS, inherited(DICTIONARY)),
    build,
    refuses=("sum", "table", "prompts"),
    texts=16.0,
)
