"""A dense sentence encoder that can be extended and trained: texts in, one vector of length 1 each.

modules.json                         a transformer, perhaps word weights, a pooling, perhaps a normalisation
sentence_bert_config.json            the longest text
config_sentence_transformers.json    prompts and the like, which stay as they are
1_Pooling/config.json                how token states become one vector
1_WordWeights/config.json            what each token counts in it, where not all count the same; 2_Pooling then
config.json, model.safetensors, ...  the transformer, as transformers reads it

What is published of such a model seldom holds a head for masked words: it was cut off when the model learnt to
encode sentences. Here it gets one that is tied to the input embeddings, so that what a masked word teaches
reaches the word's own row; its bias and a fresh transform, which begins as the identity, are all that is new. The
transform lets the last states stay what a text's vector is the mean of. The head lies beside the model, in a file
that sentence-transformers doesn't look at.
Dimensions: B texts, L positions, H hidden, V vocabulary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from sparse_adapt import __version__
from sparse_adapt.errors import ConfigError, ModelError, first_line
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.marker import vouching
from sparse_adapt.files.records import JsonObject
from sparse_adapt.model.encoder import Encoder, NewToken, read_vocabulary, write_vocabulary
from sparse_adapt.model.folder import ModelFolder, ModelSource
from sparse_adapt.model.idf import TokenScales
from sparse_adapt.model.layout import (
    ABOUT_FILE,
    LENGTH_FILE,
    MODULES_FILE,
    list_modules,
    read_json,
    read_length,
    read_object,
    write_module_list,
)
from sparse_adapt.model.reading import Windows
from sparse_adapt.model.saved import longest_text, read_body, read_tokenizer, write_tokenizer
from sparse_adapt.model.tokens import PADDED_TOKENS_A_PASS, check_rows, group_by_length, pad
from sparse_adapt.model.weights import check_finite
from sparse_adapt.report.progress import Progress, no_progress

HEAD_FILE = "masked_words.safetensors"
MODES = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}  # as older versions wrote them
KNOWN = ("Transformer", "Pooling", "Normalize")
WEIGHTS = "WordWeights"  # where there is one, between the first two

Mode = Literal["mean", "cls"]


@dataclass(frozen=True, slots=True)
class DenseLayout:
    """How token states become a vector, and what the folder says beside it."""

    mode: Mode = "mean"
    normalised: bool = True
    longest: int | None = None  # tokens
    about: JsonObject = field(default_factory=dict)


class MaskedWords(nn.Module):
    """A head for masked words without rows of its own: transform, gelu, norm; the rows are the embeddings."""

    def __init__(self, hidden: int, embedding: int, vocabulary: int) -> None:
        super().__init__()
        self.transform = nn.Linear(hidden, embedding)
        self.norm = nn.LayerNorm(embedding)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        nn.init.eye_(self.transform.weight)
        nn.init.zeros_(self.transform.bias)

    def forward(self, states: Tensor) -> Tensor:
        """States (rows, H) as embeddings are multiplied with them."""
        transformed: Tensor = self.norm(functional.gelu(self.transform(states)))
        return transformed


class SentenceEncoder(Encoder):
    """A transformer whose token states, pooled, are a text's vector."""

    unusual: frozenset[str] = (
        frozenset()
    )  # parts of its form that a stage can't follow, as of a sparse encoder

    def __init__(
        self,
        body: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        layout: DenseLayout,
        new_tokens: Sequence[NewToken] = (),
        max_tokens: int = 256,
    ) -> None:
        super().__init__(tokenizer, new_tokens, max_tokens)
        self.body = body
        self.layout = layout
        rows, embedding = self.input_rows.shape
        self.head = MaskedWords(body.config.hidden_size, embedding, rows)
        check_rows(tokenizer, rows)

    # -- life: load, save ---------------------------------------------------------------------

    @classmethod
    def load(cls, source: ModelSource, device: str = "cpu") -> "SentenceEncoder":
        """Read a model from a folder, an alias or `hub:owner/name`. Safetensors only, no remote code.

        Raises ModelError where there is no such model, or one whose vectors are made in another way.
        """
        source = ModelFolder.of(source)
        folder = source.path
        layout = _read_layout(folder, source)
        body = read_body(folder, source)
        tokenizer = read_tokenizer(folder, source)
        longest = longest_text(body, tokenizer)
        new_tokens, max_tokens, _ = read_vocabulary(folder, layout.longest or longest)
        try:
            encoder = cls(body, tokenizer, layout, new_tokens, min(max_tokens, longest))
        except ModelError as error:
            raise ModelError(f"{source}: {error}") from error
        if (folder / HEAD_FILE).is_file():
            _read_head(folder / HEAD_FILE, encoder.head)
        encoder.token_scales = _read_word_weights(folder, encoder.vocabulary_size)
        return encoder.to(device).eval()

    def read_by(self, windows: Windows | None) -> None:
        """Raise ConfigError for windows: a mean over positions is no maximum over those of windows."""
        if windows is not None:
            raise ConfigError("a dense model reads no windows; leave them out, or name a SPLADE model")

    def save(self, folder: Path) -> None:
        """Write the model so that sentence-transformers, transformers and raw tokenizers read the same."""
        folder.mkdir(parents=True, exist_ok=True)
        with vouching(folder):
            self.body.save_pretrained(folder)
            write_tokenizer(folder, self.tokenizer, self.max_tokens)
            write_vocabulary(folder, self)
            _write_layout(folder, self.layout, self.width, self.max_tokens, self._counts())
            head = {name: tensor.cpu().contiguous() for name, tensor in self.head.state_dict().items()}
            save_file(head, folder / HEAD_FILE)

    def _counts(self) -> dict[str, float] | None:
        """What each token counts in a mean, where not all count the same."""
        if self.token_scales is None:
            return None
        counts = zip(self.tokens, self.token_scales_of().tolist(), strict=True)
        return {token: count for token, count in counts if token}

    # -- what it is made of -------------------------------------------------------------------

    @property
    def transformer(self) -> PreTrainedModel:
        """The body, without a head."""
        return self.body

    @property
    def output_rows(self) -> nn.Parameter:
        """The input embeddings again."""
        return self.input_rows

    @property
    def output_bias(self) -> nn.Parameter:
        """Bias of each token as a masked word (V)."""
        return self.head.bias

    def grow(self, rows: int) -> None:
        """Make room for so many tokens; what is in the new rows is left to the caller."""
        self.body.resize_token_embeddings(rows, mean_resizing=False)
        bias = self.head.bias.detach()
        self.head.bias = nn.Parameter(functional.pad(bias, (0, rows - len(bias))))

    # -- text to vectors ----------------------------------------------------------------------

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """States (B, L, H): the transformer's last ones."""
        states: Tensor = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states

    def vectors(self, states: Tensor, attention_mask: Tensor, input_ids: Tensor) -> Tensor:
        """Vectors (B, H) of length 1, float32: the mean of a text's states, by token scales, or the first of them."""
        if self.layout.mode == "cls":
            return functional.normalize(states[:, 0].float(), dim=1)
        mask = attention_mask.unsqueeze(2).float()
        if self.token_scales is not None:
            mask = mask * torch.from_numpy(self.token_scales_of()).to(mask.device)[input_ids].unsqueeze(2)
        return functional.normalize(
            (states.float() * mask).sum(dim=1) / mask.sum(dim=1).clamp_min(1e-9), dim=1
        )

    def for_words(self, states: Tensor) -> Tensor:
        """States (rows, H) after the head's transform."""
        transformed: Tensor = self.head(states)
        return transformed

    @torch.no_grad()
    def encode(self, texts: Sequence[str], *, progress: Progress = no_progress) -> NDArray[np.float32]:
        """(B, H), rows in the order of the texts. `progress` hears how many more are done."""
        token_ids = self.tokenize(texts)
        vectors = np.zeros((len(texts), self.width), np.float32)
        for group in group_by_length([len(ids) for ids in token_ids], PADDED_TOKENS_A_PASS):
            ids, mask = pad([token_ids[row] for row in group], self.tokenizer.pad_token_id or 0)
            ids, mask = ids.to(self.device), mask.to(self.device)
            vectors[group] = self.vectors(self.hidden(ids, mask), mask, ids).cpu().numpy()
            progress(len(group))
        return vectors


