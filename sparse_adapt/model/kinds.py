"""Either kind of encoder by its name: what a folder holds says which it is."""

from sparse_adapt.model.dense_layout import is_dense
from sparse_adapt.model.folder import ModelFolder, ModelSource
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.sparse import SparseEncoder

EitherEncoder = SparseEncoder | SentenceEncoder


def load_encoder(source: ModelSource, device: str = "cpu") -> EitherEncoder:
    """Read a SPLADE model, or a dense one where the folder is in the layout of sentence-transformers' dense models.

    Raises ModelError for what is neither.
    """
    model = ModelFolder.of(source)
    return (SentenceEncoder if is_dense(model.path) else SparseEncoder).load(model, device)
