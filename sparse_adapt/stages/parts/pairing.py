"""Joint and contrastive training on pairs: a query's own document before the others, for either kind of encoder.

Three terms: `infonce`, over the documents of the batch, or in the form NT-Xent both ways over all of its texts, for
dense encoders behind a projection that is dropped afterwards; `mlm` (joint only), the masked words of the same texts in
the same pass, so that what a word is learnt from is also what the text is found by; `sparsity` (sparse encoders
only), the expected scoring work of queries and of documents. After Pavlova and Makhlouf, MOSAIC.

Dimensions: Q queries, B documents, M masked words, V vocabulary, H hidden.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.random import Generator
from torch import Tensor, nn

from sparse_adapt.collection.examples import Pair
from sparse_adapt.errors import ConfigError
from sparse_adapt.model.encoder import Encoder
from sparse_adapt.model.idf import of_mean, rows_for_idf
from sparse_adapt.model.kinds import EitherEncoder
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import cut
from sparse_adapt.stages.pairs import Contrast, Joint
from sparse_adapt.stages.parts.everyday import DenseEveryday, everyday_for
from sparse_adapt.stages.parts.factors import LearntFactors, first_factors
from sparse_adapt.stages.parts.masked import SHOWN as SHOWN
from sparse_adapt.stages.parts.masked import mask_token, read_masked
from sparse_adapt.stages.parts.mining import QueryToMine, hard_negatives
from sparse_adapt.stages.parts.projection import Projection
from sparse_adapt.stages.parts.texts import vectors as sparse_vectors
from sparse_adapt.training import losses

DOT_PRODUCT = 3.0  # temperatures; at 1 a sparse model tells the documents of a batch apart from the start
COSINE = {"infonce": 0.05, "nt-xent": 0.1}


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Queries and then documents, masked or not; which document is whose, and which are no negatives."""

    ids: list[list[int]]
    labels: list[list[int]]  # the word that was masked, or SHOWN
    own: Tensor  # (Q) among the documents
    relevant: Tensor  # (Q, B)
    others: list[int]  # everyday texts, for the anchor