def _read_head(path: Path, head: MaskedWords) -> None:
    try:
        head.load_state_dict(load_file(path))
        check_finite(head, path)
    except (OSError, RuntimeError, SafetensorError) as error:
        raise ModelError(
            f"{path}: not this model's head ({first_line(error)}); delete it to begin with a fresh one"
        ) from error


# -- the folder --------------------------------------------------------------------------------------


def _read_layout(folder: Path, source: ModelSource) -> DenseLayout:
    """The layout of a folder. Raises ModelError, naming `source`, for one that this project can't train."""
    if not (folder / MODULES_FILE).is_file():
        raise ModelError(f"{source}: holds no {MODULES_FILE}, so it is no dense model; check --model")
    modules = list_modules(folder, source)
    kinds = [module.kind for module in modules]
    plain = kinds[:1] + kinds[2:] if kinds[1:2] == [WEIGHTS] else kinds
    if tuple(plain) not in (KNOWN, KNOWN[:2]):
        raise ModelError(
            f"{source}: its modules are {', '.join(kinds) or 'none'}; only {' + '.join(KNOWN[:2])}, with "
            f"{WEIGHTS} and {KNOWN[2]} or without, can be adapted"
        )
    about = read_object(folder / ABOUT_FILE, optional=True)
    if about.get("default_prompt_name") is not None:
        raise ModelError(f"{source}: puts a prompt before every text, which can't be adapted; choose another")
    pooling = read_object(dict(modules)["Pooling"] / "config.json")
    return DenseLayout(_mode(pooling, source), len(plain) == len(KNOWN), read_length(folder)[0], about)


