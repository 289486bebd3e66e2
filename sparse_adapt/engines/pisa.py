"""PISA over a CIFF file: its own index, its own query processing (Mallia, Siedlaczek, Mackenzie and Suel 2019).

The CIFF file is read with ciff-toolkit and laid out as PISA's uncompressed inverted index, which is what a
CIFF importer does; PISA then compresses and searches it with its `quantized` scorer, which multiplies impacts.
Terms are numbered, since PISA makes those of a query lower case and would not find `[SEP]` or `Ünï` by name.
PISA sums in float32, exact for whole scores up to 16,777,216. Dimensions: V vocabulary.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Run
from sparse_adapt.engines.quiet import quiet
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.export.ciff import INDEX_FILE
from sparse_adapt.export.parts import Manifest, escape_token, read_manifest
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.retrieve.vectors.manifest import read_tokens

ALGORITHM = "block_max_wand"


class PisaIndex:
    """An export for CIFF, searched by PISA."""

    tolerance = 1e-6

    def __init__(self, folder: Path, manifest: Manifest, index: Any, terms: list[str]) -> None:  # noqa: ANN401
        assert manifest.quantisation is not None, manifest.format
        self.name = f"PISA (pyterrier_pisa {version('pyterrier_pisa')}, {ALGORITHM})"
        self.quantisation = manifest.quantisation
        numbers = {term: number for number, term in enumerate(terms)}
        names = (escape_token(token) for token in read_tokens(folder, manifest.model))
        self._terms = [numbered(numbers[name]) if name in numbers else "" for name in names]
        self._index = index

    def stored(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as CIFF holds them (rows, V): impacts, in terms of weights."""
        return self.quantisation.impacts(documents).vectors / self.quantisation.scale

    def asked(self, queries: EncodedBatch) -> csr_matrix:
        """The queries as they are put to PISA: quantised like the documents."""
        return self.stored(queries)

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents with their scores in terms of weights."""
        import pandas  # type: ignore[import-untyped]

        run: Run = {query_id: {} for query_id in queries.ids}
        words = [
            (query_id, known)
            for query_id, columns, values in self.quantisation.impacts(queries).rows()
            if (known := self._known(columns, values))
        ]
        frame = pandas.DataFrame(words, columns=["qid", "query_toks"])
        if not words:
            return run
        with quiet():
            search = self._index.quantized(
                num_results=k, query_algorithm=ALGORITHM, toks_scale=1.0, threads=1
            )
            found = search.transform(frame)
        for query_id, document_id, score in zip(found["qid"], found["docno"], found["score"], strict=True):
            run[query_id][document_id] = self.quantisation.score(round(float(score)))
        return run

    def _known(self, columns: list[int], values: list[int]) -> dict[str, int]:
        """A query's impacts by the terms of the index, without tokens that no document has."""
        pairs = zip(columns, values, strict=True)
        return {self._terms[column]: value for column, value in pairs if self._terms[column]}


@contextmanager
def open_engine(folder: Path, *, url: str = "") -> Iterator[PisaIndex]:
    """An export for CIFF, indexed by PISA for the while. Raises ConfigError for a `url`: PISA is a library."""
    if url:
        raise ConfigError(f"--url {url}: PISA runs in this process; leave it out")
    manifest = read_manifest(folder, "ciff")
    if manifest.entries == 0:
        raise InputError(folder, "holds no impacts, of which PISA makes no index; export other documents")
    with TemporaryDirectory() as scratch:
        with quiet():
            index, terms = import_ciff(folder / INDEX_FILE, Path(scratch))
        yield PisaIndex(folder, manifest, index, terms)


def numbered(term: int) -> str:
    """What a term is called in PISA: its place in the file, all of one length, so that they stay in order."""
    return f"{term:010d}"


def import_ciff(path: Path, folder: Path) -> tuple[Any, list[str]]:
    """A PISA index in `folder`, made from a CIFF file, and the terms that its numbers stand for."""
    from ciff_toolkit.read import CiffReader
    from pyterrier_pisa import PisaIndex as TheirIndex
    from pyterrier_pisa import _pisathon

    with CiffReader(path) as reader:
        header = reader.header
        terms = _write_postings(folder, reader)
        documents = list(reader.read_documents())
    _numbers([header.num_docs, *(document.doclength for document in documents)]).tofile(folder / "inv.sizes")
    names = [numbered(number) for number in range(len(terms))]
    for name, lines in (("terms", names), ("documents", [each.collection_docid for each in documents])):
        (folder / f"fwd.{name}").write_bytes("".join(f"{line}\n" for line in lines).encode())
    _pisathon.build_binlex(str(folder / "fwd.documents"), str(folder / "fwd.doclex"))
    _pisathon.build_binlex(str(folder / "fwd.terms"), str(folder / "fwd.termlex"))
    card = {"type": "sparse_index", "format": "pisa", "package_hint": "pyterrier-pisa", "stemmer": "none"}
    (folder / "pt_meta.json").write_text(json.dumps(card))
    return TheirIndex(str(folder), stemmer="none", stops="none"), terms


def _write_postings(folder: Path, reader: Any) -> list[str]:  # noqa: ANN401 - a CiffReader
    """PISA's `inv.docs` and `inv.freqs`, each list behind its length; the terms in their order."""
    terms = []
    with (folder / "inv.docs").open("wb") as documents, (folder / "inv.freqs").open("wb") as impacts:
        documents.write(_numbers([1, reader.header.num_docs]).tobytes())
        for postings in reader.read_postings_lists():
            terms.append(postings.term)
            gaps = [posting.docid for posting in postings.postings]
            documents.write(_numbers([len(gaps), *np.cumsum(gaps).tolist()]).tobytes())
            impacts.write(_numbers([len(gaps), *(posting.tf for posting in postings.postings)]).tobytes())
    return terms


def _numbers(values: list[int]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return np.array(values, dtype=np.uint32)
