"""The vectors that are searched: a model's weights, and beside them the exact words of the text, where it has some.

Stages and diagnostics read a model's weights alone (`retrieve.encode`). Dimensions: B texts, V vocabulary, W with
words.
"""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document
from sparse_adapt.model.exact.words import FIRST_WORD, MARK
from sparse_adapt.model.forms import heaviest
from sparse_adapt.model.idf import TokenScales, scaled
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.columns import beside, only, split
from sparse_adapt.retrieve.encode import encode


def document_vectors(
    model: SparseEncoder, documents: Sequence[Document], *, progress: Progress = no_progress
) -> csr_matrix:
    """The vectors of documents: (B, V), float32; (B, W), the heaviest weights and exact words, which know titles apart.

    Raises ModelError as `encode` does.
    """
    texts = [document.full_text for document in documents]
    weights = encode(model, texts, "document", scales=model.words is None, progress=progress)
    return with_words_of_documents(model, weights, documents)


def query_vectors(
    model: SparseEncoder, texts: Sequence[str], *, filtered: bool = True, progress: Progress = no_progress
) -> csr_matrix:
    """The vectors of queries: (B, V), float32; (B, W) with exact words. Raises what `encode` does."""
    weights = encode(model, texts, "query", filtered=filtered, scales=model.words is None, progress=progress)
    return with_words_of_queries(model, weights, texts)


def with_words_of_documents(
    model: SparseEncoder, weights: csr_matrix, documents: Sequence[Document]
) -> csr_matrix:
    """The vectors of documents whose weights (B, V) are known, as `document_vectors` gives them.

    weights: without token scales where the model has exact words. They are the heaviest before they are scaled.
    """
    if model.words is None:
        return weights
    kept = heaviest(weights, model.words.settings.heaviest)
    return beside(_with_scales(model, kept), model.words.documents(documents), FIRST_WORD)


def with_words_of_queries(model: SparseEncoder, weights: csr_matrix, texts: Sequence[str]) -> csr_matrix:
    """The vectors of queries whose weights (B, V) are known, as `query_vectors` gives them.

    weights: without token scales where the model has exact words.
    """
    if model.words is None:
        return weights
    return beside(_with_scales(model, weights), model.words.queries(texts, model.tokenizer), FIRST_WORD)


def _with_scales(model: SparseEncoder, weights: csr_matrix) -> csr_matrix:
    """Weights (B, V) times the token scales of a model, where it has some."""
    return weights if model.token_scales is None else scaled(weights, model.token_scales_of())


def token_weights(model: SparseEncoder, vectors: csr_matrix) -> csr_matrix:
    """The weights of the vocabulary's tokens alone in vectors of a model (B, V or W): (B, V)."""
    columns = np.arange(model.vocabulary_size, dtype=np.int32)
    return vectors if vectors.shape[1] == len(columns) else only(vectors, columns)


def rescaled(vectors: csr_matrix, token_scales: TokenScales | None, most: int | None = None) -> csr_matrix:
    """Vectors (B, V or W) that were made without token scales (V), with them; of each row the `most` heaviest weights.

    Weights are the heaviest before they are scaled: by idf a document would lose the words of general questions. Exact
    words stay as they are.
    """
    weights, words = split(vectors, FIRST_WORD) if vectors.shape[1] > FIRST_WORD else (vectors, None)
    if words is not None:
        weights = heaviest(weights, most)
    if token_scales is not None:
        weights = scaled(weights, token_scales)
    return weights if words is None else beside(weights, words, FIRST_WORD)


def names_of_columns(model: SparseEncoder, columns: Sequence[int], *documents: Document) -> tuple[str, ...]:
    """The name of each column: a token as the tokenizer spells it, an exact word behind `MARK`.

    `documents`: where words stand that no text before held.
    """
    words = [column for column in columns if column >= FIRST_WORD]
    known = model.words.named(words, documents) if model.words is not None else {}
    tokens = iter(model.names_of([column for column in columns if column < FIRST_WORD]))
    return tuple(
        next(tokens) if column < FIRST_WORD else MARK + known.get(column, str(column)) for column in columns
    )
