"""Either kind of encoder by its name: what a folder holds says which it is."""

from pathlib import Path

from sparse_adapt.model.dense_layout import is_dense
from sparse_adapt.model.saved import fetch
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.sparse import SparseEncoder

EitherEncoder = SparseEncoder | SentenceEncoder


def load_encoder(source: str | Path, device: str = "cpu") -> EitherEncoder:
    """Read a SPLADE model, or a dense one where the folder is in the layout of sentence-transformers' dense models.

    Raises ModelError for what is neither.
    """
    if is_dense(fetch(source)):
        return SentenceEncoder.load(source, device)
    return SparseEncoder.load(source, device)
