"""A dense sentence encoder that can be extended and trained: texts in, one vector of length 1 each.

What is published of such a model seldom holds a head for masked words: it was cut off when the model learnt to
encode sentences. Here it gets one that is tied to the input embeddings, so that what a masked word teaches
reaches the word's own row; its bias and a fresh transform, which begins as the identity, are all that is new. The
transform lets the last states stay what a text's vector is the mean of. The head lies beside the model, in a file
that sentence-transformers doesn't look at.
Dimensions: B texts, L positions, H hidden, V vocabulary.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from sparse_adapt.errors import ConfigError, ModelError, first_line
from sparse_adapt.files.marker import vouching
from sparse_adapt.model.batches import group_by_length, pad
from sparse_adapt.model.dense_layout import Layout, read_layout, read_word_weights, write_layout
from sparse_adapt.model.encoder import Encoder, NewToken, read_vocabulary, write_vocabulary
from sparse_adapt.model.folder import ModelFolder, ModelSource
from sparse_adapt.model.reading import Windows
from sparse_adapt.model.saved import (
    longest_text,
    most_positions,
    read_body,
    read_tokenizer,
    write_tokenizer,
)
from sparse_adapt.model.weights import check_finite
from sparse_adapt.report.watching import Heard, silent

HEAD_FILE = "masked_words.safetensors"
PADDED_TOKENS_A_PASS = 4096


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

    def __init__(
        self,
        body: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        layout: Layout,
        new_tokens: Sequence[NewToken] = (),
        max_tokens: int = 256,
    ) -> None:
        super().__init__(tokenizer, new_tokens, max_tokens)
        self.body = body
        self.layout = layout
        rows, embedding = self.input_rows.shape
        self.head = MaskedWords(body.config.hidden_size, embedding, rows)
        if len(tokenizer) > rows:
            raise ModelError(
                f"the tokenizer has {len(tokenizer):,} tokens, the model rows for {rows:,}; "
                "take both from the same model"
            )

    # -- life: load, save ---------------------------------------------------------------------

    @classmethod
    def load(cls, source: ModelSource, device: str = "cpu") -> "SentenceEncoder":
        """Read a model from a folder, an alias or `hub:owner/name`. Safetensors only, no remote code.

        Raises ModelError where there is no such model, or one whose vectors are made in another way.
        """
        source = ModelFolder.of(source)
        folder = source.path
        layout = read_layout(folder, source)
        body = read_body(folder, source)
        tokenizer = read_tokenizer(folder, source)
        longest = longest_text(body, tokenizer)
        new_tokens, max_tokens = read_vocabulary(folder, layout.longest or longest)
        try:
            encoder = cls(body, tokenizer, layout, new_tokens, min(max_tokens, longest))
        except ModelError as error:
            raise ModelError(f"{source}: {error}") from error
        if (folder / HEAD_FILE).is_file():
            _read_head(folder / HEAD_FILE, encoder.head)
        encoder.factors = read_word_weights(folder, encoder.vocabulary_size)
        return encoder.to(device).eval()

    def read_up_to(self, tokens: int) -> None:
        """Have texts cut at so many tokens from now on, or at as many as the model has positions for."""
        self.max_tokens = min(tokens, most_positions(self.body))

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
            write_layout(folder, self.layout, self.width, self.max_tokens, self._counts())
            head = {name: tensor.cpu().contiguous() for name, tensor in self.head.state_dict().items()}
            save_file(head, folder / HEAD_FILE)

    def _counts(self) -> dict[str, float] | None:
        """What each token counts in a mean, where not all count the same."""
        if self.factors is None:
            return None
        counts = zip(self.tokens, self.factors_of().tolist(), strict=True)
        return {token: count for token, count in counts if token}

    # -- what it is made of -------------------------------------------------------------------

    @property
    def width(self) -> int:
        """H, of the vectors."""
        return int(self.body.config.hidden_size)

    @property
    def input_rows(self) -> nn.Parameter:
        """Input embeddings (V, H)."""
        rows: nn.Parameter = self.body.get_input_embeddings().weight  # type: ignore[assignment]
        return rows

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

    def read(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """States (B, L, H): the transformer's last ones."""
        states: Tensor = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states

    def vectors(self, states: Tensor, attention_mask: Tensor, input_ids: Tensor) -> Tensor:
        """Vectors (B, H) of length 1, float32: the mean of a text's states, by factors, or the first of them."""
        if self.layout.mode == "cls":
            return functional.normalize(states[:, 0].float(), dim=1)
        mask = attention_mask.unsqueeze(2).float()
        if self.factors is not None:
            mask = mask * torch.from_numpy(self.factors_of()).to(mask.device)[input_ids].unsqueeze(2)
        return functional.normalize(
            (states.float() * mask).sum(dim=1) / mask.sum(dim=1).clamp_min(1e-9), dim=1
        )

    def for_words(self, states: Tensor) -> Tensor:
        """States (rows, H) after the head's transform."""
        transformed: Tensor = self.head(states)
        return transformed

    @torch.no_grad()
    def encode(self, texts: Sequence[str], *, progress: Heard = silent) -> NDArray[np.float32]:
        """(B, H), rows in the order of the texts. `progress` hears how many more are done."""
        token_ids = self.tokenize(texts)
        found = np.zeros((len(texts), self.width), np.float32)
        for group in group_by_length([len(ids) for ids in token_ids], PADDED_TOKENS_A_PASS):
            ids, mask = pad([token_ids[row] for row in group], self.tokenizer.pad_token_id or 0)
            ids, mask = ids.to(self.device), mask.to(self.device)
            found[group] = self.vectors(self.read(ids, mask), mask, ids).cpu().numpy()
            progress(len(group))
        return found


def _read_head(path: Path, head: MaskedWords) -> None:
    try:
        head.load_state_dict(load_file(path))
        check_finite(head, path)
    except (OSError, RuntimeError, SafetensorError) as error:
        raise ModelError(
            f"{path}: not this model's head ({first_line(error)}); delete it to begin with a fresh one"
        ) from error
