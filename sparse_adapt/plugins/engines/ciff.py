r"""Impacts as a Common Index File Format file, which PISA, JASS, Lucene and others read, and PISA with it.

    FOLDER/index.ciff      a header, a list of documents for each token, a record for each document
    FOLDER/queries.jsonl   {"id": ..., "vector": {"token": impact, ...}}
    FOLDER/tokens.json, manifest.json

An impact stands where the format (Lin et al. 2020, arXiv:2003.08276) has a term frequency. Each block of documents is
inverted on disk, and the lists are joined token by token, so that memory never holds the corpus. Tokens come in the
order of their UTF-8 bytes; white space and control characters in them are written as `\uXXXXXX`
(`layout.escape_token`), since readers keep terms line by line.

PISA is opened with an export (Mallia, Siedlaczek, Mackenzie and Suel 2019): the file is read with ciff-toolkit and
laid out as PISA's uncompressed inverted index, which is what a CIFF importer does; PISA then compresses and
searches it with its `quantized` scorer, which multiplies impacts. Terms are numbered, since PISA makes those of a
query lower case and would not find `[SEP]` or `Ünï` by name. PISA sums in float32, exact for whole scores up to
16,777,216. Dimensions: V vocabulary.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix

from sparse_adapt.collection.readers import Run
from sparse_adapt.errors import InputError
from sparse_adapt.plugins.engines.engine import ImpactEngine, quiet
from sparse_adapt.plugins.engines.layout import (
    ExportLayout,
    ExportSource,
    breaks_words,
    escape_token,
    vector_line,
)
from sparse_adapt.plugins.engines.manifest import ExportFolder, ExportManifest, file_there
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

if TYPE_CHECKING:
    from ciff_toolkit.ciff_pb2 import PostingsList
    from ciff_toolkit.read import CiffReader
    from pyterrier_pisa import PisaIndex as IndexOfPisa

CIFF_FILE = "index.ciff"
MOST_DOCUMENTS = 2**31 - 1  # CIFF numbers them with 32 bits
DESCRIPTION = "sparse-adapt: impacts of SPLADE weights"
ALGORITHM = "block_max_wand"

Numbers = NDArray[np.int64]


# -- the files ------------------------------------------------------------------------------------


class Inverted(NamedTuple):
    """One block by token, on disk: a token's documents and impacts lie between two of `starts` (V + 1)."""

    starts: Numbers
    documents: Numbers
    impacts: Numbers


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: one CIFF file, and queries as lines of JSON."""
    names = [escape_token(token) for token in source.vectors.tokens]
    return ExportLayout(documents=partial(_write_ciff, names), query_line=vector_line(names))


def how_to_load(export: ExportFolder) -> str:
    """Python that opens the file, and the command that has PISA search it."""
    model = export.manifest.model.name or "MODEL"
    return (
        "from ciff_toolkit.read import CiffReader\n"
        f"print(CiffReader({str(export.path / CIFF_FILE)!r}).header)\n"
        f"# sparse-adapt check-export {export.path} --model {model} --corpus CORPUS --queries QUERIES"
    )


def _write_ciff(
    names: Sequence[str], work: Path, manifest: ExportManifest, blocks: Iterable[EncodedBatch]
) -> ExportManifest:
    """Write the documents of an export into one file. names: (V) what each token is called there.

    Raises InputError for document ids that a line can't hold, and for more documents than CIFF can number.
    """
    scratch = work / "inverted"
    scratch.mkdir()
    inverted: list[Inverted] = []
    lengths = [np.zeros(0, np.int64)]
    with (scratch / "ids.jsonl").open("w", encoding="utf-8") as ids:
        for block in blocks:
            _check_ids(block.ids, manifest.documents)
            impacts = manifest.take(block)
            stem = scratch / f"block-{len(inverted)}"
            inverted.append(_inverted(stem, impacts.vectors.tocsc(), manifest.documents))
            ids.writelines(json.dumps(each) + "\n" for each in block.ids)
            lengths.append(np.asarray(impacts.vectors.sum(axis=1, dtype=np.int64)).ravel())
            manifest = manifest.counting(impacts)
    _write_index(work / CIFF_FILE, names, inverted, scratch / "ids.jsonl", np.concatenate(lengths))
    rmtree(scratch)
    return manifest.holding(file_there(work, CIFF_FILE, manifest.documents))


def _check_ids(ids: Sequence[str], before: int) -> None:
    if before + len(ids) > MOST_DOCUMENTS:
        raise InputError("documents", f"CIFF numbers {MOST_DOCUMENTS:,} at most; export two halves")
    for document_id in ids:
        if not document_id or any(map(breaks_words, document_id)):
            raise InputError(
                repr(document_id), "readers of CIFF keep ids line by line; give it an id without white space"
            )


def _inverted(stem: Path, columns: csc_matrix, before: int) -> Inverted:
    """Impacts (documents, V) by token, on disk; `before`: how many documents come before."""
    columns.sort_indices()
    arrays = (columns.indptr, columns.indices.astype(np.int64) + before, columns.data)
    return Inverted(*(_on_disk(stem.with_suffix(f".{place}"), each) for place, each in enumerate(arrays)))


def _on_disk(path: Path, numbers: NDArray[np.integer]) -> Numbers:
    """Numbers (n,) in a file of their own; a full disk is an OSError that says so, unlike with `numpy.save`."""
    path.write_bytes(numbers.astype(np.int64).tobytes())
    return np.memmap(path, np.int64, "r") if len(numbers) else np.zeros(0, np.int64)


def _write_index(
    path: Path, names: Sequence[str], blocks: Sequence[Inverted], ids: Path, lengths: Numbers
) -> None:
    """Header, a list for each token in the order of their names, a record for each document (id, sum of impacts).

    lengths: (documents,) sums of impacts.
    """
    from ciff_toolkit.ciff_pb2 import DocRecord, Header
    from ciff_toolkit.write import CiffWriter

    totals = sum((np.diff(block.starts) for block in blocks), np.zeros(len(names), np.int64))
    order = sorted(np.flatnonzero(totals).tolist(), key=lambda token: names[token].encode())
    header = Header(
        version=1,
        num_postings_lists=len(order),
        num_docs=len(lengths),
        total_postings_lists=len(order),
        total_docs=len(lengths),
        total_terms_in_collection=int(lengths.sum()),
        average_doclength=float(lengths.mean()) if len(lengths) else 0.0,
        description=DESCRIPTION,
    )
    with path.open("wb") as file, ids.open(encoding="utf-8") as lines:
        writer = CiffWriter(file)
        writer.write_header(header)
        writer.write_postings_lists(_postings_list(names[token], blocks, token) for token in order)
        writer.write_documents(
            DocRecord(docid=number, collection_docid=json.loads(line), doclength=length)
            for number, (line, length) in enumerate(zip(lines, lengths.tolist(), strict=True))
        )


def _postings_list(name: str, blocks: Sequence[Inverted], token: int) -> "PostingsList":
    """All documents of a token, each by its distance from the one before, with their impacts."""
    from ciff_toolkit.ciff_pb2 import PostingsList

    parts = [(block, slice(block.starts[token], block.starts[token + 1])) for block in blocks]
    documents = np.concatenate([block.documents[inside] for block, inside in parts])
    impacts = np.concatenate([block.impacts[inside] for block, inside in parts])
    postings = PostingsList(term=name, df=len(documents), cf=int(impacts.sum()))
    for gap, impact in zip(np.diff(documents, prepend=0).tolist(), impacts.tolist(), strict=True):
        postings.postings.add(docid=gap, tf=impact)
    return postings


# -- the engine -----------------------------------------------------------------------------------


@contextmanager
def open_export(export: ExportFolder, url: str, documents: EncodedBatch | None) -> "Iterator[PisaIndex]":
    """PISA with a temporary index of an export."""
    export.check_holds_weights("PISA")
    with TemporaryDirectory() as scratch:
        with quiet():
            index, terms = _import_ciff(export.path / CIFF_FILE, Path(scratch))
        yield PisaIndex(export, index, terms)


class PisaIndex(ImpactEngine):
    """An export for CIFF, searched by PISA."""

    tolerance = 1e-6

    def __init__(self, export: ExportFolder, index: "IndexOfPisa", terms: list[str]) -> None:
        assert export.manifest.quantisation is not None, export.manifest.format
        super().__init__(export.manifest.quantisation)
        self.name = f"PISA (pyterrier_pisa {version('pyterrier_pisa')}, {ALGORITHM})"
        numbers = {term: number for number, term in enumerate(terms)}
        names = (escape_token(token) for token in export.tokens)
        self._terms = [_numbered(numbers[name]) if name in numbers else "" for name in names]
        self._index = index

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents with their scores in terms of weights."""
        import pandas

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
            results = search.transform(frame)
        for query_id, document_id, score in zip(
            results["qid"], results["docno"], results["score"], strict=True
        ):
            run[query_id][document_id] = self.quantisation.score(round(float(score)))
        return run

    def _known(self, columns: list[int], values: list[int]) -> dict[str, int]:
        """A query's impacts by the terms of the index, without tokens that no document has."""
        pairs = zip(columns, values, strict=True)
        return {self._terms[column]: value for column, value in pairs if self._terms[column]}


