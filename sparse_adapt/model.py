"""A SPLADE model as one object: texts in, one weight per vocabulary token out.

Dimensions: B texts, L positions, H hidden, V vocabulary.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from sparse_adapt import __version__
from sparse_adapt.batches import TokenIds, group_by_length, pad
from sparse_adapt.errors import ModelError
from sparse_adapt.head import activate, splade_pool

transformers_logging.disable_progress_bar()
transformers_logging.set_verbosity_error()

BUNDLED = {"splade-tiny": ("cognition", "model", "rasyosef/splade-tiny")}
VOCABULARY_FILE = "vocabulary.json"
DEFAULT_MAX_TOKENS = 256
PADDED_TOKENS_A_PASS = 4096


@dataclass(frozen=True, slots=True)
class NewToken:
    """One vocabulary entry that an extension added, and the old pieces it stands for."""

    token_id: int
    token: str
    term: str
    category: str
    pieces: tuple[int, ...]


class Pooled(NamedTuple):
    """What the head finds in B texts: the largest raw logit of every token (B, V) and its position (B, V)."""

    maximum: Tensor
    position: Tensor

    @property
    def weights(self) -> Tensor:
        """SPLADE weights (B, V), float32, never negative."""
        return activate(self.maximum)


def resolve(source: str | Path) -> str:
    """Where a model is: a folder stays itself, an alias becomes its installed package or else its Hub id."""
    if Path(source).is_dir():
        return str(source)
    if str(source) in BUNDLED:
        package, folder, hub_id = BUNDLED[str(source)]
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            if (Path(place) / folder).is_dir():
                return str(Path(place) / folder)
        return hub_id
    if str(source).count("/") != 1 or str(source).startswith((".", "/", "~")):
        raise ModelError(
            f"{source}: no such model folder; give a folder, the alias splade-tiny or a Hub id (owner/name)"
        )
    return str(source)


class SparseEncoder(nn.Module):
    """A masked language model, its tokenizer and the tokens that extensions added to them."""

    def __init__(
        self,
        masked_lm: nn.Module,
        tokenizer: PreTrainedTokenizerFast,
        new_tokens: Sequence[NewToken] = (),
        max_tokens: int = DEFAULT_MAX_TOKENS,
    ) -> None:
        super().__init__()
        self.masked_lm = masked_lm
        self.tokenizer = tokenizer
        self.new_tokens = tuple(new_tokens)
        self.max_tokens = max_tokens
        self.check()

    # -- life: load, save ---------------------------------------------------------------------

    @classmethod
    def load(cls, source: str | Path, device: str = "cpu") -> "SparseEncoder":
        """Read a model from a folder, an alias or a Hub id. Safetensors only, no remote code.

        Raises ModelError where there is no model, no masked-language-model head or no fast tokenizer.
        """
        place = resolve(source)
        try:
            AutoConfig.from_pretrained(place)
            masked_lm, report = AutoModelForMaskedLM.from_pretrained(
                place, use_safetensors=True, output_loading_info=True, dtype=torch.float32
            )
        except (OSError, ValueError, KeyError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ModelError(
                f"{source}: not a masked language model that can be loaded ({reason})"
            ) from error
        missing = sorted(report["missing_keys"])
        if missing:
            raise ModelError(
                f"{source}: no masked-language-model head ({missing[0]} is missing); "
                "choose a model saved with its head, such as splade-tiny"
            )
        try:
            tokenizer = AutoTokenizer.from_pretrained(place)
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(
                f"{source}: its tokenizer can't be loaded ({str(error).splitlines()[0]})"
            ) from error
        if not tokenizer.is_fast:
            raise ModelError(
                f"{source}: needs a fast tokenizer (a tokenizer.json); found {type(tokenizer).__name__}"
            )
        new_tokens, max_tokens = _read_vocabulary(Path(place) / VOCABULARY_FILE)
        longest = min(
            tokenizer.model_max_length, getattr(masked_lm.config, "max_position_embeddings", 512) or 512
        )
        encoder = cls(masked_lm, tokenizer, new_tokens, min(max_tokens, longest))
        return encoder.to(device).eval()

    def save(self, folder: Path) -> None:
        """Write the model so that transformers, sentence-transformers and raw tokenizers read the same thing."""
        folder.mkdir(parents=True, exist_ok=True)
        self.masked_lm.save_pretrained(folder)
        self.tokenizer.model_max_length = self.max_tokens
        self.tokenizer.save_pretrained(folder)
        _write_json(
            folder / VOCABULARY_FILE,
            {"max_tokens": self.max_tokens, "new_tokens": [asdict(token) for token in self.new_tokens]},
        )
        self._write_sentence_transformers(folder)

    def _write_sentence_transformers(self, folder: Path) -> None:
        prefix = "sentence_transformers"
        _write_json(
            folder / "modules.json",
            [
                {"idx": 0, "name": "0", "path": "", "type": f"{prefix}.base.modules.transformer.Transformer"},
                {
                    "idx": 1,
                    "name": "1",
                    "path": "1_SpladePooling",
                    "type": f"{prefix}.sparse_encoder.modules.splade_pooling.SpladePooling",
                },
            ],
        )
        _write_json(
            folder / "sentence_bert_config.json",
            {
                "transformer_task": "fill-mask",
                "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}},
                "module_output_name": "token_embeddings",
            },
        )
        _write_json(
            folder / "config_sentence_transformers.json",
            {
                "model_type": "SparseEncoder",
                "prompts": {"query": "", "document": ""},
                "default_prompt_name": None,
                "similarity_fn_name": "dot",
                "__version__": {"sparse_adapt": __version__},
            },
        )
        (folder / "1_SpladePooling").mkdir(exist_ok=True)
        _write_json(
            folder / "1_SpladePooling" / "config.json",
            {
                "pooling_strategy": "max",
                "activation_function": "relu",
                "embedding_dimension": self.vocabulary_size,
            },
        )

    def check(self) -> None:
        """Refuse a model whose last step isn't one linear layer over the vocabulary."""
        decoder = self.masked_lm.get_output_embeddings()
        name = type(self.masked_lm).__name__
        if decoder is None or decoder.weight.shape[0] < len(self.tokenizer):
            raise ModelError(
                f"{name}: found no decoder over the vocabulary of {len(self.tokenizer):,} tokens"
            )

    # -- what it is made of -------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.input_rows.device

    @property
    def input_rows(self) -> nn.Parameter:
        """Input embeddings (V, H)."""
        return self.masked_lm.get_input_embeddings().weight

    @property
    def output_rows(self) -> nn.Parameter:
        """Decoder rows (V, H); the same parameter as `input_rows` where the model ties them."""
        return self.masked_lm.get_output_embeddings().weight

    @property
    def output_bias(self) -> nn.Parameter | None:
        """Decoder bias (V), where the model has one."""
        return self.masked_lm.get_output_embeddings().bias

    @property
    def vocabulary_size(self) -> int:
        """V: rows of the decoder, new tokens included."""
        return self.output_rows.shape[0]

    @property
    def old_size(self) -> int:
        """Size of the vocabulary before any extension; new ids start here."""
        return min((token.token_id for token in self.new_tokens), default=self.vocabulary_size)

    # -- text to vectors ----------------------------------------------------------------------

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text with its special tokens, cut at `max_tokens`."""
        if not texts:
            return []
        encoded = self.tokenizer(
            list(texts),
            truncation=True,
            max_length=self.max_tokens,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        return encoded["input_ids"]

    def old_tokenization(self, token_ids: TokenIds) -> list[int]:
        """The same text in the vocabulary from before extension: every new token replaced by its pieces."""
        pieces = {token.token_id: token.pieces for token in self.new_tokens}
        old: list[int] = []
        for token_id in token_ids:
            old.extend(pieces.get(token_id, (token_id,)))
        if len(old) > self.max_tokens:
            old = [*old[: self.max_tokens - 1], old[-1]]
        return old

    def hidden(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Hidden states (B, L, H) after the head's transform: what the decoder rows are multiplied with."""
        with self.without_decoder():
            return self.masked_lm(input_ids=input_ids, attention_mask=attention_mask).logits

    @contextmanager
    def without_decoder(self) -> Iterator[None]:
        """Let the decoder hand its input through, so that the (B, L, V) logits are never built.

        Threads that call `hidden` at the same time do so within one such context.
        """
        decoder = self.masked_lm.get_output_embeddings()
        if "forward" in vars(decoder):  # already so, by an outer context
            yield
            return
        decoder.forward = _identity
        try:
            yield
        finally:
            del decoder.forward

    def pool(self, input_ids: Tensor, attention_mask: Tensor) -> Pooled:
        """Largest logit of every token and its position, both (B, V), for one padded batch."""
        hidden = self.hidden(input_ids, attention_mask)
        return Pooled(*splade_pool(hidden, self.output_rows, self.output_bias, attention_mask))

    def forward(self, token_ids: Sequence[TokenIds]) -> Pooled:
        """Largest logit of every token and its position, both (B, V), rows in the order of the texts.

        Texts of like length go through together, so that short ones aren't padded to the longest.
        """
        groups = list(group_by_length([len(ids) for ids in token_ids], PADDED_TOKENS_A_PASS))
        parts = []
        for group in groups:
            ids, mask = pad([token_ids[index] for index in group], self.tokenizer.pad_token_id or 0)
            parts.append(self.pool(ids.to(self.device), mask.to(self.device)))
        if len(parts) == 1 and groups[0] == sorted(groups[0]):
            return parts[0]
        order = torch.tensor([index for group in groups for index in group], device=self.device).argsort()
        return Pooled(
            torch.cat([part.maximum for part in parts])[order],
            torch.cat([part.position for part in parts])[order],
        )


def _identity(hidden: Tensor) -> Tensor:
    return hidden


def _read_vocabulary(path: Path) -> tuple[list[NewToken], int]:
    if not path.is_file():
        return [], DEFAULT_MAX_TOKENS
    stored = json.loads(path.read_text(encoding="utf-8"))
    tokens = [NewToken(**{**entry, "pieces": tuple(entry["pieces"])}) for entry in stored["new_tokens"]]
    return tokens, stored["max_tokens"]


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
