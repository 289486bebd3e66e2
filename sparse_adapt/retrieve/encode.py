"""Texts to sparse vectors: one CSR row each, in the order of the texts.

Dimensions: B texts of a batch, L positions, T tokens of all its texts, H hidden, V vocabulary.
Texts are sorted by length and batched by tokens, so that little padding goes through the transformer and
none through the head; a thread takes a whole batch from token ids to non-zero weights. Between the head's
maxima and the matrix no row is touched by Python.
"""

from collections.abc import Sequence
from functools import partial
from threading import Lock
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.errors import InputError, ModelError
from sparse_adapt.model.forms import Side
from sparse_adapt.model.head.filter import positive_logits
from sparse_adapt.model.head.pooling import pack_rows, splade_pool
from sparse_adapt.model.head.summing import splade_sum
from sparse_adapt.model.head.threads import compiled, share_out
from sparse_adapt.model.processes import Piece, other_processes
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds, group_by_length, pad
from sparse_adapt.model.windows import cut_up, heaviest
from sparse_adapt.report.messages import note_blank
from sparse_adapt.report.progress import Progress, no_progress

TOKENS_A_BATCH = 8192


class BatchWeights(NamedTuple):
    """The non-zero weights of one batch: how many each text has, of which tokens, how heavy."""

    texts: list[int]
    counts: NDArray[np.int64]
    tokens: NDArray[np.int32]
    weights: NDArray[np.float32]


def encode(
    model: SparseEncoder,
    texts: Sequence[str],
    side: Side,
    *,
    tokens_a_batch: int = TOKENS_A_BATCH,
    filtered: bool = True,
    scales: bool = True,
    progress: Progress = no_progress,
) -> csr_matrix:
    """SPLADE vectors (len(texts), V), float32, sorted indices; a text without weights or words keeps its empty row.

    `side`: whether the texts are queries or documents.
    `filtered`: a processor that multiplies whole numbers of eight bits uses them to rule out the tokens that can't
    have a weight, and multiplies the rest in float32: the same weights in less than half the time.
    `scales`: whether the model's token scales count, where it has some.
    A document that a model reads by windows has the largest weights of its windows.
    `progress` gets the number of texts of each finished batch. Raises ModelError where the model gives
    something that is not a number, and InputError for a string that stands by itself, whose letters would be texts.
    """
    if isinstance(texts, str):
        raise InputError("texts", "one text, where a list is needed; put it in brackets")
    model = model.for_side(side)
    weighed = model.weighed if scales else model.form.pruned
    if side == "query" and model.query_side is not None:
        token_ids = model.tokenize(texts, side)
        progress(len(texts))
        vectors = model.query_side.vectors(token_ids)
        return weighed(_without_blank(vectors, token_ids, model.tokenize([""], side)[0]))

    def read(texts: Sequence[str], progress: Progress) -> csr_matrix:  # (texts, V)
        token_ids = model.tokenize(texts, side)
        parts = encode_token_ids(
            model, token_ids, tokens_a_batch=tokens_a_batch, filtered=filtered, progress=progress
        )
        vectors = _stack(parts, len(texts), model.vocabulary_size)
        return _without_blank(vectors, token_ids, model.tokenize([""], side)[0])

    if side == "query" or model.windows is None:
        return weighed(read(texts, progress))
    windows, owners = cut_up(texts, model.tokenizer, model.windows, model.form.prompt(side))
    vectors = read(windows, _as_texts(progress, len(texts), len(windows)))
    return weighed(heaviest(vectors, owners, len(texts)))


@torch.inference_mode()
def encode_token_ids(
    model: SparseEncoder,
    token_ids: Sequence[TokenIds],
    *,
    tokens_a_batch: int,
    filtered: bool = True,
    progress: Progress = no_progress,
) -> list[BatchWeights]:
    """The weights of tokenised texts, batch by batch, in no particular order.

    Where other processes read for this one, each batch is theirs as it would be a thread's here.
    """
    groups = list(group_by_length([len(ids) for ids in token_ids], tokens_a_batch))
    workers = other_processes()
    parts: list[BatchWeights] = []
    if workers is not None and len(groups) > 1:
        pieces = (
            Piece(group, [token_ids[index] for index in group], f"{len(group)} texts") for group in groups
        )
        for group, part in workers.each(partial(_encode_batch, filtered=filtered), model, pieces):
            parts.append(part._replace(texts=group))
            progress(len(group))
        return parts
    lock = Lock()

    @torch.inference_mode()
    def encode_group(group: list[int]) -> None:
        part = _encode_group(model, token_ids, group, filtered)
        with lock:
            parts.append(part)
            progress(len(group))

    work = sum(map(len, token_ids)) * model.output_rows.numel()
    training = model.training
    model.eval()
    try:
        with model.without_decoder():
            share_out(lambda: encode_group, groups, work if model.device.type == "cpu" else 0)
    finally:
        model.train(training)
    return parts


