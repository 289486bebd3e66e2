"""The names of the exact words in a folder of vectors, gathered while its documents are encoded."""

from collections.abc import Sequence

from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document
from sparse_adapt.model.exact.words import FIRST_WORD
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.columns import used_columns
from sparse_adapt.retrieve.vectors.manifest import ModelStamp, stamp_of_model, word_names


class WordNames:
    """The exact words of the documents that were met, by their columns; none of a model without exact words."""

    def __init__(self, model: SparseEncoder, model_name: str) -> None:
        self.model, self._stamp = model, stamp_of_model(model, model_name)
        self._words: dict[int, str] = {}

    def meet(self, documents: Sequence[Document], vectors: csr_matrix | None = None) -> None:
        """Take the words of some documents, by their vectors (rows, W) where these are at hand."""
        words = self.model.words
        if words is None:
            return
        if vectors is None:
            stems = (word.stem for each in documents for word in words.analyzer.words(each.full_text))
            columns = {words.column(stem) for stem in stems}
        else:
            columns = {int(column) for column in used_columns([vectors]) if column >= FIRST_WORD}
        self._words |= words.named(columns - self._words.keys(), documents)

    @property
    def listed(self) -> list[str]:
        """The names in the order of their columns."""
        return word_names(self._words)

    @property
    def stamp(self) -> ModelStamp:
        """The model's stamp with the words that were met so far."""
        return self._stamp.naming(None if self.model.words is None else self.listed)
