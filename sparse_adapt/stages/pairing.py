"""Joint and contrastive training on pairs: a query's own document before the others, for either kind of encoder.

Three terms: `infonce`, over the documents of the batch; `mlm` (joint only), the masked words of the same texts in
the same pass, so that what a word is learnt from is also what the text is found by; `sparsity` (sparse encoders
only), the expected scoring work of queries and of documents. After Pavlova and Makhlouf, MOSAIC.

Dimensions: Q queries, B documents, M masked words, V vocabulary, H hidden.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from numpy.random import Generator
from torch import Tensor

from sparse_adapt import config, losses
from sparse_adapt.batches import group_by_length, pad
from sparse_adapt.errors import ConfigError
from sparse_adapt.model import PADDED_TOKENS_A_PASS, SparseEncoder
from sparse_adapt.model.encoder import Encoder
from sparse_adapt.pairs import Pair
from sparse_adapt.sharing import own_share, shared_out, total
from sparse_adapt.stages.mining import Asked, hard_negatives
from sparse_adapt.training import epochs_to_steps

DOT_PRODUCT, COSINE = 1.0, 0.05  # temperatures
SHOWN = -1  # label of a word that wasn't masked


@dataclass(frozen=True, slots=True)
class Batch:
    """Queries and then documents, masked or not; which document is whose, and which are no negatives."""

    ids: list[list[int]]
    labels: list[list[int]]  # the word that was masked, or SHOWN
    own: Tensor  # (Q) among the documents
    relevant: Tensor  # (Q, B)


class Pairing:
    """One stage over pairs, for `training.train`."""

    def __init__(
        self,
        name: str,
        encoder: Encoder,
        pairs: Sequence[Pair],
        documents: Mapping[str, str],
        settings: config.Contrast,
    ) -> None:
        """`documents`: text of every document, by id. Raises ConfigError where there is nothing to mask."""
        self.name, self.settings = name, settings
        self.steps = epochs_to_steps(settings, len(pairs))
        sparse = isinstance(encoder, SparseEncoder)
        weights: dict[str, float] = settings.weights.model_dump()
        self.weights: Mapping[str, float] = {
            key: weight for key, weight in weights.items() if sparse or key != "sparsity"
        }
        self.temperature = settings.temperature or (DOT_PRODUCT if sparse else COSINE)
        place = _places(documents)
        self.queries = cut(encoder.tokenize([pair.query for pair in pairs]), settings.longest)
        self.documents = cut(encoder.tokenize(list(documents.values())), settings.longest)
        self.own = [place[pair.document_id] for pair in pairs]
        self.relevant = _relevant(pairs, self.own)
        self.hard: list[list[int]] = [[] for _ in pairs]
        if settings.hard_negatives:
            among = sorted(set(place.values()))
            asked = [Asked(*each) for each in zip(self.queries, self.own, self.relevant, strict=True)]
            self.hard = hard_negatives(encoder, asked, self.documents, among, settings)
        self.vocabulary = _vocabulary(encoder, settings) if isinstance(settings, config.Joint) else []
        self.maskable = frozenset(self.vocabulary) - set(encoder.tokenizer.all_special_ids)
        self.mask_id = encoder.tokenizer.mask_token_id
        if self.vocabulary and self.mask_id is None:
            raise ConfigError(f"{name}: this model's tokenizer has no token that masks; choose another model")

    def batch(self, random: Generator) -> Batch:
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
        return Batch([ids for ids, _ in masked], [labels for _, labels in masked], own, relevant)

    def terms(self, encoder: Encoder, batch: Batch) -> dict[str, Tensor]:
        """`infonce`, and `mlm` and `sparsity` where the stage and the encoder have them, unweighted."""
        found, words = self._read(encoder, batch)
        count, device = len(batch.own), encoder.device
        queries, documents = found[:count], found[count:]
        scores = losses.scores(queries, documents)
        terms = {
            "infonce": losses.infonce(
                scores, batch.own.to(device), batch.relevant.to(device), self.temperature
            )
        }
        if "sparsity" in self.weights:
            terms["sparsity"] = losses.flops(queries) + losses.flops(documents)
        if "mlm" in self.weights:
            terms["mlm"] = words
        return terms

    def _read(self, encoder: Encoder, batch: Batch) -> tuple[Tensor, Tensor]:
        """The vector of every text, and the cross entropy of the masked words of the texts read here."""
        states: list[Tensor] = []
        labels: list[Tensor] = []

        def read(rows: Sequence[int]) -> Tensor:
            groups = list(group_by_length([len(batch.ids[row]) for row in rows], PADDED_TOKENS_A_PASS))
            parts = []
            for group in groups:
                ids, mask = pad(
                    [batch.ids[rows[each]] for each in group], encoder.tokenizer.pad_token_id or 0
                )
                mask = mask.to(encoder.device)
                read_states = encoder.read(ids.to(encoder.device), mask)
                parts.append(encoder.vectors(read_states, mask))
                hidden = pad([batch.labels[rows[each]] for each in group], SHOWN)[0].to(encoder.device)
                states.append(read_states[hidden != SHOWN])
                labels.append(hidden[hidden != SHOWN])
            order = torch.tensor([each for group in groups for each in group]).argsort()
            return torch.cat(parts)[order.to(encoder.device)]

        everything = range(len(batch.ids))
        found = shared_out(read, everything)
        if "mlm" not in self.weights:
            return found, found.sum() * 0.0
        return found, self._masked_words(encoder, batch, states, labels, mine=bool(own_share(everything)))

    def _masked_words(
        self, encoder: Encoder, batch: Batch, states: list[Tensor], labels: list[Tensor], *, mine: bool
    ) -> Tensor:
        """Mean over all masked words of the batch; a process without texts of its own adds nothing."""
        count = sum(label != SHOWN for text in batch.labels for label in text)
        words = torch.cat(labels)
        mean = losses.masked_words(
            encoder.for_words(torch.cat(states)),
            encoder.output_rows,
            encoder.output_bias,
            words,
            torch.tensor(self.vocabulary, device=encoder.device),
        )
        return total(mean * (len(words) / max(1, count) if mine else 0.0))

    def _mask(self, ids: list[int], random: Generator) -> tuple[list[int], list[int]]:
        """Words that the softmax runs over, hidden at the stage's rate; labels are SHOWN elsewhere."""
        labels = [SHOWN] * len(ids)
        if not isinstance(self.settings, config.Joint):
            return ids, labels
        chances, masked = random.random(len(ids)), list(ids)
        for place, token in enumerate(ids):
            if chances[place] < self.settings.mask_rate and token in self.maskable:
                masked[place], labels[place] = self.mask_id, token
        return masked, labels


def _vocabulary(encoder: Encoder, settings: config.Joint) -> list[int]:
    """The tokens that are masked, and that the softmax runs over: the new ones, or all."""
    if settings.masked == "all":
        return list(range(encoder.vocabulary_size))
    if not encoder.new_tokens:
        raise ConfigError(
            'joint: this model has no new tokens to mask; extend it first, or set masked = "all"'
        )
    return sorted(token.token_id for token in encoder.new_tokens)


def cut(token_ids: list[list[int]], longest: int) -> list[list[int]]:
    """Texts of at most so many tokens, the last special one kept."""
    return [ids if len(ids) <= longest else [*ids[: longest - 1], ids[-1]] for ids in token_ids]


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
