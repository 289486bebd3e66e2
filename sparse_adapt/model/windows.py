"""A long text as windows: each is read by itself, and a token weighs what it weighs in the window where it weighs most.

A SPLADE weight is a maximum over positions, so the vector of a text is at least the maximum over the vectors of its
parts. A model reads some hundred tokens at once; windows let it read all of a text. They are made of whole words, so
that each is a text like any other. Dimensions: B texts, W windows of all of them, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from transformers import PreTrainedTokenizerBase

from sparse_adapt.model.reading import Windows


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
    encoded = tokenizer(
        list(texts),
        add_special_tokens=False,
        truncation=False,
        return_attention_mask=False,
        return_token_type_ids=False,
    )
    assert encoded.encodings is not None, "a fast tokenizer"
    parts, owners = list[str](), list[int]()
    for number, (text, found) in enumerate(zip(texts, encoded.encodings, strict=True)):
        spans = _spans(found.word_ids, room, min(windows.overlap, room // 2))
        for first, last in spans:
            start = 0 if first == 0 else found.offsets[first][0]
            end = len(text) if last == len(found.ids) else found.offsets[last - 1][1]
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
    found = csr_matrix((most, columns[first], starts), shape=(count, vectors.shape[1]))
    found.has_sorted_indices = True
    return found


def _count(tokenizer: PreTrainedTokenizerBase, text: str) -> int:
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


def _spans(words: Sequence[int | None], room: int, overlap: int) -> list[tuple[int, int]]:
    """Where each window begins and ends among tokens, whose words are given; none is longer than `room`.

    A window ends with a word, where it holds a whole one, and the next begins with one.
    """
    count, spans, first = len(words), list[tuple[int, int]](), 0
    begins = [
        place == 0 or words[place] is None or words[place] != words[place - 1] for place in range(count)
    ]
    while count - first > room:
        last = next((place for place in range(first + room, first, -1) if begins[place]), first + room)
        spans.append((first, last))
        first = next((place for place in range(max(first + 1, last - overlap), last) if begins[place]), last)
    return [*spans, (first, count)]
