"""Queries that a model writes for documents, and the pairs of query and document that hold.

A sequence-to-sequence model writes queries, as doc2query has them (Nogueira and Lin 2019). A title says what its
document is about, a sentence often doesn't. A pair stays where at most so many documents score higher than its own by
exact search with a reference encoder (Dai et al. 2022, arXiv:2209.11755).
Dimensions: Q queries, N documents.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.collection.examples import Pair
from sparse_adapt.collection.readers import Document
from sparse_adapt.collection.sentences import language_of
from sparse_adapt.model.folder import ModelFolder
from sparse_adapt.model.kinds import EitherEncoder
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.weights import check_weights, loading
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.synthetic.queries import Generate, SyntheticQuery
from sparse_adapt.teachers.teacher import Rank

DEPTH = 10
QUERIES_A_PART = 64
TEXTS_AT_ONCE = 16
LONGEST_TEXT, LONGEST_QUERY = 384, 48  # tokens


def ranked_by(encoder: EitherEncoder, texts: Sequence[str], progress: Progress = no_progress) -> Rank:
    """How an encoder of either kind scores some texts for queries: (Q, N), by exact products."""
    if isinstance(encoder, SentenceEncoder):
        dense = encoder.encode(texts, progress=progress).T
        return lambda queries: encoder.encode(queries) @ dense
    sparse = encode(encoder, texts, "document", progress=progress).T.tocsr()

    def rank(queries: Sequence[str]) -> NDArray[np.floating]:
        return np.asarray((encode(encoder, list(queries), "query") @ sparse).todense())

    return rank


def consistent(
    queries: Sequence[SyntheticQuery],
    documents: Sequence[Document],
    rank: Rank,
    depth: int = DEPTH,
    progress: Progress = no_progress,
    least: float | None = None,
) -> list[Pair]:
    """The queries whose source is among the `depth` best by `rank`, as pairs in their order.

    `least`: the score that a source has at least, a threshold of similarity as published. Documents that score the same
    as the source don't count against it. Queries without a source are left out.
    """
    row_of = {document.document_id: row for row, document in enumerate(documents)}
    found: list[Pair] = []
    for start in range(0, len(queries), QUERIES_A_PART):
        part = queries[start : start + QUERIES_A_PART]
        scores = np.asarray(rank([query.text for query in part]))
        for query, row in zip(part, scores, strict=True):
            source = row_of.get(query.document_id)
            if source is None or (least is not None and row[source] < least):
                continue
            if int((row > row[source]).sum()) < depth:
                found.append(Pair(query.text, query.document_id, query.query_id))
        progress(len(part))
    return found


def in_language(pairs: Sequence[Pair], documents: Sequence[Document], language: str) -> list[Pair]:
    """The pairs that are in a language: told from query and document as one text, since a query is short."""
    text_of = {document.document_id: document.full_text for document in documents}
    told = (language_of(f"{pair.query} {text_of[pair.document_id]}") for pair in pairs)
    return [pair for pair, own in zip(pairs, told, strict=True) if own == language]


# -- queries that a model writes ----------------------------------------------------------------------


def generator(source: str) -> Generate:
    """What writes a query for each text, always the same one (beam search). Safetensors only, no remote code.

    Raises ModelError for what can't be loaded as such a model.
    """
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    folder = ModelFolder.of(source).path
    check_weights(folder, source)
    with loading(source, "a query generator"):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        model = AutoModelForSeq2SeqLM.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True, use_safetensors=True
        ).eval()

    @torch.inference_mode()
    def generate(texts: Sequence[str]) -> list[str]:
        written: list[str] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            part = list(texts[start : start + TEXTS_AT_ONCE])
            encoded = tokenizer(
                part, truncation=True, max_length=LONGEST_TEXT, padding=True, return_tensors="pt"
            )
            found = model.generate(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                max_new_tokens=LONGEST_QUERY,
                num_beams=2,
                do_sample=False,
            )
            written += tokenizer.batch_decode(found, skip_special_tokens=True)
        return written

    return generate
