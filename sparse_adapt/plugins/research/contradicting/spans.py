"""Gaps filled by a sequence-to-sequence model that learnt to write what a sentinel stands for, as T5 did.

Raffel et al. 2020, arXiv:1910.10683.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sparse_adapt.errors import ModelError
from sparse_adapt.model.tokens import pad
from sparse_adapt.model.weights import check_weights, loading
from sparse_adapt.plugins.research.contradicting.generator import Gaps, Spans, compared_as

GAPS_AT_ONCE = 16
LONGEST_FILL, LONGEST_TEXT = 16, 512  # tokens
IGNORED = -100  # label that transformers leaves out of a loss


def is_sequence_to_sequence(folder: Path) -> bool:
    """Whether the model in a folder has an encoder and a decoder."""
    try:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False  # whoever loads it says what is wrong
    return isinstance(content, dict) and bool(content.get("is_encoder_decoder"))


class SpanFiller:
    """T5 and its like."""

    def __init__(self, folder: Path, source: str | Path, device: str = "cpu") -> None:
        """Raises ModelError for what can't be loaded, or has no sentinels."""
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        check_weights(folder, source)
        with loading(source, "a generator"):
            self.tokenizer: Any = AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True
            )
            self.model: Any = AutoModelForSeq2SeqLM.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True, use_safetensors=True
            )
        self.model.to(device).eval()
        self.device = device
        vocabulary = self.tokenizer.get_vocab()
        self.sentinels = [vocabulary[name] for n in range(100) if (name := f"<extra_id_{n}>") in vocabulary]
        if len(self.sentinels) < 2:
            raise ModelError(f"{source}: has no sentinels (<extra_id_0>, ...) as T5 has; choose another one")
        self.longest = min(self.tokenizer.model_max_length, LONGEST_TEXT)

    def admit(self, chunks: Iterable[str], texts: Iterable[str] = ()) -> None:
        """Nothing to say: what was a noun chunk becomes one."""

    def fits(self, text: str) -> bool:
        """Whether a text is short enough to be read whole."""
        return len(self.tokenizer(text)["input_ids"]) + 1 <= self.longest

    @torch.inference_mode()
    def fill(self, sentences: Sequence[Gaps], count: int) -> list[list[tuple[str, ...]]]:
        """At most `count` ways to fill all gaps of each sentence, a sentinel each, by beam search, best first.

        A sentence of more gaps than the generator has sentinels is left as it is.
        """
        names = self.tokenizer.convert_ids_to_tokens(self.sentinels)
        fillings: list[list[tuple[str, ...]]] = []
        for start in range(0, len(sentences), GAPS_AT_ONCE):
            part = sentences[start : start + GAPS_AT_ONCE]
            most = max(len(gaps.chunks) for gaps in part)
            shown = [
                gaps.filled(names[: len(gaps.chunks)]) if len(gaps.chunks) < len(names) else ""
                for gaps in part
            ]
            encoded = self.tokenizer(
                shown, truncation=True, max_length=self.longest, padding=True, return_tensors="pt"
            )
            written = self.model.generate(
                input_ids=encoded["input_ids"].to(self.device),
                attention_mask=encoded["attention_mask"].to(self.device),
                max_new_tokens=LONGEST_FILL * most,
                num_beams=count,
                num_return_sequences=count,
                do_sample=False,
            ).tolist()
            for row, gaps in enumerate(part):
                beams = written[row * count : (row + 1) * count] if shown[row] else []
                fillings.append(self._texts(beams, len(gaps.chunks)))
        return fillings

    def _texts(self, written: Sequence[list[int]], gaps: int = 1) -> list[tuple[str, ...]]:
        """What stands behind each of so many sentinels, of each beam that has all of them, the same but once."""
        texts: dict[tuple[str, ...], tuple[str, ...]] = {}
        for ids in written:
            fills = tuple(self._behind(ids, sentinel, alone=gaps == 1) for sentinel in self.sentinels[:gaps])
            if all(any(map(str.isalnum, text)) for text in fills):
                texts.setdefault(tuple(map(compared_as, fills)), fills)
        return list(texts.values())

    def _behind(self, ids: list[int], sentinel: int, *, alone: bool) -> str:
        """What stands behind a sentinel up to the next; all that was written where the only one is missing."""
        if sentinel not in ids and not alone:
            return ""
        rest = ids[ids.index(sentinel) + 1 if sentinel in ids else 0 :]
        ends = {*self.sentinels, self.tokenizer.eos_token_id}
        end = next((place for place, token in enumerate(rest) if token in ends), len(rest))
        return str(self.tokenizer.decode(rest[:end], skip_special_tokens=True)).strip()

    # -- to learn the domain ------------------------------------------------------------------

    def parameters(self) -> Iterable[nn.Parameter]:
        """What is tuned."""
        parameters: Iterable[nn.Parameter] = self.model.parameters()
        return parameters

    def training(self, on: bool) -> None:
        """Drop out, or don't."""
        self.model.train(on)

    def save(self, folder: Path) -> None:
        """Write model and tokenizer as transformers does."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text without special ones."""
        encoded = self.tokenizer(
            list(texts), add_special_tokens=False, truncation=True, max_length=self.longest - 1
        )
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    def denoising(self, token_ids: Sequence[Sequence[int]], spans: Sequence[Spans]) -> Tensor:
        """Cross entropy of what the sentinels stand for: ()."""
        last = [self.tokenizer.eos_token_id]
        shown: list[list[int]] = []
        hidden: list[list[int]] = []
        for text, own in zip(token_ids, spans, strict=True):
            read: list[int] = []
            written: list[int] = []
            place = 0
            for sentinel, (start, end) in zip(self.sentinels, own, strict=False):
                read += [*text[place:start], sentinel]
                written += [sentinel, *text[start:end]]
                place = end
            shown.append([*read, *text[place:], *last])
            hidden.append([*written, *last])
        ids, mask = pad(shown, self.tokenizer.pad_token_id or 0)
        labels = pad(hidden, IGNORED)[0]
        output = self.model(
            input_ids=ids.to(self.device), attention_mask=mask.to(self.device), labels=labels.to(self.device)
        )
        loss: Tensor = output.loss
        return loss
