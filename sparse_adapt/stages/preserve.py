"""Preserve: an extended model, or one with another body, says of every text what the model before said.

An extension takes from old words the pieces they used to match by; retrieval falls at once. Here the model
from before, reading the same text in its own tokens, is the teacher. A model on another body has the same
tokens, and learns the rest in the same way. A dense encoder is to give the same vectors.
Of a sparse one each old dimension keeps its weight, and what the pieces of a new term weighed is handed over to the
term's own dimension, in part or whole, so that the score of two texts that both say it stays the same:
w' = w sqrt(1 - handed) for each piece, and the root of `handed` times the sum of their squares for the term.
Where a table weighs queries, a query that says the term has the term's weight alone: a document gives the term what
its pieces scored for such a query, divided by that weight.

Dimensions: B texts, D tokens that the extension added, V vocabulary, O the vocabulary before it, H hidden.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from sparse_adapt.errors import ConfigError
from sparse_adapt.registry import registry
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import BEFORE, CORPUS, Inputs
from sparse_adapt.stages.record import extended_from
from sparse_adapt.stages.stage import Stage
from sparse_adapt.training.settings import Trained, Training

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from torch import Tensor

    from sparse_adapt.model.encoder import Encoder
    from sparse_adapt.model.forms import Side
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.sparse import Pooled, SparseEncoder
    from sparse_adapt.model.tokens import TokenIds
    from sparse_adapt.training.loop import Task

Either = TypeVar("Either", bound="Encoder")
ANYWHERE = 0.25  # share of the corpus's texts that come from anywhere; the others say a new term
SLOPE_BELOW = 1.0  # of the activation below zero, where a weight is wanted but off: the slope it has at zero


class PreserveWeights(Settings):
    """Weights of the loss terms."""

    old: float = setting(1.0, "Distance of the old dimensions to what they were.", ge=0)
    new: float = setting(1.0, "Distance of the added dimensions to what they take over.", ge=0)
    extra: float = setting(
        0.3, "Weight of tokens that had none before, as a share of all the weight before.", ge=0
    )


class Preserve(Training):
    """Give texts the vectors that the model before the extension gives them."""

    weights: PreserveWeights = setting(PreserveWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    steps: int | None = setting(300, ge=1)
    narrow_rate: ClassVar[float] = 1e-4
    background: float = setting(
        0.25, "Share of the texts that are made of background words.", unit="share of the texts", ge=0, le=1
    )
    handed: float = setting(
        0.5, "Share of a term's match that its own token takes over from its pieces.", ge=0, le=1
    )
    document_words: int = setting(
        96, "Words of the longest text. Half of the texts are that long.", unit="words", ge=1
    )
    snippet_words: int = setting(12, "Words of the longest snippet, a text like a query.", unit="words", ge=2)


@dataclass(frozen=True, slots=True)
class PreserveBatch:
    """Texts as token ids of the extended model and of the model before."""

    ids: list[list[int]]
    before: list[list[int]]


class Preserving(ABC, Generic[Either]):
    """The stage over documents and snippets like queries, for `training.train`."""

    name = "preserve"

    def __init__(
        self,
        encoder: Either,
        reference: Either,
        documents: Sequence[str],
        settings: Preserve,
    ) -> None:
        """`reference`: the model before the extension. Raises ConfigError where the two don't belong together."""
        from sparse_adapt.synthetic.background import TEXTS, synthetic

        self.settings = settings
        self.steps = settings.steps_for(len(documents))
        weights: dict[str, float] = settings.weights.model_dump()
        self.weights: Mapping[str, float] = {term: weights[term] for term in self.learnt}
        self.tokenizer, self.reference = encoder, reference.requires_grad_(False)
        self.old = reference.vocabulary_size
        self.added = [token for token in encoder.new_tokens if token.token_id >= self.old]
        other_body = encoder.input_rows.shape[1:] != reference.input_rows.shape[1:]
        if encoder.vocabulary_size < self.old or not (self.added or other_body):
            raise ConfigError(
                f"preserve: the model has no tokens beyond the {self.old:,} of the model before it; extend it first"
            )
        self.pieces = {token.token_id: list(token.pieces) for token in self.added}
        self.documents = documents
        self.background = synthetic(TEXTS, settings.seed) if settings.background > 0.0 else []
        self.saying = _saying(encoder.tokenize(documents), self.pieces)
        self.mentioned = sorted(self.saying)
        if settings.train == "new":  # rows of an earlier extension are old ones here
            for rows in (encoder.input_rows, encoder.output_rows, encoder.output_bias):
                if rows is not None:
                    rows.requires_grad_(True).register_hook(partial(_from_row, self.old))

    def batch(self, random: "Generator") -> PreserveBatch:
        """Half documents, half snippets; most say a new term, each term as often as any other.

        Some are of background words, long or short as the others.
        """
        from sparse_adapt.synthetic.background import LIKE_PASSAGES, LIKE_QUERIES

        count, texts = self.settings.batch_size, []
        for number in range(count):
            longest = self.settings.document_words
            if number >= count // 2:
                longest = int(random.integers(2, self.settings.snippet_words + 1))
            if self.background and random.random() < self.settings.background:
                alike = self.background[LIKE_QUERIES if number >= count // 2 else LIKE_PASSAGES]
                texts.append(alike[int(random.integers(len(alike)))])
            elif self.mentioned and random.random() >= ANYWHERE:
                token = self.mentioned[int(random.integers(len(self.mentioned)))]
                row = int(random.choice(self.saying[token]))
                texts.append(self._around(self.documents[row], token, longest, random))
            else:
                words = self.documents[int(random.integers(len(self.documents)))].split()
                start = int(random.integers(max(1, len(words) - longest + 1)))
                texts.append(" ".join(words[start : start + longest]))
        ids, before = (self._read(model, texts) for model in (self.tokenizer, self.reference))
        return PreserveBatch(ids, before)

    def _read(self, model: Either, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of a batch's texts: half documents, half like queries, which a table doesn't read."""
        half = self.settings.batch_size // 2
        like_queries: Side = "document" if _by_table(model) else "query"
        return [*model.tokenize(texts[:half]), *model.tokenize(texts[half:], like_queries)]

    @property
    @abstractmethod
    def learnt(self) -> tuple[str, ...]:
        """The names of its terms."""

    @abstractmethod
    def terms(self, encoder: Either, batch: PreserveBatch) -> "dict[str, Tensor]":
        """How far the encoder's vectors are from what they should be, unweighted: a scalar a term, ()."""

    def _around(self, text: str, token: int, longest: int, random: "Generator") -> str:
        """So many words of a text, a place where it says a term among them."""
        encoded = self.tokenizer.tokenizer(
            text,
            truncation=True,
            max_length=self.tokenizer.max_tokens,
            return_offsets_mapping=True,
        )
        places = [
            span[0]
            for ids_of_text, span in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
            if ids_of_text == token
        ]
        words = text.split()
        words_before = len(text[: int(random.choice(places)) + 1].split()) - 1 if places else 0
        first = max(0, min(words_before - int(random.integers(longest)), len(words) - longest))
        return " ".join(words[first : first + longest])


class SparsePreserve(Preserving["SparseEncoder"]):
    """The old dimensions as they were; a term's own takes over from its pieces."""

    learnt = ("old", "new", "extra")

    def __init__(
        self,
        encoder: "SparseEncoder",
        reference: "SparseEncoder",
        documents: Sequence[str],
        settings: Preserve,
    ) -> None:
        """Where a table weighs queries, it gets the weights of the new tokens from the documents.

        Raises ConfigError as others do, and where the two make weights in different ways.
        """
        if encoder.form != reference.form:
            raise ConfigError("preserve: the model and the model before it make weights in different ways")
        super().__init__(encoder, reference, documents, settings)
        if encoder.query_side is not None:
            token_ids = [list(ids) for ids in encoder.tokenize(documents)]
            encoder.query_side = encoder.query_side.with_idf(token_ids, sorted(self.pieces))

    def terms(self, encoder: "SparseEncoder", batch: PreserveBatch) -> "dict[str, Tensor]":
        """`old` and `new`: squared distance of the old and of the added dimensions to what they should be.

        Both relative to the squared length of the vector before. `extra`: the weights of tokens that should have
        none, relative to all weights before; a square hardly sees them, and they make vectors longer. Means, ().
        """
        import torch

        with torch.no_grad():
            before = self.reference.weights(batch.before).to(encoder.device)
            wanted = torch.zeros(len(before), encoder.vocabulary_size, device=before.device)
            wanted[:, : self.old] = before
            self._hand_over(wanted, batch)
            length = before.square().sum(dim=1).clamp_min(1e-6)
            size = before.sum(dim=1).clamp_min(1e-6)
        active = wanted > 0
        weights = reaching(encoder(batch.ids, active), active)
        gaps = (weights - wanted).square()
        extra = (weights * (wanted == 0)).sum(dim=1)
        old, new = gaps[:, : self.old].sum(dim=1), gaps[:, self.old :].sum(dim=1)
        return {
            "old": (old / length).mean(),
            "new": (new / length).mean(),
            "extra": (extra / size).mean(),
        }

    def _hand_over(self, wanted: "Tensor", batch: PreserveBatch) -> None:
        """Move weight from the pieces of each term that a text says to the term, in place: (B, V)."""
        remaining, handed = (1.0 - self.settings.handed) ** 0.5, self.settings.handed**0.5
        table = None if self.tokenizer.query_side is None else self.tokenizer.query_side.weights
        for row, ids in enumerate(batch.ids):
            tokens = [token for token in dict.fromkeys(ids) if token in self.pieces]
            elsewhere = set(ids)  # a piece that also stands for itself keeps its weight
            weights: dict[int, float] = {}
            for token in tokens:
                pieces = [piece for piece in dict.fromkeys(self.pieces[token]) if piece < self.old]
                if table is None:
                    wanted[row, token] = handed * float(wanted[row, pieces].square().sum().sqrt())
                elif table[token]:  # a query has the term alone, where it had all of its pieces
                    scored = wanted[row, pieces].cpu().numpy() @ table[pieces]
                    wanted[row, token] = float(scored) / float(table[token])
                weights |= {piece: remaining for piece in pieces if piece not in elsewhere}
            for piece, factor in weights.items():
                wanted[row, piece] *= factor


def reaching(pooled: "Pooled", wanted: "Tensor") -> "Tensor":
    """Weights (B, V) of texts; below zero, where a weight is wanted, the activation goes on as a line.

    A weight that is off has no gradient, and would stay off.
    """
    import torch

    maximum = pooled.maximum.float()
    return torch.where(wanted & (maximum < 0), SLOPE_BELOW * maximum, pooled.weights)


def _by_table(model: "Encoder") -> bool:
    """Whether queries are weighed by a table."""
    from sparse_adapt.model.sparse import SparseEncoder

    return isinstance(model, SparseEncoder) and model.query_side is not None


def _from_row(first: int, gradient: "Tensor") -> "Tensor":
    """A gradient (V, H) that leaves the rows before `first` alone; Adam doesn't move what never had one."""
    copy = gradient.clone()
    copy[:first] = 0.0
    return copy


def _saying(token_ids: "Sequence[TokenIds]", tokens: Mapping[int, object]) -> "dict[int, np.ndarray]":
    """Rows (texts,) of the texts that say each token, for those that any says."""
    import numpy as np

    rows: dict[int, list[int]] = {}
    for row, ids in enumerate(token_ids):
        for token in set(ids) & tokens.keys():
            rows.setdefault(token, []).append(row)
    return {token: np.array(places) for token, places in rows.items()}


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Preserve) -> "Task[Any]":
    """The task with the model before the extension as the teacher: the one that is named, or that was extended."""
    from sparse_adapt.model.kinds import load_encoder
    from sparse_adapt.model.sparse import SparseEncoder

    extended = inputs.get(BEFORE) or extended_from(inputs.model)
    if extended is None:
        raise ConfigError(
            f"{inputs.model}: nothing says which model was extended to this one; name it with --baseline"
        )
    documents = [document.full_text for document in inputs[CORPUS]]
    before = load_encoder(extended, str(encoder.device))
    if type(before) is not type(encoder):
        raise ConfigError(
            f"{inputs.model} and {extended}: one is sparse, the other dense; name another --baseline"
        )
    if isinstance(encoder, SparseEncoder) and isinstance(before, SparseEncoder):
        return SparsePreserve(encoder, before, documents, settings)
    task: Task[Any] = registry().find("tasks", "preserve")(encoder, before, documents, settings)
    return task


PRESERVE = Stage("preserve", Preserve, (CORPUS, BEFORE), build, refuses=("beside",), texts=0.5)