@torch.inference_mode()
def _encode_batch(model: SparseEncoder, token_ids: Sequence[TokenIds], filtered: bool) -> BatchWeights:
    """The weights of one batch, in a process that reads for another."""
    model.eval()
    with model.without_decoder():
        return _encode_group(model, token_ids, list(range(len(token_ids))), filtered)


def _encode_group(
    model: SparseEncoder, token_ids: Sequence[TokenIds], group: list[int], filtered: bool
) -> BatchWeights:
    padded = pad([token_ids[index] for index in group], model.tokenizer.pad_token_id or 0)
    ids, mask = (each.to(model.device) for each in padded)
    hidden = model.hidden(ids, mask)
    if model.form.pooling == "sum":
        weights = splade_sum(hidden, model.output_rows, model.output_bias, mask, model.form.activation)
    elif filtered and model.device.type == "cpu":
        rows = pack_rows(hidden, mask)
        weights = positive_logits(rows.states, rows.starts, model.output_rows, model.output_bias)
    else:
        weights, _ = splade_pool(hidden, model.output_rows, model.output_bias, mask)
    if not hidden.isfinite().all():
        raise ModelError("the model gives hidden states that are not numbers: its weights are broken")
    counts, tokens, values = _positive(weights.cpu().numpy())
    if model.form.pooling == "max":  # sums are weights already
        values = model.form.activate(torch.from_numpy(values)).numpy()
    return BatchWeights(group, counts, tokens, values)


def _as_texts(progress: Progress, texts: int, windows: int) -> Progress:
    """Progress in windows, reported as the number of texts that they are worth."""
    done = announced = 0

    def advance(count: int) -> None:
        nonlocal done, announced
        done += count
        worth = done * texts // windows
        progress(worth - announced)
        announced = worth

    return advance


def _stack(parts: Sequence[BatchWeights], rows: int, columns: int) -> csr_matrix:
    """One matrix (texts, V) out of all batches, rows back in the order of the texts."""
    if not parts:
        return csr_matrix((rows, columns), dtype=np.float32)
    order = np.concatenate([part.texts for part in parts])
    starts = np.concatenate([[0], np.concatenate([part.counts for part in parts]).cumsum()])
    tokens = np.concatenate([part.tokens for part in parts])
    weights = np.concatenate([part.weights for part in parts])
    shuffled = csr_matrix((weights, tokens, starts), shape=(rows, columns))
    shuffled.has_sorted_indices = True
    return shuffled[np.argsort(order)]


def _without_blank(vectors: csr_matrix, token_ids: Sequence[TokenIds], nothing: TokenIds) -> csr_matrix:
    """Vectors (B, V) with empty rows for texts that are `nothing` to the tokenizer, which still have weights."""
    blank = np.array([list(ids) == list(nothing) for ids in token_ids], bool)
    if not blank.any():
        return vectors
    note_blank(int(blank.sum()))
    counts = np.diff(vectors.indptr)
    mask = np.repeat(~blank, counts)
    starts = np.concatenate([[0], np.where(blank, 0, counts).cumsum()])
    return csr_matrix((vectors.data[mask], vectors.indices[mask], starts), shape=vectors.shape)


@compiled
def _positive(
    maximum: NDArray[np.float32],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """How many maxima (B, V) of each text are above zero; their columns and values, row after row."""
    counts = np.zeros(maximum.shape[0], np.int64)
    for text in range(maximum.shape[0]):
        for token in range(maximum.shape[1]):
            counts[text] += maximum[text, token] > 0
    tokens = np.empty(counts.sum(), np.int32)
    values = np.empty(counts.sum(), np.float32)
    filled = 0
    for text in range(maximum.shape[0]):
        for token in range(maximum.shape[1]):
            if maximum[text, token] > 0:
                tokens[filled] = token
                values[filled] = maximum[text, token]
                filled += 1
    return counts, tokens, values
