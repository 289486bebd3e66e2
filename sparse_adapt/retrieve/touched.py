"""Which documents have another vector once a model has some tokens more, or fewer, and everything else as it was.

A document is touched that says such a token, for it is then cut into other tokens, or that activates one. The vectors
of all others are the same. Dimensions: B texts, L positions, H hidden, T tokens that are asked of.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from sparse_adapt.collection.readers import Document
from sparse_adapt.files.folders import write_text
from sparse_adapt.model.head.pooling import splade_pool
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds, group_by_length, pad
from sparse_adapt.model.windows import cut_up
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.encode import TOKENS_A_BATCH

DOCUMENTS_AT_ONCE = 512
REENCODE_FILE = "reencode.txt"  # ids of documents to be encoded again, one a line


def write_ids(folder: Path, ids: Sequence[str]) -> None:
    """Write the ids of documents to be encoded again into a folder."""
    write_text(folder / REENCODE_FILE, "".join(f"{each}\n" for each in ids))


def ids_saying(encoder: SparseEncoder, documents: Iterable[Document], tokens: Iterable[int]) -> Iterator[str]:
    """The ids of documents that say one of some tokens where the model reads them."""
    wanted = set(tokens)
    for document in documents:
        if wanted & set(encoder.tokenize([document.full_text])[0]):
            yield document.document_id


def touched_by(
    models: Sequence[tuple[SparseEncoder, Sequence[int]]],
    documents: Iterable[Document],
    progress: Progress = no_progress,
) -> list[str]:
    """The ids of documents that say or activate one of some tokens of any of these models, in their order."""
    names = list[str]()
    for part in _parts(documents):
        texts = [document.full_text for document in part]
        touched = np.zeros(len(part), np.bool_)
        for encoder, tokens in models:
            touched |= touches(encoder, texts, tokens)
        names += [document.document_id for document, each in zip(part, touched, strict=True) if each]
        progress(len(part))
    return names


def touches(encoder: SparseEncoder, texts: Sequence[str], tokens: Sequence[int]) -> NDArray[np.bool_]:
    """Which texts (B) say or activate one of some tokens, read as documents: in windows where the model reads so."""
    owners = np.arange(len(texts))
    if encoder.windows is not None:
        parts, owners = cut_up(texts, encoder.tokenizer, encoder.windows, encoder.form.prompt("document"))
        texts = parts
    token_ids, wanted = encoder.tokenize(texts), set(tokens)
    touched = np.array([not wanted.isdisjoint(ids) for ids in token_ids], np.bool_)
    nothing = encoder.tokenize([""])[0]  # has an empty vector whatever it activates
    others = np.flatnonzero(~touched & np.array([ids != nothing for ids in token_ids], np.bool_))
    if tokens and len(others):
        touched[others] = _activates(encoder, [token_ids[row] for row in others], list(tokens))
    marks = np.zeros(int(owners.max(initial=-1)) + 1, np.bool_)
    np.logical_or.at(marks, owners, touched)
    return marks


@torch.inference_mode()
def _activates(encoder: SparseEncoder, token_ids: Sequence[TokenIds], tokens: list[int]) -> NDArray[np.bool_]:
    """Which texts (B) give one of some tokens (T) weight: the body is asked, and of the head those rows alone."""
    rows, bias = encoder.output_rows[tokens], encoder.output_bias
    active = np.zeros(len(token_ids), np.bool_)
    with encoder.without_decoder():
        for group in group_by_length([len(ids) for ids in token_ids], TOKENS_A_BATCH):
            padded = pad([token_ids[row] for row in group], encoder.tokenizer.pad_token_id or 0)
            ids, mask = (each.to(encoder.device) for each in padded)
            most, _ = splade_pool(
                encoder.hidden(ids, mask), rows, None if bias is None else bias[tokens], mask
            )
            active[group] = (most > 0).any(dim=1).cpu().numpy()
    return active


def _parts(documents: Iterable[Document]) -> Iterator[list[Document]]:
    part = list[Document]()
    for document in documents:
        part.append(document)
        if len(part) == DOCUMENTS_AT_ONCE:
            yield part
            part = []
    if part:
        yield part
