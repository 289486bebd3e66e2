"""Distillation: the whole model learns to score as a teacher does, gently, with short vectors.

Six terms (kd, rank, sparsity, domain, contrast, expand), and three that keep what nobody asked to change:
`anchor`, the incoming model's own vectors, and two lessons of the stages before: `recall`, that a term is also
meant where it isn't said, and `listwise`, how made-up texts rank the documents.

Dimensions: Q queries, N candidates each, B texts, D new tokens, V vocabulary.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.collection.readers import Candidates
from sparse_adapt.made_up.windows import Samples
from sparse_adapt.model.head.pooling import activate
from sparse_adapt.model.idf import Factors, scaled, shares_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.stages.distill import Distill as DistillSettings
from sparse_adapt.stages.parts.about import Sources, defined, sayings
from sparse_adapt.stages.parts.everyday import SparseEveryday
from sparse_adapt.stages.parts.factors import LearntFactors, first_factors
from sparse_adapt.stages.parts.ranking import ranking
from sparse_adapt.stages.parts.scored import Drawn, Scored, relevant_to
from sparse_adapt.stages.parts.targets import Targets
from sparse_adapt.stages.parts.term_lessons import marks, meanings, ranked, recall
from sparse_adapt.stages.parts.texts import Remembered, Texts, vectors
from sparse_adapt.terms.function_words import function_tokens
from sparse_adapt.training import losses
from sparse_adapt.training.loop import epochs_to_steps

COMMON, MOST = 0.1, 0.5  # share of the documents at which a word is half a common one: published, and at most
FEW = 10  # documents that a word may always be in: a page of results
SHORT = 8  # made-up texts that the anchor holds, besides documents: the first, which are everyday ones
USUAL_BATCH = 8  # queries of a step for which the weight of sparsity stands


@dataclass(frozen=True, slots=True)
class Batch(Drawn):
    """Queries with their candidates, and the texts beside them."""

    samples: Samples
    others: list[int]  # documents for the anchor, or everyday texts


class Distill:
    """The stage over queries with scored candidates, for `training.train`."""

    name = "distill"

    def __init__(
        self,
        encoder: SparseEncoder,
        candidates: Sequence[Candidates],
        documents: Mapping[str, str],
        settings: DistillSettings,
        before: SparseEncoder | None = None,
        definitions: Sequence[Definition] = (),
    ) -> None:
        """`documents`: text of every document, by id; the candidates are among them.

        `definitions`: what the judge knows besides of texts that mean a term.

        `before`: whose vectors of everyday texts are held, where the anchor is such; by default the encoder's own.
        """
        terms = len(encoder.new_tokens)
        self.targets = settings.targets or Targets.of(terms, judged=settings.judge != "none")
        settings = settings.settled(len(candidates), terms).model_copy(update={"targets": self.targets})
        self.settings = settings
        self.scored = Scored(candidates, list(documents))
        self.steps = epochs_to_steps(settings, len(candidates))
        self.weights: Mapping[str, float] = settings.weights.model_dump()
        self.documents = Texts(encoder, list(documents.values()), settings.longest)
        self.queries = Texts(encoder, [entry.query for entry in candidates], settings.longest)
        self.reference = copy.deepcopy(encoder).requires_grad_(False)
        self.before = Remembered(self.reference, self.documents.ids)
        self.positive = np.array([self._positive(entry) for entry in candidates])
        said = Texts(encoder, sayings(definitions))
        # in the order of the dictionary stage, so that its made-up texts are these
        sources = Sources(said.ids, defined(definitions, said.says))
        sources += Sources(self.documents.ids, self.documents.says)
        sources += Sources(self.queries.ids, self.positive | self.queries.says)
        anchored = self.weights["anchor"] > 0.0
        self.everyday: SparseEveryday | None = None
        if anchored and settings.anchored == "everyday":
            self.everyday = SparseEveryday(encoder, before or self.reference, settings.seed)
        self.holds = anchored and self.everyday is None
        self.short = SHORT if self.holds else 0
        lessons = self.weights["recall"] + (settings.judge != "none") * self.weights["listwise"]
        unread = not self.holds and lessons == 0.0
        found = range(len(said), len(said) + len(self.documents))
        self.meanings = None if unread else meanings(self.reference, sources, settings, found)
        self.ranking = ranking(self.reference, sources.token_ids, self.meanings, self.weights["listwise"])
        self.unknown = np.zeros_like(self.documents.says)
        if self.meanings is not None:
            self.unknown = self.meanings.unknown[found.start : found.stop]
        self.scale, share, factors = self._scale()
        rate = settings.factor_rate if settings.factors == "learnt" else 0.0
        self.factors = None if factors is None else LearntFactors(factors, rate)
        self.beside = self.factors or nn.Module()
        if self.meanings is not None:
            share = self.meanings.document_share
        self.penalty = self._penalty(encoder, torch.from_numpy(share))

    def batch(self, random: Generator) -> Batch:
        """Queries drawn without repetition, each with all of its candidates, and texts beside them."""
        assert self.settings.batch_size is not None, "settled when the stage was made"
        drawn = self.scored.draw(self.settings.batch_size, random)
        samples = self._samples(random)
        if self.everyday is not None:
            others = self.everyday.draw(random)
        else:
            others = [int(row) for row in random.choice(len(self.documents), max(1, len(drawn.queries) // 2))]
        found = (drawn.queries, drawn.documents, drawn.places, drawn.teacher, drawn.present)
        return Batch(*found, samples, others)

    def _samples(self, random: Generator) -> Samples:
        if self.meanings is None:
            nothing = torch.zeros(0, self.documents.new, dtype=torch.bool)
            return Samples([], nothing, nothing)
        return self.meanings.draw(self.settings.samples, random)

    def terms(self, encoder: SparseEncoder, batch: Batch) -> dict[str, Tensor]:
        """The six terms, `anchor`, `recall` and `listwise`, unweighted."""
        short = batch.samples.token_ids[: self.short]
        ids = [self.queries.ids[row] for row in batch.queries]
        ids += [self.documents.ids[row] for row in batch.documents]
        count, device, asked = len(batch.queries), encoder.device, self.documents.asked
        if self.holds:
            with torch.no_grad():
                before = self.before.weights(batch.documents)
            asked = torch.cat([asked.expand(count, -1), self.documents.asked_beside(before, len(short))])
        pooled = encoder([*ids, *short], asked)
        queries, documents, made_up = pooled.weights.split([count, len(batch.documents), len(short)])
        if self.holds:
            anchor = self._anchor(
                encoder, batch, made_up, losses.unclipped(pooled.maximum[count : len(ids)], before)
            )
        elif self.everyday is not None:
            anchor = self.everyday.distance(encoder, batch.others, self.factors)
        else:
            anchor = encoder.output_rows.sum() * 0.0
        new = pooled.maximum[:, self.documents.first : self.documents.first + self.documents.new]
        scores = losses.scores(self._weighed(queries), self._weighed(documents)).gather(
            1, batch.places.to(device)
        )
        scored = self.scored.terms(scores, batch, self.scale, self.settings)
        return {
            "kd": scored["kd"],
            "rank": scored["rank"],
            "sparsity": self._sparsity(queries, documents),
            "contrast": scored["contrast"],
            **self._domain(new[: len(ids)], batch),
            "anchor": anchor,
            **self._lessons(encoder, batch, new[len(ids) :]),
        }

    def _weighed(self, weights: Tensor) -> Tensor:
        """Weights (B, V) as a match counts them."""
        return weights if self.factors is None else self.factors(weights)

    def conclude(self, encoder: SparseEncoder) -> Mapping[str, Any]:
        """Give a taught encoder the factors that it was taught with."""
        if self.factors is not None:
            encoder.factors = self.factors.values
        return {}

    def _penalty(self, encoder: SparseEncoder, share: Tensor) -> Tensor | None:
        """How much more each token costs than others (V), in [0, 1]; None where none does.

        share: (V) of the documents that give it weight. A tenth of a small corpus is three documents, and the
        field's own words, which are in as many, tell them apart: a word of few documents costs no more than
        others, and words that say nothing of a topic are known by name.
        """
        match self.settings.penalised:
            case "none":
                return None
            case "frequent":
                return losses.frequency_penalty(share)
            case "function":
                midpoint = min(MOST, max(COMMON, FEW / len(self.documents)))
                penalty = losses.frequency_penalty(share, midpoint)
                penalty[np.flatnonzero(function_tokens(encoder.tokenizer))] = 1.0
                return penalty

    def _sparsity(self, queries: Tensor, documents: Tensor) -> Tensor:
        """What a match costs on old tokens, and the squared means of queries and documents.

        The mean of a sparse weight over few texts has the larger square, about as many fold as they are fewer.
        """
        fewer = min(1.0, len(queries) / USUAL_BATCH)
        old = torch.ones(queries.shape[1], device=queries.device)
        old[self.documents.first :] = 0.0
        penalty = None if self.penalty is None else self.penalty.to(queries.device)
        cross = losses.cross_sparsity(queries, documents, old if penalty is None else old * penalty)
        settings = self.settings
        plain = settings.flops_query * losses.flops(queries) + settings.flops_document * losses.flops(
            documents
        )
        if penalty is None:
            return fewer * (cross + plain)
        common = losses.flops(queries, penalty) + losses.flops(documents, penalty)
        return fewer * (settings.common * (cross + common) + plain)

    def _domain(self, new: Tensor, batch: Batch) -> dict[str, Tensor]:
        """`domain`: said, so lit; unrelated, so silent. `expand`: a query lights what its relevant documents say.

        new: (B, D) largest raw logits of the new tokens in queries, then documents.
        """
        count, settings, texts = len(batch.queries), self.settings, self.documents
        targets = self.targets
        new = new if settings.raw_logits else activate(new)
        queries, documents = new[:count], new[count:]
        said_documents = marks(texts.says[batch.documents], new)
        said_queries = marks(self.queries.says[batch.queries], new)
        wanted = marks(self.positive[batch.queries], new)
        unknown = marks(self.unknown[batch.documents], new)
        lit = losses.hinge_above(documents, said_documents, targets.said)
        lit = lit + losses.hinge_above(queries, said_queries, targets.meant)
        silent = losses.hinge_below(documents, ~said_documents & ~unknown, targets.quiet)
        silent = silent + losses.hinge_below(queries, ~said_queries & ~wanted, targets.quiet)
        return {
            "domain": lit + settings.silence * silent,
            "expand": losses.expand(queries - targets.meant, wanted),
        }

    def _anchor(self, encoder: SparseEncoder, batch: Batch, made_up: Tensor, documents: Tensor) -> Tensor:
        """How far texts like queries and documents are from the incoming model's, common words left free.

        made_up, documents: (B, V) weights of the first made-up texts and, unclipped, of the batch's documents, which
        aren't read again.
        """
        short = batch.samples.token_ids[: len(made_up)]
        place = {row: number for number, row in enumerate(batch.documents)}
        again = [row for row in batch.others if row in place]
        fresh = [row for row in batch.others if row not in place]
        with torch.no_grad():
            short_before = self.reference.weights(short)
            before = self.before.weights([*fresh, *again])
        kept = torch.ones(before.shape[1], device=before.device)
        kept[self.documents.first :] = 0.0
        if self.penalty is not None:
            kept = kept * (1.0 - self.penalty.to(before.device))
        fresh_before = before[: len(fresh)]
        asked = self.documents.asked_beside(fresh_before, 0)
        read = encoder([self.documents.ids[row] for row in fresh], asked).maximum
        unread = losses.unclipped(read, fresh_before)
        found = torch.cat([unread, documents[[place[row] for row in again]]])
        far = len(found) * losses.drift(found, before, kept)
        if short:
            far = far + len(short) * losses.distance(made_up, short_before, kept)
        return far / (len(found) + len(short))

    def _lessons(self, encoder: SparseEncoder, batch: Batch, read: Tensor) -> dict[str, Tensor]:
        """How far made-up texts are from lighting what they mean, and from ranking the documents as they should.

        `read` (B, D): logits of the first ones.
        """
        if not self.documents.new or self.weights["recall"] == self.weights["listwise"] == 0.0:
            return dict.fromkeys(("recall", "listwise"), encoder.output_rows.sum() * 0.0)
        others, listwise = ranked(encoder, batch.samples.after(len(read)), self.documents, self.ranking)
        meant = torch.cat([read, others])
        return {
            "recall": recall(meant, batch.samples, self.targets, self.settings.silence),
            "listwise": listwise,
        }

    def _positive(self, entry: Candidates) -> NDArray[np.bool_]:
        """New tokens that the relevant documents of a query say: (D,) booleans."""
        good = relevant_to(entry)
        rows = [self.scored.row[name] for name, each in zip(entry.document_ids, good, strict=True) if each]
        return np.asarray(self.documents.says[rows].any(axis=0))

    def _scale(self) -> tuple[losses.Scale, NDArray[np.float64], Factors | None]:
        """How teacher scores map to the scores that the incoming model gives the same candidates.

        Beside it the share of these documents that give each token weight (V), and the factors (V) to begin
        with: the incoming model's own or, where it has none, by the idf in these documents, and in everyday texts
        where these are at hand. Many queries are sampled.
        """
        drawn = self.scored.evenly()
        rows = vectors(self.reference, [self.documents.ids[row] for row in drawn.documents])
        queries = vectors(self.reference, [self.queries.ids[row] for row in drawn.queries])
        share = shares_of(rows)
        factors: Factors | None = None
        if self.settings.factors != "none" or self.reference.factors is not None:
            general = None if self.everyday is None else self.everyday.share
            factors = first_factors(self.reference, lambda: rows, general)
            rows, queries = scaled(rows, factors), scaled(queries, factors)
        student = torch.zeros_like(drawn.teacher)
        for number, present in enumerate(drawn.present):
            held = drawn.places[number][present].numpy()
            product = (rows[held] @ queries[number].T).toarray().ravel()
            student[number, present] = torch.from_numpy(product)
        return self.scored.scale(drawn, student), share, factors
