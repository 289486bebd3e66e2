"""Either kind of encoder, opened by its name: what a folder holds says which it is."""

from sparse_adapt.model.folder import ModelFolder, ModelSource
from sparse_adapt.model.layout import is_dense
from sparse_adapt.model.reading import Reading, choose_device
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.sparse import SparseEncoder

EitherEncoder = SparseEncoder | SentenceEncoder


def load_encoder(source: ModelSource, device: str = "cpu") -> EitherEncoder:
    """Read a SPLADE model, or a dense one where the folder is in the layout of sentence-transformers' dense models.

    Raises ModelError for what is neither.
    """
    model = ModelFolder.of(source)
    return (SentenceEncoder if is_dense(model.path) else SparseEncoder).load(model, device)


def open_encoder(source: ModelSource, reading: Reading) -> EitherEncoder:
    """A SPLADE model, or a dense one, with a way of reading. Raises ModelError for what is neither."""
    encoder = load_encoder(source, choose_device(reading.device))
    encoder.read_as(reading)
    return encoder


def open_sparse(source: ModelSource, reading: Reading) -> SparseEncoder:
    """A SPLADE model with a way of reading. Raises ModelError for any other."""
    encoder = SparseEncoder.load(source, choose_device(reading.device))
    encoder.read_as(reading)
    return encoder
