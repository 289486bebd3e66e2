"""A long text as windows: each is read by itself, and a token weighs what it weighs in the window where it weighs most.

A SPLADE weight is a maximum over positions, so the vector of a text is at least the maximum over the vectors of its
parts. A model reads some hundred tokens at once; windows let it read all of a text. They are made of whole words, so
that each is a text like any other. Dimensions: B texts, W windows of all of them, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from transformers import PreTrainedTokenizerBase

from sparse_adapt.model.reading import Windows
from sparse_adapt.model.tokens import ONE_AT_A_TIME, encoded

STRETCH = 1 << 15  # signs of a text that are tokenised together
STRETCHES_AT_ONCE = 64


class PartRead(NamedTuple):
    """What a model reads of some documents that reads of each as many tokens as `longest`, from its beginning."""

    longest: int
    documents: int
    longer: int  # documents of more tokens
    share: float  # of all tokens that are read

    @classmethod
    def of(cls, texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, longest: int) -> "PartRead":
        """The same of the texts of documents, each of which is read whole by the tokenizer."""
        backend = tokenizer.backend_tokenizer
        with ONE_AT_A_TIME:
            backend.no_truncation()
            counts = np.array([len(each.ids) for each in backend.encode_batch_fast(list(texts))], np.int64)
        read = np.minimum(counts, longest).sum() / max(1, counts.sum())
        return cls(longest, len(texts), int((counts > longest).sum()), float(read))

    def __str__(self) -> str:
        verb = "is" if self.longer == 1 else "are"
        part = f"the first {self.longest:,} tokens of a document, {self.share:.0%} of all tokens"
        return f"{part} ({self.longer:,} of {self.documents:,} documents {verb} longer)"


def cut_up(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, windows: Windows, prompt: str = ""
) -> tuple[list[str], NDArray[np.int64]]:
    """The windows (W) of some texts (B), in their order, and the text of each: (W). A short text is one window.

    `prompt`: what is put before each window when it is read, and takes some of its tokens.
    """
    room = (
        windows.tokens - tokenizer.num_special_tokens_to_add() - (_count(tokenizer, prompt) if prompt else 0)
    )
    room = max(room, 1)
    if not texts:
        return [], np.zeros(0, np.int64)
    parts, owners = list[str](), list[int]()
    for number, (text, tokens) in enumerate(zip(texts, _tokens_of(texts, tokenizer), strict=True)):
        spans = _spans(tokens.begins, room, min(windows.overlap, room // 2))
        for first, last in spans:
            start = 0 if first == 0 else tokens.starts[first]
            end = len(text) if last == len(tokens.ends) else tokens.ends[last - 1]
            parts.append(text[start:end])
        owners += [number] * len(spans)
    return parts, np.array(owners, np.int64)


def heaviest(vectors: csr_matrix, owners: NDArray[np.int64], count: int) -> csr_matrix:
    """The largest weight of each token over the windows of each text: (W, V) to (B, V), sorted indices.

    owners: (W) the text of each window, never falling; `count`: how many texts there are.
    """
    rows = np.repeat(owners, np.diff(vectors.indptr))
    order = np.lexsort((vectors.indices, rows))
    rows, columns, weights = rows[order], vectors.indices[order], vectors.data[order]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    most = np.maximum.reduceat(weights, np.flatnonzero(first)) if len(rows) else weights
    starts = np.concatenate([[0], np.bincount(rows[first], minlength=count).cumsum()])
    pooled = csr_matrix((most, columns[first], starts), shape=(count, vectors.shape[1]))
    pooled.has_sorted_indices = True
    return pooled


class _Tokens(NamedTuple):
    """The tokens (T) of a text: which begin a word, and between which signs of the text each stands."""

    begins: NDArray[np.bool_]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def _tokens_of(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> Iterator[_Tokens]:
    """The tokens of each text, in turn. A long text is tokenised by stretches, which takes a tenth of the memory."""
    for _, stretches in groupby(_by_stretches(texts, tokenizer), key=itemgetter(0)):
        begins, starts, ends = zip(*(tokens for _, tokens in stretches), strict=True)
        yield _Tokens(np.concatenate(begins), np.concatenate(starts), np.concatenate(ends))


def _by_stretches(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> Iterator[tuple[int, _Tokens]]:
    """The tokens of every stretch, in their order, each with the number of its text."""
    windows = ((number, *stretch) for number, text in enumerate(texts) for stretch in _stretches(text))
    while group := list(islice(windows, STRETCHES_AT_ONCE)):
        found = encoded(
            tokenizer,
            [texts[number][start:end] for number, start, end in group],
            add_special_tokens=False,
            truncation=False,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        assert found.encodings is not None, "a fast tokenizer"
        for (number, start, _), each in zip(group, found.encodings, strict=True):
            offsets = np.array(each.offsets, np.int64).reshape(-1, 2) + start
            yield number, _Tokens(_begins(each.word_ids), offsets[:, 0], offsets[:, 1])


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Where the stretches of a text begin and end: each but the first begins with a space."""
    start = 0
    while len(text) - start > STRETCH:
        end = text.rfind(" ", start + 1, start + STRETCH)
        end = text.find(" ", start + STRETCH) if end < 0 else end
        if end < 0:
            break
        yield start, end
        start = end
    yield start, len(text)


def _begins(words: Sequence[int | None]) -> NDArray[np.bool_]:
    """Which tokens (T) begin a word, by the word of each."""
    return np.array(
        [place == 0 or word is None or word != words[place - 1] for place, word in enumerate(words)], bool
    )


def _count(tokenizer: PreTrainedTokenizerBase, text: str) -> int:
    return len(encoded(tokenizer, [text], add_special_tokens=False)["input_ids"][0])


def _spans(begins: NDArray[np.bool_], room: int, overlap: int) -> list[tuple[int, int]]:
    """Where each window begins and ends among tokens, of which some begin a word (T); none is longer than `room`.

    A window ends with a word, where it holds a whole one, and the next begins with one.
    """
    count, spans, first = len(begins), list[tuple[int, int]](), 0
    while count - first > room:
        last = next((place for place in range(first + room, first, -1) if begins[place]), first + room)
        spans.append((first, last))
        first = next((place for place in range(max(first + 1, last - overlap), last) if begins[place]), last)
    return [*spans, (first, count)]