class Pairing:
    """One stage over pairs, for `training.train`."""

    def __init__(
        self,
        name: str,
        encoder: EitherEncoder,
        pairs: Sequence[Pair],
        documents: Mapping[str, str],
        settings: Contrast,
        before: EitherEncoder | None = None,
    ) -> None:
        """`documents`: text of every document, by id. Raises ConfigError where there is nothing to mask.

        `before`: whose vectors of everyday texts the anchor holds; by default the encoder's own.
        """
        self.name, self.settings = name, settings
        self.steps = settings.steps_for(len(pairs))
        sparse = isinstance(encoder, SparseEncoder)
        weights: dict[str, float] = settings.weights.model_dump()
        self.weights: Mapping[str, float] = {
            key: weight
            for key, weight in weights.items()
            if (sparse or key != "sparsity") and (weight > 0.0 or key != "anchor")
        }
        self.everyday = everyday_for(encoder, before, settings.seed) if "anchor" in self.weights else None
        self.temperature = settings.temperature or (DOT_PRODUCT if sparse else COSINE[settings.form])
        place = _places(documents)
        self.queries = cut(encoder.tokenize([pair.query for pair in pairs], "query"), settings.longest)
        self.documents = cut(encoder.tokenize(list(documents.values())), settings.longest)
        self.factors: LearntFactors | None = None
        if isinstance(encoder, SparseEncoder):
            self.factors = self._factors(encoder)
        else:
            self._weigh(encoder)
        projection = _projection(name, encoder, settings)
        self.beside = projection if self.factors is None else self.factors
        self.own = [place[pair.document_id] for pair in pairs]
        self.relevant = _relevant(pairs, self.own)
        self.hard: list[list[int]] = [[] for _ in pairs]
        if settings.hard_negatives:
            among = sorted(set(place.values()))
            asked = [QueryToMine(*each) for each in zip(self.queries, self.own, self.relevant, strict=True)]
            factors = None if self.factors is None else self.factors.values
            self.hard = hard_negatives(encoder, asked, self.documents, among, settings, factors)
        self.vocabulary = _vocabulary(encoder, settings) if isinstance(settings, Joint) else []
        self.maskable = frozenset(self.vocabulary) - set(encoder.tokenizer.all_special_ids)
        self.mask_id = mask_token(encoder, name) if self.vocabulary else 0

    def batch(self, random: Generator) -> PairBatch:
        """Pairs drawn without repetition, each document once, and mined ones that their queries ask for."""
        count = min(self.settings.batch_size, len(self.own))
        chosen = sorted(int(row) for row in random.choice(len(self.own), count, replace=False))
        rows = [self.own[pair] for pair in chosen]
        for pair in chosen:
            hard = self.hard[pair]
            rows += random.choice(hard, min(self.settings.hard_negatives, len(hard)), replace=False).tolist()
        documents = list(dict.fromkeys(rows))
        column = {row: number for number, row in enumerate(documents)}
        relevant = torch.zeros(count, len(documents), dtype=torch.bool)
        for number, pair in enumerate(chosen):
            relevant[number, [column[row] for row in self.relevant[pair] if row in column]] = True
        texts = [self.queries[pair] for pair in chosen] + [self.documents[row] for row in documents]
        masked = [self._mask(ids, random) for ids in texts]
        own = torch.tensor([column[self.own[pair]] for pair in chosen])
        others = [] if self.everyday is None else self.everyday.draw(random)
        return PairBatch([ids for ids, _ in masked], [labels for _, labels in masked], own, relevant, others)

    def terms(self, encoder: Encoder, batch: PairBatch) -> dict[str, Tensor]:
        """`infonce`, and `mlm` and `sparsity` where the stage and the encoder have them, unweighted."""
        found, words = read_masked(
            encoder,
            batch.ids,
            batch.labels,
            lambda *read: self._project(encoder.vectors(*read)),
            self.vocabulary,
        )
        count, device = len(batch.own), encoder.device
        counted = found if self.factors is None else self.factors(found)
        own, relevant = batch.own.to(device), batch.relevant.to(device)
        if self.settings.form == "nt-xent":
            pairs = torch.stack([torch.arange(count, device=device), count + own], dim=1)
            alike = losses.scores(counted, counted)
            infonce = losses.ntxent(alike, pairs, related(relevant), self.temperature)
        else:
            scores = losses.scores(counted[:count], counted[count:])
            infonce = losses.infonce(scores, own, relevant, self.temperature)
        terms = {"infonce": infonce}
        if "sparsity" in self.weights:
            terms["sparsity"] = losses.flops(found[:count]) + losses.flops(found[count:])
        if "mlm" in self.weights:
            terms["mlm"] = words
        if self.everyday is not None:
            terms["anchor"] = self.everyday.distance(encoder, batch.others, self.factors)
        return terms

    def conclude(self, encoder: EitherEncoder) -> Mapping[str, Any]:
        """Give a taught encoder the factors that it was taught with."""
        if self.factors is not None and isinstance(encoder, SparseEncoder):
            encoder.factors = self.factors.values
        return {}

    def _factors(self, encoder: SparseEncoder) -> LearntFactors | None:
        """Those that the encoder has, or begun by idf where they are asked for; they learn, or are held."""
        settings = self.settings
        if settings.factors == "none" and encoder.factors is None:
            return None
        everyday = None if self.everyday is None else self.everyday.share
        start = first_factors(encoder, lambda: sparse_vectors(encoder, self._counted()), everyday)
        return LearntFactors(start, settings.factor_rate if settings.factors == "learnt" else 0.0)

    def _weigh(self, encoder: SentenceEncoder) -> None:
        """Have tokens count in the encoder's mean by their idf, where that is asked for, now and while it learns."""
        if self.settings.factors == "learnt":
            raise ConfigError(
                f'{self.name}: factors = "learnt" is for sparse encoders; a dense one takes "idf"'
            )
        if self.settings.factors == "idf" and encoder.layout.mode != "mean":
            raise ConfigError(f"{self.name}: this model's vectors are no means, so factors don't apply")
        if self.settings.factors == "idf" and encoder.factors is None:
            size = encoder.vocabulary_size
            everyday = None if self.everyday is None else self.everyday.share(size)
            encoder.factors = of_mean(self._counted(), size, everyday)
            if isinstance(self.everyday, DenseEveryday):
                self.everyday.count_as(encoder)

    def _counted(self) -> list[list[int]]:
        """Token ids of the documents that an idf is told by."""
        return [self.documents[row] for row in rows_for_idf(len(self.documents))]

    def _project(self, vectors: Tensor) -> Tensor:
        projected: Tensor = self.beside(vectors) if isinstance(self.beside, Projection) else vectors
        return projected

    def _mask(self, ids: list[int], random: Generator) -> tuple[list[int], list[int]]:
        """Words that the softmax runs over, hidden at the stage's rate; labels are SHOWN elsewhere."""
        labels = [SHOWN] * len(ids)
        if not isinstance(self.settings, Joint):
            return ids, labels
        chances, masked = random.random(len(ids)), list(ids)
        for place, token in enumerate(ids):
            if chances[place] < self.settings.mask_rate and token in self.maskable:
                masked[place], labels[place] = self.mask_id, token
        return masked, labels