def _numbered(term: int) -> str:
    """What a term is called in PISA: its place in the file, all of one length, so that they stay in order."""
    return f"{term:010d}"


def _import_ciff(path: Path, folder: Path) -> tuple["IndexOfPisa", list[str]]:
    """A PISA index in `folder`, made from a CIFF file, and the terms that its numbers stand for."""
    import pyterrier_pisa
    from ciff_toolkit.read import CiffReader
    from pyterrier_pisa import _pisathon

    with CiffReader(path) as reader:
        header = reader.header
        terms = _write_postings(folder, reader)
        documents = list(reader.read_documents())
    _numbers([header.num_docs, *(document.doclength for document in documents)]).tofile(folder / "inv.sizes")
    names = [_numbered(number) for number in range(len(terms))]
    for name, lines in (("terms", names), ("documents", [each.collection_docid for each in documents])):
        (folder / f"fwd.{name}").write_bytes("".join(f"{line}\n" for line in lines).encode())
    _pisathon.build_binlex(str(folder / "fwd.documents"), str(folder / "fwd.doclex"))
    _pisathon.build_binlex(str(folder / "fwd.terms"), str(folder / "fwd.termlex"))
    card = {"type": "sparse_index", "format": "pisa", "package_hint": "pyterrier-pisa", "stemmer": "none"}
    (folder / "pt_meta.json").write_text(json.dumps(card))
    return pyterrier_pisa.PisaIndex(str(folder), stemmer="none", stops="none"), terms


def _write_postings(folder: Path, reader: "CiffReader") -> list[str]:
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


def _numbers(values: list[int]) -> NDArray[np.uint32]:
    return np.array(values, dtype=np.uint32)
