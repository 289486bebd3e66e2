"""A SPLADE model as one object: texts in, one weight per vocabulary token out.

Dimensions: B texts, L positions, H hidden, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Self

import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from sparse_adapt.errors import ModelError
from sparse_adapt.files.marker import vouching
from sparse_adapt.model.encoder import (
    DEFAULT_MAX_TOKENS,
    Encoder,
    NewToken,
    looking_up,
    read_beside,
    read_vocabulary,
    write_vocabulary,
)
from sparse_adapt.model.exact.words import ExactWords, read_exact_words, write_exact_words
from sparse_adapt.model.folder import ModelFolder, ModelSource
from sparse_adapt.model.forms import USUAL, Form, Side
from sparse_adapt.model.head.pooling import splade_pool
from sparse_adapt.model.head.summing import splade_sum
from sparse_adapt.model.idf import read_scales, scaled, write_scales
from sparse_adapt.model.layout import (
    POOLING,
    TRANSFORMERS,
    Modules,
    is_dense,
    read_modules,
    write_modules,
    write_route,
)
from sparse_adapt.model.query_side import QuerySide, read_query_side, write_query_side
from sparse_adapt.model.reading import Windows
from sparse_adapt.model.saved import (
    check_same_tokens,
    longest_text,
    lowers_case,
    read_masked_lm,
    read_tokenizer,
    write_masked_lm,
    write_tokenizer,
)
from sparse_adapt.model.tokens import (
    PADDED_TOKENS_A_PASS,
    TokenIds,
    check_rows,
    group_by_length,
    pad,
    tokenize,
)
from sparse_adapt.report.messages import note_told

HANDING = Lock()  # while a decoder's forward is put in or taken out


class Pooled(NamedTuple):
    """What the head finds in B texts: the largest raw logit of every token (B, V) and its position (B, V).

    summed: the weights (B, V) of a model that sums over positions; others have them from the maximum.
    """

    maximum: Tensor
    position: Tensor
    form: Form = USUAL
    summed: Tensor | None = None

    @property
    def weights(self) -> Tensor:
        """SPLADE weights (B, V), float32, never negative."""
        return self.form.activate(self.maximum) if self.summed is None else self.summed


class SparseEncoder(Encoder):
    """A masked language model, its tokenizer and the tokens that extensions added to them."""

    def __init__(
        self,
        masked_lm: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        new_tokens: Sequence[NewToken] = (),
        max_tokens: int = DEFAULT_MAX_TOKENS,
        form: Form = USUAL,
        query_side: QuerySide | None = None,
    ) -> None:
        """`query_side`: the table that queries are weighed by; by default the model reads them as it does documents."""
        super().__init__(tokenizer, new_tokens, max_tokens)
        self.masked_lm = masked_lm
        self.form, self.query_side = form, query_side
        self.query_encoder: SparseEncoder | None = None  # the second model, where one reads queries alone
        self.windows: Windows | None = None
        self.words: ExactWords | None = None
        self._without_decoder = 0  # blocks that go on
        self.check()

    # -- life: load, save ---------------------------------------------------------------------

    @classmethod
    def load(cls, source: ModelSource, device: str = "cpu") -> Self:
        """Read a model from a folder, an alias or `hub:owner/name`. Safetensors only, no remote code.

        Raises ModelError where there is no model, no masked-language-model head or no fast tokenizer, and
        for a dense model.
        """
        source = ModelFolder.of(source)
        folder = source.path
        if is_dense(folder):
            raise ModelError(
                f"{source}: is a dense model, where a SPLADE model is needed, such as splade-tiny"
            )
        modules = read_modules(folder, source)
        encoder = cls._read(modules, source, folder)
        if modules.queries is not None:
            encoder.query_encoder = encoder._read_beside(modules.queries, source)
        encoder.query_side = read_query_side(
            modules.table, encoder.tokenizer, encoder.vocabulary_size, encoder.max_tokens, source
        )
        encoder.token_scales = read_scales(folder, encoder.vocabulary_size)
        encoder.words = read_exact_words(folder)
        return encoder.to(device).eval()

    @classmethod
    def _read(cls, modules: Modules, source: ModelFolder, folder: Path | None = None) -> Self:
        """The model that some modules name, with what extensions added where the model's `folder` is given."""
        masked_lm, tokenizer = read_masked_lm(modules.place, source), read_tokenizer(modules.place, source)
        if modules.lowers and not lowers_case(tokenizer):
            raise ModelError(
                f"{source}: do_lower_case is set, but its tokenizer keeps case; choose another model"
            )
        most = longest_text(masked_lm, tokenizer)
        longest = modules.longest or (most if modules.by_library else DEFAULT_MAX_TOKENS)
        new_tokens, max_tokens, windows = (
            ([], longest, None) if folder is None else read_vocabulary(folder, longest)
        )
        try:
            encoder = cls(masked_lm, tokenizer, new_tokens, min(max_tokens, most), modules.form)
        except ModelError as error:
            raise ModelError(f"{source}: {error}") from error
        encoder.read_by(windows)
        if folder is not None:
            encoder.new_tokens = (*encoder.new_tokens, *read_beside(folder, encoder))
        return encoder

    def _read_beside(self, modules: Modules, source: ModelFolder) -> "SparseEncoder":
        """The second model, where one reads queries alone: with the tokens of this one, which reads documents."""
        encoder = SparseEncoder._read(modules, source)
        check_same_tokens(self.tokenizer, encoder.tokenizer, source)
        if encoder.vocabulary_size != self.vocabulary_size:
            raise ModelError(
                f"{source}: its encoder of queries has {encoder.vocabulary_size:,} tokens, that of documents "
                f"{self.vocabulary_size:,}; both need the same"
            )
        return encoder

    def save(self, folder: Path) -> None:
        """Write the model so that transformers, sentence-transformers and raw tokenizers read the same."""
        folder.mkdir(parents=True, exist_ok=True)
        with vouching(folder):
            write_masked_lm(folder, self.masked_lm)
            write_tokenizer(folder, self.tokenizer, self.max_tokens)
            write_vocabulary(folder, self, self.windows)
            write_modules(folder, self.form, self.vocabulary_size, self._write_query_route(folder))
            if self.token_scales is not None:
                write_scales(folder, self.token_scales)
            if self.words is not None:
                write_exact_words(folder, self.words)

    def _write_query_route(self, folder: Path) -> dict[str, str]:
        """Write what reads queries alone, where something does: the kind of each module, by its folder."""
        if self.query_side is not None:
            return write_query_side(folder, self.query_side, self.tokenizer)
        other = self.query_encoder
        if other is None:
            return {}
        transformer, pooling = f"query_0_{TRANSFORMERS[0]}", f"query_1_{POOLING}"
        write_masked_lm(folder / transformer, other.masked_lm)
        write_tokenizer(folder / transformer, other.tokenizer, other.max_tokens)
        write_route(folder / transformer, folder / pooling, other.form, other.vocabulary_size)
        return {transformer: TRANSFORMERS[0], pooling: POOLING}

    @torch.no_grad()
    def check(self) -> None:
        """Refuse a model whose last step isn't one linear layer over the vocabulary; tries three tokens."""
        decoder: object = self.masked_lm.get_output_embeddings()
        rows, name = self.input_rows.shape[0], type(self.masked_lm).__name__
        if not isinstance(decoder, nn.Linear) or decoder.out_features != rows:
            raise ModelError(f"{name} has no linear layer over its {rows:,} tokens; choose another model")
        check_rows(self.tokenizer, rows)
        ids = torch.arange(min(3, rows), device=self.device).unsqueeze(0)
        training = self.masked_lm.training
        self.masked_lm.eval()
        logits = self.masked_lm(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        hidden = self.hidden(ids, torch.ones_like(ids))
        self.masked_lm.train(training)
        if hidden.shape[-1] != decoder.in_features or not torch.allclose(
            decoder(hidden), logits, atol=1e-4, equal_nan=True
        ):
            raise ModelError(f"{name} does more to its logits than one linear layer; choose another model")

    # -- what it is made of -------------------------------------------------------------------

    @property
    def unusual(self) -> frozenset[str]:
        """Which parts of its form some stages and engines can't follow, such as "sum"."""
        parts = {
            "encoders": self.query_encoder is not None,
            "sum": self.form.pooling == "sum",
            "table": self.query_side is not None,
            "prompts": self.form.prompts_used,
            "entries": self.form.entries is not None,
            "beside": self.entries is not None,
        }
        return frozenset(name for name, has in parts.items() if has)

    @property
    def transformer(self) -> PreTrainedModel:
        """The masked language model."""
        return self.masked_lm

    @property
    def output_rows(self) -> nn.Parameter:
        """Decoder rows (V, H); the same parameter as `input_rows` where the model ties them."""
        rows: nn.Parameter = self.masked_lm.get_output_embeddings().weight
        return rows

    @property
    def output_bias(self) -> nn.Parameter | None:
        """Decoder bias (V), where the model has one."""
        bias: nn.Parameter | None = self.masked_lm.get_output_embeddings().bias
        return bias

    def grow(self, rows: int) -> None:
        """Make room for so many tokens; what is in the new rows is left to the caller."""
        self.masked_lm.resize_token_embeddings(rows, mean_resizing=False)

    def weighed(self, vectors: csr_matrix) -> csr_matrix:
        """Vectors (B, V) as a match counts them: the entries that the form keeps, each times its token's factor.

        `token_scales.json` beside the weights holds them: how much a token tells in the corpus that the model was
        adapted to, the fourth root of its inverse document frequency, so that a product of two weights has the
        square root. No layer can hold them, for they stand outside log1p.
        """
        vectors = self.form.pruned(vectors)
        return vectors if self.token_scales is None else scaled(vectors, self.token_scales_of())

    def adds_words_to(self, other: "SparseEncoder") -> bool:
        """Whether exact words and token scales alone tell this model's vectors from those of another, which has none.

        Models that read queries apart from documents, or terms beside their pieces, count as different.
        """
        read_apart = {"encoders", "table", "beside"} & (self.unusual | other.unusual)
        plain = other.words is None and other.token_scales is None
        if self.words is None or not plain or read_apart:
            return False
        ways = [(each.form, each.max_tokens, each.windows, each.new_tokens) for each in (self, other)]
        vocabularies = [each.tokenizer.get_vocab() for each in (self, other)]
        if ways[0] != ways[1] or vocabularies[0] != vocabularies[1]:
            return False
        mine, theirs = self.masked_lm.state_dict(), other.masked_lm.state_dict()
        return mine.keys() == theirs.keys() and all(
            torch.equal(value, theirs[name]) for name, value in mine.items()
        )

    def for_side(self, side: Side) -> "SparseEncoder":
        """The model that reads the texts of a side: this one, but for queries that have an encoder of their own."""
        return self if side == "document" or self.query_encoder is None else self.query_encoder

    def fold_scales(self) -> None:
        """Put what a match on each token counts into the table of queries, where there is one: the same scores.

        A product of two weights has the factor twice. Documents then keep their own weights, as other programs,
        which know the table but no token scales, make them.
        """
        if self.query_side is not None and self.token_scales is not None:
            self.query_side = self.query_side.times(self.token_scales_of() ** 2)
            self.token_scales = None

    # -- text to vectors ----------------------------------------------------------------------

    def tokenize(self, texts: Sequence[str], side: Side = "document") -> list[list[int]]:
        """Token ids of each text behind the prompt of its side; those of a table for queries without special tokens."""
        if self.words is not None:
            note_told()
        if self.for_side(side) is not self:
            return self.for_side(side).tokenize(texts, side)
        prompt = self.form.prompt(side)
        put = [prompt + text for text in texts] if prompt else texts
        if side == "document" or self.query_side is None or not texts:
            return super().tokenize(put)
        return tokenize(self.tokenizer, put, self.query_side.longest, special=False)

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Hidden states (B, L, H) after the head's transform: what the decoder rows are multiplied with."""
        with self.without_decoder():
            states: Tensor = self.masked_lm(input_ids=input_ids, attention_mask=attention_mask).logits
            return states

    @contextmanager
    def without_decoder(self) -> Iterator[None]:
        """Let the decoder hand its input through, so that the (B, L, V) logits are never built.

        It does so until the last of the blocks ends that threads are in at the same time.
        """
        decoder = self.masked_lm.get_output_embeddings()
        with HANDING:
            decoder.forward = _identity
            self._without_decoder += 1
        try:
            yield
        finally:
            with HANDING:
                self._without_decoder -= 1
                if not self._without_decoder:
                    del decoder.forward

    @contextmanager
    def looked_up(self, token_ids: Sequence[TokenIds]) -> Iterator[None]:
        """Let every pass over these texts take their embeddings from one small table.

        Each pass that looks them up among all has a gradient of the size of the vocabulary; so they have one.
        """
        embeddings = self.masked_lm.get_input_embeddings()
        learns = torch.is_grad_enabled() and self.input_rows.requires_grad
        if not learns or type(embeddings) is not nn.Embedding or "forward" in vars(embeddings):
            yield
            return
        pad_id = self.tokenizer.pad_token_id or 0
        tokens = torch.tensor(sorted({pad_id}.union(*token_ids)), device=self.device)
        table = functional.embedding(tokens, embeddings.weight, embeddings.padding_idx)

        def look_up(ids: Tensor) -> Tensor:
            return functional.embedding(torch.searchsorted(tokens, ids), table)

        with looking_up(embeddings, look_up):
            yield

    def pool(self, input_ids: Tensor, attention_mask: Tensor, wanted: Tensor | None = None) -> Pooled:
        """Largest logit of every token and its position, both (B, V), for one padded batch."""
        hidden = self.hidden(input_ids, attention_mask)
        head = hidden, self.output_rows, self.output_bias, attention_mask
        summed = splade_sum(*head, self.form.activation) if self.form.pooling == "sum" else None
        return Pooled(*splade_pool(*head, wanted), self.form, summed)

    def vectors(self, states: Tensor, attention_mask: Tensor, input_ids: Tensor) -> Tensor:
        """SPLADE weights (B, V) of states (B, L, H), without token scales."""
        head = states, self.output_rows, self.output_bias, attention_mask
        if self.form.pooling == "sum":
            return splade_sum(*head, self.form.activation)
        return self.form.activate(splade_pool(*head, self.no_token())[0])

    def read_by(self, windows: Windows | None) -> None:
        """Have documents read by windows from now on, or, with None, up to `max_tokens`.

        Raises ConfigError for windows that are longer than the model reads. Stages learn from a document's beginning.
        """
        if windows is not None:
            windows.check(self.max_tokens)
        self.windows = windows

    @contextmanager
    def without_windows(self) -> Iterator[None]:
        """Read documents up to `max_tokens` for the while."""
        windows, self.windows = self.windows, None
        try:
            yield
        finally:
            self.windows = windows

    def no_token(self) -> Tensor:
        """For `wanted`, where only weights are wanted: (V) booleans, all false."""
        return torch.zeros(self.vocabulary_size, dtype=torch.bool, device=self.device)

    def weights(self, token_ids: Sequence[TokenIds]) -> Tensor:
        """SPLADE weights (B, V) of some texts: float32, never negative."""
        pooled: Pooled = self(token_ids, self.no_token())
        return pooled.weights

    def for_words(self, states: Tensor) -> Tensor:
        """States (rows, H) themselves: `hidden` has transformed them."""
        return states

    def forward(self, token_ids: Sequence[TokenIds], wanted: Tensor | None = None) -> Pooled:
        """Largest logit of every token and its position, both (B, V), rows in the order of the texts.

        Texts of like length go through together, so that short ones aren't padded to the longest. With
        `wanted`, booleans (B, V) or (V), maxima at or below zero are told of those tokens only (`splade_pool`).
        """
        if not token_ids:
            nothing = torch.zeros(0, self.vocabulary_size, device=self.device)
            return Pooled(nothing, nothing, self.form)
        groups = list(group_by_length([len(ids) for ids in token_ids], PADDED_TOKENS_A_PASS))
        parts = []
        with self.looked_up(token_ids):
            for group in groups:
                ids, mask = pad([token_ids[index] for index in group], self.tokenizer.pad_token_id or 0)
                theirs = None if wanted is None else wanted.expand(len(token_ids), -1)[group]
                parts.append(self.pool(ids.to(self.device), mask.to(self.device), theirs))
        if len(parts) == 1 and groups[0] == sorted(groups[0]):
            return parts[0]
        order = torch.tensor([index for group in groups for index in group], device=self.device).argsort()
        return Pooled(
            torch.cat([part.maximum for part in parts])[order],
            torch.cat([part.position for part in parts])[order],
            self.form,
            None if self.form.pooling == "max" else torch.cat([part.weights for part in parts])[order],
        )


def _identity(hidden: Tensor) -> Tensor:
    return hidden