def related(relevant: Tensor) -> Tensor:
    """Which texts of a batch aren't negatives of one another: (Q + B, Q + B), queries before documents.

    A query and a document that it is known to find, queries that find the same, documents that the same finds.
    """
    found = relevant.float()
    above = torch.cat([found @ found.T > 0, relevant], dim=1)
    below = torch.cat([relevant.T, found.T @ found > 0], dim=1)
    return torch.cat([above, below])


def _projection(name: str, encoder: Encoder, settings: Contrast) -> nn.Module:
    """What stands between vectors and loss: an empty module where nothing does."""
    if settings.projection and not isinstance(encoder, SentenceEncoder):
        raise ConfigError(
            f"{name}: projection = true is for dense encoders; a sparse one is scored by its own dimensions"
        )
    wanted = settings.form == "nt-xent" if settings.projection is None else settings.projection
    if wanted and isinstance(encoder, SentenceEncoder):
        return Projection(encoder.width, settings.seed)
    return nn.Module()


def _vocabulary(encoder: Encoder, settings: Joint) -> list[int]:
    """The tokens that are masked, and that the softmax runs over: the new ones, or all."""
    if settings.masked == "all":
        return list(range(encoder.vocabulary_size))
    if not encoder.new_tokens:
        raise ConfigError(
            'joint: this model has no new tokens to mask; extend it first, or set masked = "all"'
        )
    return sorted(token.token_id for token in encoder.new_tokens)


def _places(documents: Mapping[str, str]) -> dict[str, int]:
    """The row of each document, that of the first where several have the same text."""
    first: dict[str, int] = {}
    return {
        document_id: first.setdefault(key_of(text), row)
        for row, (document_id, text) in enumerate(documents.items())
    }


def _relevant(pairs: Sequence[Pair], own: Sequence[int]) -> list[frozenset[int]]:
    """Rows of the documents that each pair's query is known to find, by any of the pairs."""
    rows: dict[str, set[int]] = {}
    for pair, row in zip(pairs, own, strict=True):
        rows.setdefault(key_of(pair.query), set()).add(row)
    return [frozenset(rows[key_of(pair.query)]) for pair in pairs]


def key_of(text: str) -> str:
    """What texts have in common that differ in nothing but spaces and case."""
    return " ".join(text.split()).casefold()
