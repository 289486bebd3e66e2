"""Logits: each token of a text gets the logits that another model with the same vocabulary gives it.

A vector of a whole text tells little of what each state should be, and the head takes as long as the body. The squared
distance between two models' logits, summed over the vocabulary, needs no logit. Let s be a state and r a row of the
decoder, with the bias as a last coordinate. The distance, weighed by w over the vocabulary, is s'As - 2 s'Cz + z'Bz,
with z the other model's state and A, C and B the sums of w rr' over the rows of both. So the body learns for the cost
of the body. Dimensions: N tokens of a batch, V vocabulary, H and S widths of the two models.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sparse_adapt.errors import ConfigError
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import BEFORE, CORPUS, Inputs
from sparse_adapt.stages.stage import Stage
from sparse_adapt.training.settings import Trained, Training

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.training.loop import Task

LOOKED_AT = 256  # documents that tell how often each token is active


class LogitsWeights(Settings):
    """Weights of the loss terms."""

    logits: float = setting(1.0, "Share of the other model's variance of logits that isn't matched.", ge=0)


class Logits(Training):
    """Give each token of a text the logits that another model gives it. Their vocabulary is the same."""

    weights: LogitsWeights = setting(LogitsWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    steps: int | None = setting(1_000, ge=1)
    batch_size: int = setting(24, "Texts of a step.", unit="texts", ge=1)
    narrow_rate: ClassVar[float] = 1.5e-3
    words: int = setting(
        96, "Words of a text that is read; which of a document's, is drawn.", unit="words", ge=1
    )
    rare: float = setting(
        0.3,
        "How much of the distance counts every token alike. The rest counts tokens as often as they are active.",
        ge=0,
        le=1,
    )


@dataclass(frozen=True, slots=True)
class Products:
    """The three sums over the vocabulary: A (H + 1, H + 1), C (H + 1, S + 1), B (S + 1, S + 1)."""

    own: "Tensor"
    both: "Tensor"
    theirs: "Tensor"


class TokenLogits:
    """The stage over pieces of documents, for `training.train`."""

    name = "logits"

    def __init__(
        self, encoder: "SparseEncoder", teacher: "SparseEncoder", documents: Sequence[str], settings: Logits
    ) -> None:
        """`teacher`: the model whose logits are learnt; its vocabulary is that of the encoder."""
        self.settings = settings
        self.steps = settings.steps_for(len(documents))
        self.weights: Mapping[str, float] = settings.weights.model_dump()
        self.teacher = teacher.requires_grad_(False)
        self.words = [words for words in map(str.split, documents) if words]
        self.counts = self._counts(encoder, documents)
        tied = encoder.output_rows is encoder.input_rows  # then the rows move with the embeddings
        self.products = None if tied else self._products(encoder)

    def batch(self, random: "Generator") -> list[list[int]]:
        """Token ids of pieces of documents, each document as likely as any other."""
        texts = []
        for row in random.integers(0, len(self.words), self.settings.batch_size):
            words = self.words[int(row)]
            start = int(random.integers(max(1, len(words) - self.settings.words + 1)))
            texts.append(" ".join(words[start : start + self.settings.words]))
        return self.teacher.tokenize(texts)

    def terms(self, encoder: "SparseEncoder", batch: Sequence[Sequence[int]]) -> "dict[str, Tensor]":
        """`logits`: squared distance of all logits, as a share of the variance that the other model's have: ()."""
        states, wanted = self._states(encoder, batch)
        products = self.products or self._products(encoder)
        distance = ((states @ products.own) * states).sum() - 2.0 * ((states @ products.both) * wanted).sum()
        distance = distance + ((wanted @ products.theirs) * wanted).sum()
        around = wanted - wanted.mean(dim=0)
        return {"logits": distance / ((around @ products.theirs) * around).sum().clamp_min(1e-6)}

    def _states(self, encoder: "SparseEncoder", batch: Sequence[Sequence[int]]) -> "tuple[Tensor, Tensor]":
        """States of all tokens of both models, each with a 1 behind: (N, H + 1) and (N, S + 1), float32."""
        import torch

        from sparse_adapt.model.tokens import PADDED_TOKENS_A_PASS, group_by_length, pad

        own, theirs = [], []
        pad_id = encoder.tokenizer.pad_token_id or 0
        with encoder.looked_up(batch):
            for group in group_by_length([len(ids) for ids in batch], PADDED_TOKENS_A_PASS):
                ids, mask = (each.to(encoder.device) for each in pad([batch[row] for row in group], pad_id))
                own.append(encoder.hidden(ids, mask)[mask.bool()].float())
                with torch.no_grad():
                    theirs.append(self.teacher.hidden(ids, mask)[mask.bool()].float())
        states, wanted = torch.cat(own), torch.cat(theirs)
        return _with_one(states), _with_one(wanted)

    def _counts(self, encoder: "SparseEncoder", documents: Sequence[str]) -> "Tensor":
        """What each token counts (V): in part alike, in part as often as the other model activates it; 1 in all."""
        import torch

        from sparse_adapt.collection.streams import evenly

        some = evenly(documents, LOOKED_AT)
        ids = self.teacher.tokenize(some)
        active = torch.zeros(encoder.vocabulary_size, device=encoder.device)
        with torch.no_grad():
            for start in range(0, len(ids), 16):
                active += (self.teacher.weights(ids[start : start + 16]) > 0).sum(dim=0)
        rare = self.settings.rare
        return rare / len(active) + (1.0 - rare) * active / active.sum().clamp_min(1.0)

    def _products(self, encoder: "SparseEncoder") -> Products:
        """The three sums, over the rows as they are now."""
        own, theirs = _rows(encoder), _rows(self.teacher)
        weighed = own.T * self.counts
        return Products(weighed @ own, weighed @ theirs, (theirs.T * self.counts) @ theirs)


def _rows(encoder: "SparseEncoder") -> "Tensor":
    """The decoder's rows with their biases behind: (V, H + 1)."""
    import torch

    rows, bias = encoder.output_rows.detach(), encoder.output_bias
    last = rows.new_zeros(len(rows)) if bias is None else bias.detach()
    return torch.cat([rows, last[:, None]], dim=1)


def _with_one(states: "Tensor") -> "Tensor":
    """States (N, H) with a 1 behind each, which stands for the bias: (N, H + 1)."""
    import torch

    return torch.cat([states, states.new_ones(len(states), 1)], dim=1)


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Logits) -> "Task[SparseEncoder]":
    """The task with the model that is named as the teacher. Raises ConfigError for one of another vocabulary."""
    from sparse_adapt.model.sparse import SparseEncoder

    source = inputs.get(BEFORE)
    if source is None:
        raise ConfigError(
            f"{inputs.model}: the stage logits needs the model whose logits it learns; name it with --baseline"
        )
    assert isinstance(encoder, SparseEncoder)
    teacher = SparseEncoder.load(source, str(encoder.device))
    if teacher.tokenizer.get_vocab() != encoder.tokenizer.get_vocab():
        raise ConfigError(f"{inputs.model} and {source}: their vocabularies differ; name another --baseline")
    return TokenLogits(encoder, teacher, [document.full_text for document in inputs[CORPUS]], settings)


LOGITS = Stage("logits", Logits, (CORPUS, BEFORE), build, dense=False, refuses=("table",), texts=1.3)
