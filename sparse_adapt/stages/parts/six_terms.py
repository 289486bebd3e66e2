"""The six terms of distillation, and what keeps the rest, of a sparse encoder.

Queries, their candidates and the first made-up texts are read in one pass; every loss term is a function of what was
read. Dimensions: Q queries, N candidates each, B documents, S made-up texts, D new tokens, V vocabulary.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.collection.glossary import Definition
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.stages.distill import Distill
from sparse_adapt.stages.parts.about import Sources, defined, sayings
from sparse_adapt.stages.parts.anchors import SHORT, CorpusAnchor
from sparse_adapt.stages.parts.factors import LearntFactors
from sparse_adapt.stages.parts.hinges import Hinges
from sparse_adapt.stages.parts.made_up_lessons import meanings, new_logits
from sparse_adapt.stages.parts.matching import Matched, Reading
from sparse_adapt.stages.parts.scored import Comparison, Drawn, relevant_to
from sparse_adapt.stages.parts.sparsity import Cost, penalty
from sparse_adapt.stages.parts.targets import Targets
from sparse_adapt.stages.parts.texts import Texts, general_passages, some_passages
from sparse_adapt.stages.terms import functions
from sparse_adapt.synthetic.samples import MadeUpTexts, Samples
from sparse_adapt.training import losses


@dataclass(frozen=True, slots=True)
class SixTermsBatch(Drawn):
    """Queries with their candidates, made-up texts, and documents and general passages for the anchor."""

    samples: Samples
    others: list[int]
    general: list[int]


class SixTerms:
    """The task over queries with scored candidates, for `training.train`."""

    name = "distill"

    def __init__(
        self,
        encoder: SparseEncoder,
        candidates: Sequence[Candidates],
        documents: Mapping[str, str],
        settings: Distill,
        definitions: Sequence[Definition] = (),
        passages: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`documents`, `passages`: texts of the corpus and of elsewhere, by id; the candidates are among them.

        `definitions`: what the judge knows besides of texts that mean a term.
        """
        terms = len(encoder.new_tokens)
        self.targets = settings.targets or Targets.of(judged=settings.judge != "none")
        settings = settings.settled(len(candidates), terms).model_copy(update={"targets": self.targets})
        self.settings = settings
        self.steps = settings.steps_for(len(candidates))
        self.weights: Mapping[str, float] = settings.weights.model_dump()
        self.functions = functions(type(settings.weights))
        self.matched = Matched(encoder, candidates, {**documents, **passages}, settings.longest)
        self.reference = copy.deepcopy(encoder).requires_grad_(False)
        first = self.matched.first_vectors(self.reference)
        own = None if self.reference.factors is None else self.reference.factors_of()
        self.factors = None if own is None else LearntFactors(own, 0.0)
        self.beside = self.factors or nn.Module()
        scale = first.scale(own)
        self.comparison = Comparison(
            settings.kd,
            settings.temperature,
            scale if settings.calibrate else None,
            settings.tau,
            settings.margin,
        )
        wanted = self._wanted(candidates)
        share, unknown = first.share, np.zeros_like(self.matched.documents.says)
        sources, rows = self._sources(encoder, definitions, wanted, len(documents))
        self.meanings = self._meanings(sources, rows)
        if self.meanings is not None:
            share = self.meanings.document_share
            unknown[: len(rows)] = self.meanings.unknown[rows.start : rows.stop]
        known = self.meanings is not None and self.matched.documents.new > 0
        self.taught_by_made_up = known and self.weights["recall"] > 0.0
        self.hinges = Hinges(
            self.targets, settings.silence, settings.raw_logits, encoder.form, wanted, unknown
        )
        costly = penalty(settings.penalised, encoder, share)
        first_new = self.matched.documents.first
        self.cost = Cost(settings.flops_query, settings.flops_document, settings.common, costly, first_new)
        self.anchor: CorpusAnchor | None = None
        if self.weights["anchor"] > 0.0:
            self.anchor = CorpusAnchor(
                self.reference, self.matched.documents, general_passages(encoder), costly
            )

    def batch(self, random: Generator) -> SixTermsBatch:
        """Queries drawn without repetition, each with all of its candidates, and texts beside them."""
        assert self.settings.batch_size is not None, "settled when the task was made"
        drawn = self.matched.scored.draw(self.settings.batch_size, random)
        if self.meanings is None:
            nothing = torch.zeros(0, self.matched.documents.new, dtype=torch.bool)
            samples = Samples([], nothing, nothing)
        else:
            samples = self.meanings.draw(self.settings.samples, random)
        others = [] if self.anchor is None else self.anchor.draw(len(drawn.queries), random)
        general = [] if self.anchor is None else some_passages(self.anchor.general, random)
        found = (drawn.queries, drawn.documents, drawn.places, drawn.teacher, drawn.present)
        return SixTermsBatch(*found, samples, others, general)

    def terms(self, encoder: SparseEncoder, batch: SixTermsBatch) -> dict[str, Tensor]:
        """Each term of what the encoder makes of a batch, unweighted."""
        read = self.read(encoder, batch)
        return {key: function(read) for key, function in self.functions.items()}

    def read(self, encoder: SparseEncoder, batch: SixTermsBatch) -> "SixTermsReading":
        """Queries, documents and, where the anchor holds some, the first made-up texts, in one pass."""
        documents, before = self.matched.documents, None
        short = [] if self.anchor is None else batch.samples.token_ids[:SHORT]
        asked = documents.asked
        if self.anchor is not None:
            with torch.no_grad():
                before = self.anchor.before.weights(batch.documents)
            asked = asked.expand(len(batch.queries), -1)
            asked = torch.cat([asked, documents.asked_beside(before, len(short))])
        pooled = encoder([*self.matched.ids(batch), *short], asked)
        parts = pooled.weights.split([len(batch.queries), len(batch.documents), len(short)])
        return SixTermsReading(
            self, encoder, batch, parts[0], parts[1], parts[2], short, pooled.maximum, before
        )

    def conclude(self, encoder: SparseEncoder) -> Mapping[str, Any]:
        """Give a taught encoder the factors that it was taught with."""
        if self.factors is not None:
            encoder.factors = self.factors.values
        return {}

    def _wanted(self, candidates: Sequence[Candidates]) -> NDArray[np.bool_]:
        """New tokens that the relevant documents of each query say: (all queries, D)."""
        says, row = self.matched.documents.says, self.matched.scored.row
        found = []
        for entry in candidates:
            relevant = compress(entry.document_ids, relevant_to(entry))
            found.append(says[[row[name] for name in relevant]].any(axis=0))
        return np.array(found)

    def _sources(
        self, encoder: SparseEncoder, definitions: Sequence[Definition], wanted: NDArray[np.bool_], own: int
    ) -> tuple[Sources, range]:
        """What texts are made up of, in the order of the dictionary stage, so that these are the same texts.

        Beside it which of them are documents that a search is to find: the first `own`, which are the corpus's.
        """
        said = Texts(encoder, sayings(definitions))
        documents, queries = self.matched.documents, self.matched.queries
        sources = Sources(said.ids, defined(definitions, said.says))
        sources += Sources(documents.ids[:own], documents.says[:own])
        sources += Sources(queries.ids, wanted | queries.says)
        return sources, range(len(said), len(said) + own)

    def _meanings(self, sources: Sources, documents: range) -> MadeUpTexts | None:
        """Made-up texts, where they teach anything or are held by the anchor."""
        settings = self.settings
        if self.weights["anchor"] == self.weights["recall"] == 0.0:
            return None
        return meanings(self.reference, sources, settings.judge, settings.seed, documents)


