"""Gaps filled by a masked language model: beam search over the masked places, from left to right.

Dimensions: R rows (a beam of a gap each), V vocabulary.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sparse_adapt.errors import ModelError
from sparse_adapt.model.encoder import Encoder
from sparse_adapt.model.tokens import PADDED_TOKENS_A_PASS, group_by_length, pad
from sparse_adapt.plugins.research.contradicting.generator import LONGEST_FILL, Gaps, Spans, compared_as
from sparse_adapt.synthetic.windows import ends_of
from sparse_adapt.training import losses

INNER, START = (
    "##",
    ("\u0120", "\u2581"),
)  # a piece within a word (WordPiece); of one that starts a word (others)
MOSTLY = 0.5  # share of a token's occurrences that are within chunks
MARKUP = re.compile(r"\[[^\]]*\]|<[^>]*>")


class Beam(NamedTuple):
    """A text whose masked places are filled from the left, what was put there, and its log probability.

    `starts`: how many places stand before each gap, and how many there are in all.
    """

    token_ids: list[int]
    fill: tuple[int, ...]
    score: float
    starts: tuple[int, ...]


class MaskedFiller:
    """The masked words of an encoder of either kind."""

    def __init__(self, encoder: Encoder, between_words: str = " ") -> None:
        """Raises ModelError for a tokenizer that masks nothing."""
        self.encoder, self.between_words = encoder, between_words
        mask_id = encoder.tokenizer.mask_token_id
        if mask_id is None:
            raise ModelError("this model's tokenizer has no token that masks; choose another --generator")
        self.mask_id: int = mask_id
        self.first, self.later = _allowed(encoder, apart=bool(between_words))

    def admit(self, chunks: Iterable[str], texts: Iterable[str] = ()) -> None:
        """Begin a fill with tokens that begin chunks, go on with those in chunks, if seen there rather than elsewhere.

        A small model would rather write function words, which are likely anywhere and contradict nothing; some of
        them are pieces of nouns too.
        """
        tokenize = self.encoder.tokenizer
        inside = [tokenize(f" {chunk}", add_special_tokens=False)["input_ids"] for chunk in chunks]
        count = Counter(token for ids in inside for token in ids)
        everywhere = Counter(
            token for text in texts for token in tokenize(text, add_special_tokens=False)["input_ids"]
        )
        tokens = {token for token, times in count.items() if times >= MOSTLY * everywhere[token]}
        starts, inner = torch.zeros_like(self.first), torch.zeros_like(self.later)
        starts[[ids[0] for ids in inside if ids and ids[0] in tokens]] = True
        inner[list(tokens)] = True
        self.first, self.later = self.first & starts, self.later & inner

    def fits(self, text: str) -> bool:
        """Whether a text is short enough to be read whole."""
        length = len(self.encoder.tokenizer(text, return_attention_mask=False)["input_ids"])
        return length + LONGEST_FILL <= self.encoder.max_tokens

    @torch.inference_mode()
    def fill(self, sentences: Sequence[Gaps], count: int) -> list[list[tuple[str, ...]]]:
        """At most `count` ways to fill all gaps of each sentence, from the left; no token is put there twice."""
        beams = [[beam] if (beam := self._masked(gaps)) is not None else [] for gaps in sentences]
        for _ in range(LONGEST_FILL * max((len(gaps.chunks) for gaps in sentences), default=0)):
            rows = [
                (number, beam)
                for number, own in enumerate(beams)
                for beam in own
                if self.mask_id in beam.token_ids
            ]
            if not rows:
                break
            further: dict[int, list[Beam]] = {}
            for number, of_row in zip(
                [n for n, _ in rows], self._extend([b for _, b in rows], count), strict=True
            ):
                further.setdefault(number, []).extend(of_row)
            for number, of_row in further.items():
                beams[number] = sorted(of_row, key=lambda beam: (-beam.score, beam.fill))[:count]
        return [self._texts(own) for own in beams]

    def _masked(self, gaps: Gaps) -> Beam | None:
        tokenizer = self.encoder.tokenizer
        lengths = [len(ids) for ids in tokenizer(list(gaps.chunks), add_special_tokens=False)["input_ids"]]
        holes = [min(LONGEST_FILL, max(1, length)) for length in lengths]
        ids = list(tokenizer(gaps.filled([tokenizer.mask_token * each for each in holes]))["input_ids"])
        whole = ids.count(self.mask_id) == sum(holes) and len(ids) <= self.encoder.max_tokens
        return Beam(ids, (), 0.0, (0, *accumulate(holes))) if whole else None

    def _extend(self, beams: Sequence[Beam], count: int) -> list[list[Beam]]:
        """Each beam with the likeliest tokens at its first masked place, none of them a second time."""
        longer: list[list[Beam]] = [[] for _ in beams]
        for group in group_by_length([len(beam.token_ids) for beam in beams], PADDED_TOKENS_A_PASS):
            places = [beams[row].token_ids.index(self.mask_id) for row in group]
            chances = self._chances([beams[row].token_ids for row in group], places)
            begins = [len(beams[row].fill) in beams[row].starts for row in group]
            starts = torch.tensor(begins, device=chances.device)
            allowed = torch.where(starts[:, None], self.first, self.later)
            chances = chances.masked_fill(~allowed, float("-inf"))
            put = max(len(beams[row].fill) for row in group)
            best = chances.topk(min(count + put, chances.shape[1]), dim=1)
            for row, place, values, tokens in zip(
                group, places, best.values.tolist(), best.indices.tolist(), strict=True
            ):
                beam = beams[row]
                longer[row] = [
                    Beam(
                        [*beam.token_ids[:place], token, *beam.token_ids[place + 1 :]],
                        (*beam.fill, token),
                        beam.score + value,
                        beam.starts,
                    )
                    for value, token in zip(values, tokens, strict=True)
                    if value > float("-inf") and token not in beam.fill
                ]
        return longer

    def _chances(self, token_ids: Sequence[list[int]], places: Sequence[int]) -> Tensor:
        """Log probabilities (R, V) of what stands at a place of each row."""
        encoder = self.encoder
        ids, mask = pad(token_ids, encoder.tokenizer.pad_token_id or 0)
        states = encoder.hidden(ids.to(encoder.device), mask.to(encoder.device))
        at = states[torch.arange(len(places)), torch.tensor(places)]
        rows = nn.functional.linear(encoder.for_words(at), encoder.output_rows, encoder.output_bias)
        return rows.float().log_softmax(dim=1)

    def _texts(self, beams: Sequence[Beam]) -> list[tuple[str, ...]]:
        texts: dict[tuple[str, ...], tuple[str, ...]] = {}
        for beam in beams:
            fills = tuple(self._text(beam.fill[start:end]) for start, end in pairwise(beam.starts))
            if all(fills):
                texts.setdefault(tuple(map(compared_as, fills)), fills)
        return list(texts.values())

    def _text(self, token_ids: Sequence[int]) -> str:
        text = str(self.encoder.tokenizer.decode(list(token_ids))).strip()
        return text if self.between_words else text.replace(" ", "")

    # -- to learn the domain ------------------------------------------------------------------

    def parameters(self) -> Iterable[nn.Parameter]:
        """What is tuned."""
        return self.encoder.parameters()

    def training(self, on: bool) -> None:
        """Drop out, or don't."""
        self.encoder.train(on)

    def save(self, folder: Path) -> None:
        """Write the encoder, its head with it."""
        self.encoder.save(folder)

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text without special ones."""
        special = set(self.encoder.tokenizer.all_special_ids)
        return [[token for token in ids if token not in special] for ids in self.encoder.tokenize(texts)]

    def denoising(self, token_ids: Sequence[Sequence[int]], spans: Sequence[Spans]) -> Tensor:
        """Cross entropy of tokens that are masked: ()."""
        encoder, tokenizer = self.encoder, self.encoder.tokenizer
        hidden = [[list(text) for text in token_ids], [[-1] * len(text) for text in token_ids]]
        for masked, labels, text, own in zip(*hidden, token_ids, spans, strict=True):
            for start, end in own:
                labels[start:end] = text[start:end]
                masked[start:end] = [self.mask_id] * (end - start)
        before, after = ends_of(encoder)
        whole = [[*before, *text, *after] for text in hidden[0]]
        ids, mask = pad(whole, tokenizer.pad_token_id or 0)
        labels = pad([[-1] * len(before) + own for own in hidden[1]], -1)[0]
        wanted = torch.full(ids.shape, -1)
        wanted[:, : labels.shape[1]] = labels
        shown = wanted.to(encoder.device) != -1
        states = encoder.hidden(ids.to(encoder.device), mask.to(encoder.device))
        everything = torch.arange(encoder.vocabulary_size, device=encoder.device)
        words = wanted.to(encoder.device)[shown]
        return losses.masked_words(
            encoder.for_words(states[shown]), encoder.output_rows, encoder.output_bias, words, everything
        )


def _allowed(encoder: Encoder, *, apart: bool) -> tuple[Tensor, Tensor]:
    """Tokens that may begin a fill, and that may go on with it: (V) each. `apart`: words have spaces between."""
    tokens = encoder.tokens
    special = set(encoder.tokenizer.all_special_ids)
    marked = any(token.startswith(START) for token in tokens)
    later = torch.zeros(encoder.vocabulary_size, dtype=torch.bool)
    first = later.clone()
    for token_id, token in enumerate(tokens):
        if not token or token_id in special or MARKUP.fullmatch(token):
            continue
        later[token_id] = any(map(str.isalnum, token))
        begins = token.startswith(START) if marked and apart else not token.startswith(INNER)
        first[token_id] = begins and later[token_id]
    return first.to(encoder.device), later.to(encoder.device)
