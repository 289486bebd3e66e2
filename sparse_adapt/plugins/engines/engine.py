"""An engine with an export in it: what each must be able to do, and what engines that load documents have in common.

Documents that an engine refuses are named, and the others get in. Every load can be run again: a document replaces its
former self. Dimensions: V vocabulary.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Run
from sparse_adapt.errors import ConfigError, OutputError
from sparse_adapt.plugins.engines.layout import ExportLayout, ExportSource
from sparse_adapt.plugins.engines.manifest import ExportFolder, ExportManifest
from sparse_adapt.plugins.engines.quantise import Quantisation
from sparse_adapt.retrieve.search import search
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

MOST_NAMED = 3
PORTS = {"http": 80, "https": 443}

Item = TypeVar("Item")
Encode = Callable[[Sequence[str]], csr_matrix]
"""Texts -> weights (rows, V)."""

Search = Callable[[list[dict[int, float]]], Iterable[dict[str, float]]]
"""Queries as weights by token id -> the best documents of each with their scores, best first."""


class Engine(Protocol):
    """An export in its engine, ready to be searched.

    An engine may round. Exact search over the weights that it has (`document_weights`, `query_weights`) must give its
    ranking, and what these lose against the float weights is what the format costs.
    """

    @property
    def name(self) -> str:
        """The engine with its version."""

    @property
    def tolerance(self) -> float:
        """How far the engine's arithmetic may be off, as a share of a score: 0 for whole numbers, 1e-6 for float32."""

    @property
    def encode(self) -> Encode | None:
        """Queries in words -> their weights, by the encoder that the export holds; None where it holds none."""

    def document_weights(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as the engine keeps them (rows, V), in terms of weights: rounded, clipped, cut."""

    def query_weights(self, queries: EncodedBatch) -> csr_matrix:
        """The queries as the engine reads them (rows, V), in terms of weights."""

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents with their scores in terms of weights, best first.

        Queries without an entry have an empty ranking; documents without a shared token are left out.
        """


class EngineModule(Protocol):
    """What a module that a row of `formats.OWN` names must have."""

    def layout(self, source: ExportSource) -> ExportLayout:
        """The files of an export. Raises InputError for a token that the engine can't hold."""

    def how_to_load(self, export: ExportFolder) -> str:
        """The commands or lines of Python that load an export, ready to be copied."""

    def open_export(
        self, export: ExportFolder, url: str, documents: EncodedBatch | None
    ) -> AbstractContextManager[Engine]:
        """The engine with an export in it, in a `with` block, which lets go of everything.

        It is loaded from the export's files alone, by the means that a user has: a library in this process, a server
        at `url`, or a temporary index beside nothing of the user's. `documents` are what an export that holds none is
        searched with. Raises OutputError for a server that refuses.
        """


class FloatEngine:
    """An engine that keeps an export's weights as float32, as the manifest says."""

    encode = None  # the export holds no encoder
    tolerance = 1e-5  # sums of some hundred products in float32

    def __init__(self, manifest: ExportManifest, numbers: Sequence[int] | None = None) -> None:
        """`numbers`: by which the engine knows the dimensions (V), where these aren't their places."""
        self.manifest, self.numbers = manifest, numbers

    def document_weights(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as float32 (rows, V), which is how they are kept."""
        return self.manifest.take(documents).vectors

    def query_weights(self, queries: EncodedBatch) -> csr_matrix:
        """The queries as float32 (rows, V)."""
        return self.manifest.take(queries).vectors

    def in_batches(self, queries: EncodedBatch, size: int, search: Search) -> Run:
        """For each query id what `search` finds, which is given so many queries at a time; nothing without a weight."""
        run: Run = {query_id: {} for query_id in queries.ids}
        rows = [row for row in self.manifest.take(queries).rows() if row[1]]
        for first in range(0, len(rows), size):
            some = rows[first : first + size]
            rankings = search(
                [dict(zip(self._numbered(columns), weights, strict=True)) for _, columns, weights in some]
            )
            run |= {query_id: ranking for (query_id, _, _), ranking in zip(some, rankings, strict=True)}
        return run

    def _numbered(self, columns: list[int]) -> list[int]:
        """The numbers of some dimensions."""
        return columns if self.numbers is None else [self.numbers[column] for column in columns]


class ImpactEngine:
    """An engine that keeps whole impacts, of documents and of queries alike."""

    encode = None  # the export holds no encoder

    def __init__(self, quantisation: Quantisation) -> None:
        self.quantisation = quantisation

    def document_weights(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as impacts (rows, V), in terms of weights."""
        return self.quantisation.impacts(documents).vectors / self.quantisation.scale

    def query_weights(self, queries: EncodedBatch) -> csr_matrix:
        """The queries as they are put to the engine (rows, V): quantised like the documents."""
        return self.document_weights(queries)


# -- loading --------------------------------------------------------------------------------------


class EncoderEngine:
    """An engine that encodes alone: queries as its encoder reads them, over documents that are searched exactly."""

    tolerance = 1e-6

    def __init__(self, name: str, documents: EncodedBatch) -> None:
        """`name`: the encoder's, with its version."""
        self.name, self._documents = f"{name}, documents searched exactly", documents

    def document_weights(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as they are (rows, V)."""
        return documents.vectors

    def query_weights(self, queries: EncodedBatch) -> csr_matrix:
        """The queries as they are (rows, V)."""
        return queries.vectors

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents with their scores."""
        return search(queries.vectors, queries.ids, self._documents.vectors, self._documents.ids, k)


class RefusedDocument(NamedTuple):
    """A document that an engine didn't take, and what it said."""

    document_id: str
    reason: str


def insert_all(
    rows: Iterable[Item],
    insert: Callable[[list[Item]], object],
    *,
    batch: int,
    document_id: Callable[[Item], str],
    refusal: type[Exception] | tuple[type[Exception], ...],
) -> list[RefusedDocument]:
    """Insert rows a batch at a time; one that is refused goes in row by row, to find which are to blame."""
    refused: list[RefusedDocument] = []
    stream = iter(rows)
    while chunk := list(islice(stream, batch)):
        try:
            insert(chunk)
        except refusal:
            for row in chunk:
                try:
                    insert([row])
                except refusal as error:
                    refused.append(RefusedDocument(document_id(row), one_line(error)))
    return refused


def check_taken(place: object, refused: Sequence[RefusedDocument], documents: int) -> None:
    """Raise OutputError with the first of the refused documents, if any was."""
    if not refused:
        return
    shown = "; ".join(f"{row.document_id!r}: {row.reason}" for row in refused[:MOST_NAMED])
    more = f"; and {len(refused) - MOST_NAMED:,} more" if len(refused) > MOST_NAMED else ""
    raise OutputError(
        f"{place}: refused {len(refused):,} of {documents:,} documents ({shown}{more}); "
        "the others are in, mend the cause and load again"
    )


@contextmanager
def engine_errors(place: str, title: str, *failures: type[Exception]) -> Iterator[None]:
    """Raise what goes wrong between this process and an engine as an OutputError of one line."""
    try:
        yield
    except failures as error:
        raise OutputError(
            f"{place}: {title} gives an error ({one_line(error)}); see that it runs and no other process has it"
        ) from error


def one_line(error: object) -> str:
    """What an exception says, in one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


class ServerAddress(NamedTuple):
    """Where a server is: the URL with its port, and the place to name in messages, without user and password."""

    url: str
    place: str


def address_of(url: str) -> ServerAddress:
    """The address of a server. Raises ConfigError for what is no URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"{url!r} is no URL ({error}); give one such as http://localhost:9200") from error
    if parts.scheme not in PORTS or not parts.hostname:
        raise ConfigError(f"{url!r} is no URL of a server; give one such as http://localhost:9200")
    place = f"{parts.scheme}://{parts.hostname}" + (f":{port}" if port else "")
    if port is None:
        parts = parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{PORTS[parts.scheme]}")
    return ServerAddress(parts.geturl().rstrip("/"), place)


@contextmanager
def quiet_logs(*names: str) -> Iterator[None]:
    """Silence the loggers whose names begin so: libraries log with their tracebacks what they then raise."""
    known = [name for name in logging.root.manager.loggerDict if name.startswith(names)]
    loggers = [logging.getLogger(name) for name in {*names, *known}]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def quiet() -> Iterator[None]:
    """Send what the process writes to standard output and error nowhere, for the while.

    Some libraries print from machine code, past Python's own standard output.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    copies = [(number, os.dup(number)) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number, _ in copies:
            os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in copies:
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
