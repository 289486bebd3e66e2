"""A model as one object: load it, encode texts, give it words, save it."""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.api.options import READING_OPTIONS, Option, declared
from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import InputError, ModelError
from sparse_adapt.files.folders import output_folder
from sparse_adapt.files.marker import checksum_of_texts
from sparse_adapt.files.place import Place
from sparse_adapt.model.exact.words import WIDTH
from sparse_adapt.model.forms import Side
from sparse_adapt.model.kinds import EitherEncoder, open_encoder
from sparse_adapt.model.reading import Reading
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import Extension, Pieces, extend
from sparse_adapt.pipeline.run import REPORT_FILE, read_finished
from sparse_adapt.report.progress import Progress, progress_bars
from sparse_adapt.retrieve.columns import products
from sparse_adapt.retrieve.hybrid import document_vectors, names_of_columns, query_vectors
from sparse_adapt.stages.card import making_of, with_record, write_card
from sparse_adapt.stages.record import StageRecord, new_record, read_stage_record, write_record
from sparse_adapt.terms.mining import TermsLike, terms_of
from sparse_adapt.training.loop import HISTORY_FILE, read_history

SHORT = 400  # signs of texts whose products cost less than rounding the head's rows to rule most of them out


class Model:
    """An encoder, and where it came from.

    `encoder` is the torch module (`SparseEncoder`, or `SentenceEncoder` for a dense model); `source` is the folder,
    alias or `hub:owner/name` that it was read from.
    """

    def __init__(self, encoder: EitherEncoder, source: str, keeps: Sequence[object] = ()) -> None:
        self.encoder, self.source = encoder, source
        self.keeps = tuple(keeps)  # temporary folders, which go when the last model that came from them goes
        self.extended = False  # since it was read or saved
        self._encoded: tuple[str, csr_matrix] | None = None

    # -- what it is ---------------------------------------------------------------------------

    @property
    def tokens(self) -> list[str]:
        """The names of the columns of `encode`: each token as the tokenizer spells it, by id; (V) of them."""
        return self.encoder.tokens

    @property
    def terms(self) -> list[str]:
        """The terms that extensions gave a token, in the order of their ids."""
        return [token.term for token in self.encoder.new_tokens]

    @property
    def is_sparse(self) -> bool:
        """Whether it is a SPLADE model; a dense sentence encoder otherwise."""
        return isinstance(self.encoder, SparseEncoder)

    @property
    def record(self) -> StageRecord:
        """What the stage that wrote the model's folder read, and with which settings; empty where none did."""
        return read_stage_record(self.source) or {}

    @property
    def history(self) -> list[dict[str, float]]:
        """Each training step of the stage that wrote the model's folder: the loss, and each of its terms."""
        path = Path(self.source) / HISTORY_FILE
        return read_history(path) if path.is_file() else []

    def __repr__(self) -> str:
        kind, size = "sparse" if self.is_sparse else "dense", self.encoder.vocabulary_size
        new = f" ({len(self.terms):,} added)" if self.terms else ""
        return f"<Model: {self.source}, {kind}, {size:,} tokens{new}, on {self.encoder.device}>"

    # -- texts to vectors ---------------------------------------------------------------------

    @declared
    def encode(
        self,
        texts: str | Sequence[str] | Sequence[Document],
        *,
        side: Side = "document",
        progress: bool | None = None,
        show_progress_bar: bool | None = None,
        batch_size: int | None = None,
    ) -> csr_matrix | NDArray[np.float32]:
        """Vectors of texts, one row each, in their order; a single string is one text, and gives one row.

        A SPLADE model gives a scipy CSR matrix (texts, V) of float32, never negative, whose columns `tokens` names; a
        text that activates no token keeps its empty row. With exact words there are half a billion columns, nearly all
        of them empty: `decode` names those of a row, and `toarray()` would take 2 GB for it. A `Document` has its
        title apart, which exact words count as a field of its own. A dense model gives an array (texts, H) of rows of
        length 1.
        A text is cut at `encoder.max_tokens` tokens. `side`, "document" or "query", matters to a SPLADE model that
        reads queries in another way: with another prompt, or by a table. `show_progress_bar` and `batch_size` are as
        sentence-transformers calls them: the first is `progress`, and texts of like length go through together whatever
        the second says. Raises InputError for an item that is no string.

        >>> import sparse_adapt as sa
        >>> model = sa.load("splade-tiny", device="cpu")
        >>> vectors = model.encode(["a bird sings", "a plane lands"])
        >>> vectors.shape
        (2, 30522)
        >>> model.tokens[vectors[0].toarray().argmax()]
        'bird'
        """
        if not isinstance(texts, Iterable):
            raise InputError(
                "texts", f"can't be read from {type(texts).__name__}; give a string or a list of them"
            )
        listed: list[object] = [texts] if isinstance(texts, str) else list(texts)
        documents = list[Document]()
        for number, text in enumerate(listed, start=1):
            if not isinstance(text, str | Document):
                raise InputError("texts", f"need to be strings (found: {type(text).__name__})", line=number)
            document = text if isinstance(text, Document) else Document("", text)
            if not (isinstance(document.text, str) and isinstance(document.title, str)):
                raise InputError("texts", "holds a document whose text or title is no string", line=number)
            documents.append(document)
        plain = [document.full_text for document in documents]
        with progress_bars(show_progress_bar if progress is None else progress) as bars:
            advance = bars.count("texts", len(listed))
            if not isinstance(self.encoder, SparseEncoder):
                return self.encoder.encode(plain, progress=advance)
            if side == "query":
                long = sum(map(len, plain)) > SHORT
                return query_vectors(self.encoder, plain, filtered=long, progress=advance)
            return document_vectors(self.encoder, documents, progress=advance)

    @declared
    def encode_query(
        self, texts: str | Sequence[str], **how: bool | int | None
    ) -> csr_matrix | NDArray[np.float32]:
        """Vectors of queries, one row each: `encode` with `side="query"`, and what else it takes.

        >>> import sparse_adapt as sa
        >>> model = sa.load("splade-tiny", device="cpu")
        >>> model.encode_query("which birds sing").shape
        (1, 30522)
        """
        return self.encode(texts, side="query", **how)  # type: ignore[arg-type]

    @declared
    def encode_document(
        self, texts: str | Sequence[str] | Sequence[Document], **how: bool | int | None
    ) -> csr_matrix | NDArray[np.float32]:
        """Vectors of documents, one row each: `encode` with `side="document"`. A title stands before its text.

        >>> import sparse_adapt as sa
        >>> model = sa.load("splade-tiny", device="cpu")
        >>> model.encode_document(["a bird sings", "a plane lands"]).shape
        (2, 30522)
        """
        return self.encode(texts, side="document", **how)  # type: ignore[arg-type]

    encode_queries, encode_documents = encode_query, encode_document  # the same under older names

    def similarity(
        self, queries: csr_matrix | NDArray[np.float32], documents: csr_matrix | NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """The score of each document for each query: dot products (queries, documents) of encoded rows.

        Raises InputError for rows of different widths, such as those of two models.

        >>> import sparse_adapt as sa
        >>> model = sa.load("splade-tiny", device="cpu")
        >>> documents = model.encode_document(["we save money", "a bird sings"])
        >>> int(model.similarity(model.encode_query("which birds sing"), documents).argmax())
        1
        """
        rows, others = (csr_matrix(each, dtype=np.float32) for each in (queries, documents))
        if rows.shape[1] != others.shape[1]:
            widths = f"{rows.shape[1]:,} and {others.shape[1]:,}"
            raise InputError("vectors", f"have {widths} columns; encode both with one model")
        scores: NDArray[np.float32] = products(rows, others).toarray()
        return scores

    @declared
    def decode(
        self, vectors: csr_matrix | NDArray[np.float32], top_k: Annotated[int | None, Option("", ge=1)] = None
    ) -> list[list[tuple[str, float]]]:
        """The tokens of each row with their weights, heaviest first, at most `top_k` of them.

        An exact word has `=` before it, and its number where no text before held it.
        Raises ModelError for a dense model, whose columns are no tokens, and InputError for rows of another model.

        >>> import sparse_adapt as sa
        >>> model = sa.load("splade-tiny", device="cpu")
        >>> [[token for token, _ in row] for row in model.decode(model.encode_query("which birds sing"), top_k=2)]
        [['birds', 'bird']]
        """
        if not isinstance(self.encoder, SparseEncoder):
            raise ModelError(f"{self.source}: is a dense model, whose numbers stand for no tokens")
        rows, width = csr_matrix(vectors), len(self.tokens) if self.encoder.words is None else WIDTH
        if rows.shape[1] != width:
            counts = f"{rows.shape[1]:,} columns, and {self.source} {width:,}"
            raise InputError("vectors", f"have {counts}; encode them with this model")
        decoded = []
        for row in rows:
            order = np.argsort(-row.data, kind="stable")[:top_k]
            names = names_of_columns(self.encoder, row.indices[order].tolist())
            decoded.append(list(zip(names, row.data[order].tolist(), strict=True)))
        return decoded

    # -- what it becomes ----------------------------------------------------------------------

    @declared
    def extend(self, terms: "TermsLike", *, pieces: Pieces = "replace") -> Extension:
        """Give each term a head row and a bias of its own. The model changes in place.

        terms: a list of words, a dictionary from categories to lists, or the path of a `terms.json`. pieces: replace
        gives each a token and an input row as well, in place of its pieces; beside a dimension beside them, so that
        texts are read as before. A new row begins as the mean of the pieces; a stage has to teach it (`train`). Raises
        TermError, before anything is changed, for a term that can't become a token.

        >>> import sparse_adapt as sa
        >>> model = sa.load("splade-tiny", device="cpu")
        >>> model.extend(["gatrocraptic"]).new_tokens[0].token
        'gatrocraptic'
        >>> model.encode("gatrocraptic").shape
        (1, 30523)
        >>> model = sa.load("splade-tiny", device="cpu")
        >>> model.extend(["access key"], pieces="beside").new_tokens[0].token_id, model.encoder.tokenizer.vocab_size
        (30522, 30522)
        """
        extension = extend(self.encoder, terms_of(terms), pieces)
        self.extended, self._encoded = True, None
        return extension

    def saved_at(self) -> str:
        """Where it can be read. Raises ModelError for a model that was extended in memory and saved nowhere."""
        if self.extended:
            raise ModelError(f"{self.source}: was extended since it was read; save it first")
        return self.source

    @declared
    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write a folder that transformers, sentence-transformers and raw tokenizers read the same.

        Raises OutputError for a place that is taken, unless `overwrite` says that it may be replaced.
        """
        place = Path(folder)
        with output_folder(Place(place, overwrite=overwrite, resumable=False)) as work:
            record = self.record
            if self.extended:
                record = new_record("extend", self.source, {}, {}, time.monotonic())
            self.encoder.save(work)
            write_card(work, with_record(record) if record else making_of(self.source))
            if record:
                write_record(work, record)
        self.source, self.extended = str(place), False
        return place


ModelLike = str | Path | Model
READS = READING_OPTIONS.named


@declared
def load(
    source: "ModelLike",
    device: str = "auto",
    *,
    max_tokens: Annotated[int | None, READS["max_tokens"]] = None,
    windows: Annotated[int | None, READS["windows"]] = None,
    overlap: Annotated[int | None, READS["overlap"]] = None,
) -> Model:
    """Read a model from a folder, an alias (`splade-tiny`) or `hub:owner/name`; a `Model` is given back as it is.

    device: `auto` (the fastest there is), `cpu`, `cuda` or `mps`. The folder of a run stands for the model that it
    ended with. max_tokens: tokens of a text that are read. windows: documents are read whole, in windows of so many
    tokens, of which the next repeats `overlap`; 0 for no windows. What isn't named is as the folder says. Only
    safetensors are read, and no code from the folder is run. Raises ModelError where there is no model that can be
    adapted, and ConfigError for a device that isn't there and for windows longer than the model reads.

    >>> import sparse_adapt as sa
    >>> sa.load("splade-tiny", device="cpu")
    <Model: splade-tiny, sparse, 30,522 tokens, on cpu>
    """
    if isinstance(source, Model):
        source.encoder.read_as(Reading(max_tokens, windows, overlap))
        return source
    place = Path(source)
    if (place / REPORT_FILE).is_file() and not (place / "config.json").is_file():
        source = read_finished(place).model
    return Model(open_encoder(source, Reading(max_tokens, windows, overlap, device)), str(source))


def encoded_documents(model: Model, documents: Sequence[Document], advance: Progress) -> csr_matrix:
    """Sparse vectors (documents, V); those of the last documents are kept, for the next question about them."""
    encoder = model.encoder
    assert isinstance(encoder, SparseEncoder), "checked by load_sparse"
    texts = [text for document in documents for text in (document.title, document.text)]
    reads = f"{encoder.max_tokens} {encoder.windows.name if encoder.windows is not None else ''}"
    words = "" if encoder.words is None else encoder.words.checksum
    checksum = checksum_of_texts([reads, words, *texts])
    if model._encoded is not None and model._encoded[0] == checksum:
        advance(len(documents))
        return model._encoded[1]
    vectors = document_vectors(encoder, documents, progress=advance)
    model._encoded = checksum, vectors
    return vectors


def load_sparse(
    source: ModelLike, device: str = "auto", **reading: int | None
) -> tuple[Model, SparseEncoder]:
    """The model and its encoder, where only a SPLADE model will do. Raises ModelError for a dense one."""
    model = load(source, device, **reading)
    if not isinstance(model.encoder, SparseEncoder):
        raise ModelError(
            f"{model.source}: is a dense model, where a SPLADE model is needed, such as splade-tiny"
        )
    return model, model.encoder