def _mode(pooling: JsonObject, source: ModelSource) -> Mode:
    mode = pooling.get("pooling_mode")
    if mode is None:
        modes = [key for key, value in pooling.items() if key.startswith("pooling_mode_") and value is True]
        mode = MODES.get(modes[0], modes[0]) if len(modes) == 1 else modes
    if mode in ("mean", ["mean"]):
        return "mean"
    if mode in ("cls", ["cls"]):
        return "cls"
    raise ModelError(f"{source}: pools by {mode!r}; only mean and cls can be adapted")


def _read_word_weights(folder: Path, size: int) -> TokenScales | None:
    """What each token (V) counts in a mean, where a model's folder says it: never negative, at most `size`."""
    place = dict(list_modules(folder, folder)).get(WEIGHTS)
    if place is None:
        return None
    path = place / "config.json"
    stored = read_json(path)
    try:
        counts, other = stored["word_weights"], stored.get("unknown_word_weight", 1.0)
        weights = [counts.get(token, counts.get(token.lower(), other)) for token in stored["vocab"]]
        token_scales: TokenScales = np.array(weights, np.float32)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{path}: damaged ({error!r}); fetch the model again") from error
    if not 0 < len(token_scales) <= size or not (np.isfinite(token_scales) & (token_scales >= 0)).all():
        raise ModelError(f"{path}: not the weights of {size:,} tokens; fetch the model again")
    return token_scales


def _write_layout(
    folder: Path, layout: DenseLayout, width: int, longest: int, counts: Mapping[str, float] | None = None
) -> None:
    """Write what sentence-transformers reads beside the transformer.

    width: of the vectors; longest: in tokens; counts: what each token counts in a mean, in the order of their ids.
    """
    names = list(KNOWN if layout.normalised else KNOWN[:2])
    if counts is not None:
        names.insert(1, WEIGHTS)
    places = {name: f"{number}_{name}" if number else "" for number, name in enumerate(names)}
    write_module_list(
        folder, {place: f"sentence_transformers.models.{name}" for name, place in places.items()}
    )
    write_json(folder / LENGTH_FILE, {"max_seq_length": longest, "do_lower_case": False})
    versions = {**layout.about.get("__version__", {}), "sparse_adapt": __version__}
    write_json(folder / ABOUT_FILE, {**layout.about, "__version__": versions})
    modes = {key: mode == layout.mode for key, mode in MODES.items()}
    for place in places.values():
        (folder / place).mkdir(exist_ok=True)
    write_json(folder / places["Pooling"] / "config.json", {"word_embedding_dimension": width, **modes})
    if counts is not None:
        rounded = {token: round(count, 5) for token, count in counts.items()}
        stored = {"vocab": list(rounded), "word_weights": rounded, "unknown_word_weight": 1.0}
        write_json(folder / places[WEIGHTS] / "config.json", stored)
