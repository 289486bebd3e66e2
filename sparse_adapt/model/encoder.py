"""What sparse and dense encoders have in common: a transformer, its tokenizer, the tokens that extensions added.

Stages that teach either kind go by four steps: `hidden` states of token ids, `vectors` of texts from states, and,
to tell what word was masked, `for_words`, which `output_rows` are multiplied with.
Dimensions: B texts, L positions, H hidden, V vocabulary.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import TypeAdapter
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from sparse_adapt.errors import ConfigError, ModelError
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.records import JsonObject
from sparse_adapt.model.entries import Entries, StoredEntry, check_entries, read_entries, write_entries
from sparse_adapt.model.forms import Side
from sparse_adapt.model.idf import TokenScales, of_all
from sparse_adapt.model.reading import Reading, Windows
from sparse_adapt.model.saved import most_positions
from sparse_adapt.model.tokens import TokenIds, names_of, names_of_all, tokenize

VOCABULARY_FILE = "vocabulary.json"
DEFAULT_MAX_TOKENS = 256


@dataclass(frozen=True, slots=True)
class NewToken:
    """One dimension that an extension added, and the old pieces of its term.

    `beside`: whether texts go on to be read by the pieces, so that the tokenizer has no such token.
    """

    token_id: int
    token: str
    term: str
    category: str
    pieces: tuple[int, ...]
    beside: bool = False


class Encoder(nn.Module, ABC):
    """Texts to vectors, by a vocabulary that can grow.

    tokens_at_once: padded tokens whose activations are held at a time while the model learns; None: those of all texts.
    """

    tokens_at_once: int | None = None

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, new_tokens: Sequence[NewToken], max_tokens: int
    ) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.new_tokens = tuple(new_tokens)
        self.max_tokens = max_tokens
        self.token_scales: TokenScales | None = None

    @property
    def new_tokens(self) -> tuple[NewToken, ...]:
        """The tokens that extensions added, in the order of their ids."""
        return self._new_tokens

    @new_tokens.setter
    def new_tokens(self, tokens: tuple[NewToken, ...]) -> None:
        self._new_tokens = tokens
        self._pieces = {token.token_id: token.pieces for token in tokens if not token.beside}
        self._beside = {token.token_id: token.token for token in tokens if token.beside}
        self.entries = Entries(self.tokenizer, self._beside) if self._beside else None

    # -- what each kind has of its own --------------------------------------------------------

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the model so that its other loaders read the same."""

    @property
    @abstractmethod
    def transformer(self) -> PreTrainedModel:
        """The model of transformers, with its head where it has one."""

    @property
    @abstractmethod
    def output_rows(self) -> nn.Parameter:
        """Decoder rows (V, H); the same parameter as `input_rows` where the model ties them."""

    @property
    @abstractmethod
    def output_bias(self) -> nn.Parameter | None:
        """Decoder bias (V), where the model has one."""

    @abstractmethod
    def grow(self, rows: int) -> None:
        """Make room for so many tokens; what is in the new rows is left to the caller."""

    @abstractmethod
    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """States (B, L, H) of token ids (B, L), with all activations that the way back needs."""

    @abstractmethod
    def vectors(self, states: Tensor, attention_mask: Tensor, input_ids: Tensor) -> Tensor:
        """Vectors (B, V or H) whose products are scores, of states (B, L, H) that `hidden` gave for ids (B, L)."""

    @abstractmethod
    def for_words(self, states: Tensor) -> Tensor:
        """States (rows, H) as `output_rows` are multiplied with, for the logits of masked words."""

    @abstractmethod
    def read_by(self, windows: Windows | None) -> None:
        """Have documents read by windows from now on, or, with None, up to `max_tokens`."""

    # -- what both have -----------------------------------------------------------------------

    def hidden(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """States (B, L, H) of one padded batch (B, L), of which vectors and masked words are made.

        Under a bound on tokens the texts go through the model in parts, and the way back makes the activations of one
        part at a time anew (Chen et al. 2016, arXiv:1604.06174). The states of all texts are there for the loss, which
        is that of the whole batch (Gao et al. 2021, arXiv:2101.06983).
        """
        if self.tokens_at_once is None:
            return self.states(input_ids, attention_mask)
        rows = max(1, self.tokens_at_once // input_ids.shape[1])
        read = self._again if torch.is_grad_enabled() else self.states
        parts = zip(input_ids.split(rows), attention_mask.split(rows), strict=True)
        return torch.cat([read(*part) for part in parts])

    def _again(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """States (B, L, H) without their activations: the way back reads the texts once more, as they are read now."""
        embeddings, training = self.transformer.get_input_embeddings(), self.training
        look_up = vars(embeddings).get("forward")

        def read(ids: Tensor, mask: Tensor) -> Tensor:  # (B, L) twice -> (B, L, H)
            later = self.training
            self.train(training)
            try:
                with looking_up(embeddings, look_up):
                    return self.states(ids, mask)
            finally:
                self.train(later)

        states: Tensor = checkpoint(
            read, input_ids, attention_mask, use_reentrant=False, preserve_rng_state=training
        )
        return states

    @property
    def input_rows(self) -> nn.Parameter:
        """Input embeddings (V, H)."""
        rows: nn.Parameter = self.transformer.get_input_embeddings().weight  # type: ignore[assignment]
        return rows

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.input_rows.device

    @property
    def width(self) -> int:
        """H, of the body's states."""
        return int(self.transformer.config.hidden_size)

    @property
    def vocabulary_size(self) -> int:
        """V: rows of the decoder, new tokens included."""
        return self.output_rows.shape[0]

    @property
    def tokens(self) -> list[str]:
        """The name of each token by its id (V); empty for a row that stands for none."""
        names = names_of_all(self.tokenizer, self.vocabulary_size)
        for token_id, name in self._beside.items():
            names[token_id] = name
        return names

    def names_of(self, token_ids: Sequence[int]) -> tuple[str, ...]:
        """The names of some tokens."""
        known = iter(names_of(self.tokenizer, [each for each in token_ids if each not in self._beside]))
        return tuple(self._beside[each] if each in self._beside else next(known) for each in token_ids)

    @property
    def old_size(self) -> int:
        """Size of the vocabulary before any extension; new ids start here."""
        return min((token.token_id for token in self.new_tokens), default=self.vocabulary_size)

    def token_scales_of(self, token_ids: NDArray[np.int64] | None = None) -> TokenScales:
        """What some tokens, by default all (V), count: a sparse encoder's weights, or in a dense one's mean.

        1 without token scales. A token that an extension added since counts as the most telling one.
        """
        token_scales = of_all(self.token_scales, self.vocabulary_size)
        return token_scales if token_ids is None else token_scales[token_ids]

    def tokenize(self, texts: Sequence[str], side: Side = "document") -> list[list[int]]:
        """Token ids of each text of a side, with special tokens, cut at `max_tokens`."""
        return tokenize(self.tokenizer, texts, self.max_tokens) if texts else []

    def read_as(self, reading: Reading) -> None:
        """Read texts as the arguments say, else as the folder does. Raises ConfigError for odd windows."""
        if reading.max_tokens is not None:
            self.read_up_to(reading.max_tokens)
        windows = reading.cut()
        if reading.windows is not None:
            self.read_by(windows)

    def read_up_to(self, tokens: int) -> None:
        """Have texts cut at so many tokens from now on, or at as many as the model has positions for."""
        self.max_tokens = min(tokens, most_positions(self.transformer))

    def new_tokens_said(self, token_ids: Sequence[TokenIds]) -> NDArray[np.bool_]:
        """Which texts, given as token ids, say which new token, in the order of `new_tokens` (T): (B, T)."""
        new_ids = [token.token_id for token in self.new_tokens]
        mentions = [np.isin(new_ids, self.says_in(ids)) for ids in token_ids]
        return np.array(mentions, np.bool_).reshape(len(token_ids), len(new_ids))

    def places_of(self, token_id: int, token_ids: TokenIds) -> list[range]:
        """The places of each saying of a token in a text: its own, or its pieces' where it stands beside them."""
        beside = () if self.entries is None else self.entries.said_in(token_ids)
        own = [range(place, place + 1) for place, each in enumerate(token_ids) if each == token_id]
        return own + [range(said.start, said.stop) for said in beside if said.dimension == token_id]

    def says_in(self, token_ids: TokenIds) -> list[int]:
        """The tokens of a text, and the entries beside their pieces that it says."""
        beside = () if self.entries is None else self.entries.said_in(token_ids)
        return [*token_ids, *(said.dimension for said in beside)]

    def old_tokenization(self, token_ids: TokenIds) -> list[int]:
        """The same text in the vocabulary from before extension: every new token replaced by its pieces.

        That is how the base model cut the text, but for words that begin with a new token (`kubectl`, `##s`).
        """
        old: list[int] = []
        for token_id in token_ids:
            old.extend(self._pieces.get(token_id, (token_id,)))
        if len(old) > self.max_tokens:
            old = [*old[: self.max_tokens - 1], old[-1]]
        return old


@contextmanager
def looking_up(embeddings: nn.Module, look_up: Callable[[Tensor], Tensor] | None) -> Iterator[None]:
    """Let embeddings look token ids (B, L) up by another function for the while; None: as they do already."""
    if look_up is None or "forward" in vars(embeddings):
        yield
        return
    embeddings.forward = look_up
    try:
        yield
    finally:
        del embeddings.forward


def write_vocabulary(folder: Path, encoder: Encoder, windows: Windows | None = None) -> None:
    """Write beside a model what an extension added, the longest text, and the windows that documents are read by."""
    stored: JsonObject = {"max_tokens": encoder.max_tokens}
    if windows is not None:
        stored["windows"] = asdict(windows)
    stored["new_tokens"] = [
        {key: value for key, value in asdict(token).items() if key != "beside"}
        for token in encoder.new_tokens
        if not token.beside
    ]
    write_json(folder / VOCABULARY_FILE, stored)
    if beside := [token for token in encoder.new_tokens if token.beside]:
        stored_entries = [
            StoredEntry(
                dimension=each.token_id,
                name=each.token,
                term=each.term,
                category=each.category,
                pieces=each.pieces,
            )
            for each in beside
        ]
        write_entries(folder, stored_entries)


def read_beside(folder: Path, encoder: Encoder | None = None) -> tuple[NewToken, ...]:
    """The terms that a model folder has beside their pieces. `encoder`: the model, with which they have to go.

    Raises ModelError as `read_entries` and `check_entries` do.
    """
    stored = read_entries(folder)
    if encoder is not None and stored:
        check_entries(folder, stored, encoder.tokenizer, encoder.vocabulary_size)
    return tuple(
        NewToken(each.dimension, each.name, each.term, each.category, each.pieces, beside=True)
        for each in stored
    )


def read_vocabulary(
    folder: Path, longest: int = DEFAULT_MAX_TOKENS
) -> tuple[list[NewToken], int, Windows | None]:
    """New tokens, the longest text and the windows of a model folder; none, and `longest`, where none are written."""
    path = folder / VOCABULARY_FILE
    if not path.is_file():
        return [], longest, None
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        tokens = TypeAdapter(list[NewToken]).validate_python(stored["new_tokens"])
        longest = int(stored["max_tokens"])
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        reason = " ".join(str(error).split("\n")[:3])
        raise ModelError(f"{path}: damaged ({reason}); repeat the extension") from error
    entry = stored.get("windows")
    try:
        windows = None if entry is None else Windows(**{key: int(value) for key, value in entry.items()})
    except (ConfigError, ValueError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{path}: its windows are {entry!r}; take them out, or repeat the adaptation"
        ) from error
    return tokens, longest, windows