@dataclass
class SixTermsReading(Reading):
    """What one step has read, made-up texts too.

    short: (S, V) weights of the made-up texts that the anchor holds; maximum: (Q + B + S, V) largest raw logits;
    before: (B, V) weights of the documents before the stage, where the anchor holds them.
    """

    task: SixTerms
    drawn: SixTermsBatch
    short: Tensor
    short_ids: Sequence[TokenIds]
    maximum: Tensor
    before: Tensor | None

    def moved(self) -> Tensor:
        """How far the texts that the anchor holds are from what they were."""
        return self.nothing if self.task.anchor is None else self.task.anchor.distance(self)

    @property
    def unclipped_documents(self) -> Tensor:
        """Weights of the documents (B, V) that go on below zero where there was weight before."""
        assert self.before is not None, "of documents that are held"
        first = len(self.queries)
        return losses.unclipped(
            self.maximum[first : first + len(self.documents)], self.before, self.encoder.form.activate
        )

    @cached_property
    def new(self) -> Tensor:
        """Largest raw logits of the new tokens: (Q + B + S, D)."""
        first = self.task.matched.documents.first
        return self.maximum[:, first : first + self.task.matched.documents.new]

    @cached_property
    def held(self) -> tuple[Tensor, Tensor]:
        """What the hinges hold of the new tokens: of queries (Q, D) and of documents (B, D)."""
        count = len(self.queries)
        return self.task.hinges.held(self.new[: count + len(self.documents)], count)

    @cached_property
    def made_up(self) -> Tensor:
        """Largest raw logits of the new tokens in made-up texts: (M, D)."""
        read = self.new[len(self.queries) + len(self.documents) :]
        rest = self.drawn.samples.token_ids[len(read) :]
        return torch.cat([read, new_logits(self.encoder, rest, self.task.matched.documents)])
