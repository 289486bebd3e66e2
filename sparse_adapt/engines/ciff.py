r"""Impacts as a Common Index File Format file, which PISA, JASS, Lucene and others read, and PISA with it.

    FOLDER/index.ciff      what `ciff_file` describes
    FOLDER/queries.jsonl   {"id": ..., "vector": {"token": impact, ...}}
    FOLDER/tokens.json, manifest.json

Tokens come in the order of their UTF-8 bytes; white space and control characters in them are written as
`\uXXXXXX` (`names.escape_token`), since readers keep terms line by line.

PISA is opened with an export (Mallia, Siedlaczek, Mackenzie and Suel 2019): the file is read with ciff-toolkit and
laid out as PISA's uncompressed inverted index, which is what a CIFF importer does; PISA then compresses and
searches it with its `quantized` scorer, which multiplies impacts. Terms are numbered, since PISA makes those of a
query lower case and would not find `[SEP]` or `Ünï` by name. PISA sums in float32, exact for whole scores up to
16,777,216. Dimensions: V vocabulary.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sparse_adapt.collection.readers import Run
from sparse_adapt.engines.ciff_file import CIFF_FILE, write_ciff
from sparse_adapt.engines.layout import ExportLayout, ExportSource
from sparse_adapt.engines.lines import json_string, vector_lines
from sparse_adapt.engines.manifest import ExportFolder
from sparse_adapt.engines.names import escape_token
from sparse_adapt.engines.opened import ImpactEngine, quiet
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

ALGORITHM = "block_max_wand"


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: one CIFF file, and queries as lines of JSON."""
    names = [escape_token(token) for token in source.vectors.tokens]
    keys = [json_string(name) for name in names]
    return ExportLayout(documents=partial(write_ciff, names), query_lines=partial(vector_lines, keys))


def how_to_load(export: ExportFolder) -> str:
    """Python that opens the file, and the command that has PISA search it."""
    model = export.manifest.model.name or "MODEL"
    return (
        "from ciff_toolkit.read import CiffReader\n"
        f"print(CiffReader({str(export.path / CIFF_FILE)!r}).header)\n"
        f"# sparse-adapt check-export {export.path} --model {model} --corpus CORPUS --queries QUERIES"
    )


@contextmanager
def open_export(export: ExportFolder, url: str, documents: EncodedBatch | None) -> "Iterator[PisaIndex]":
    """PISA with a temporary index of an export."""
    export.check_holds_weights("PISA")
    with TemporaryDirectory() as scratch:
        with quiet():
            index, terms = import_ciff(export.path / CIFF_FILE, Path(scratch))
        yield PisaIndex(export, index, terms)


class PisaIndex(ImpactEngine):
    """An export for CIFF, searched by PISA."""

    tolerance = 1e-6

    def __init__(self, export: ExportFolder, index: Any, terms: list[str]) -> None:  # noqa: ANN401
        assert export.manifest.quantisation is not None, export.manifest.format
        super().__init__(export.manifest.quantisation)
        self.name = f"PISA (pyterrier_pisa {version('pyterrier_pisa')}, {ALGORITHM})"
        numbers = {term: number for number, term in enumerate(terms)}
        names = (escape_token(token) for token in export.tokens)
        self._terms = [numbered(numbers[name]) if name in numbers else "" for name in names]
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
            found = search.transform(frame)
        for query_id, document_id, score in zip(found["qid"], found["docno"], found["score"], strict=True):
            run[query_id][document_id] = self.quantisation.score(round(float(score)))
        return run

    def _known(self, columns: list[int], values: list[int]) -> dict[str, int]:
        """A query's impacts by the terms of the index, without tokens that no document has."""
        pairs = zip(columns, values, strict=True)
        return {self._terms[column]: value for column, value in pairs if self._terms[column]}


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
