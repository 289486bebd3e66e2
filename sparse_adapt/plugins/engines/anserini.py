r"""Impacts for Lucene: an Anserini JsonVectorCollection, and queries as its impact search reads them.

    FOLDER/documents/part-00000.jsonl    {"id": ..., "contents": "", "vector": {"token": impact, ...}}
    FOLDER/queries.tsv                   query_id <TAB> each token, repeated as often as its impact says
    FOLDER/tokens.json, manifest.json

`documents` is what `-input` takes. Anserini writes each token `impact` times, a space after each, and Lucene
splits that text at white space: tokens keep their case, `##`, brackets, dots and accents, but one with white
space inside would fall apart. Such tokens are written with `\uXXXX` in place of the offending characters.
Documents without an impact stand in the collection, but Anserini doesn't index them. Dimensions: V vocabulary.
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sparse_adapt.errors import InputError
from sparse_adapt.files.place import Place, free
from sparse_adapt.plugins.engines.java import OLDEST_JAVA, missing_for_pyserini
from sparse_adapt.plugins.engines.layout import (
    ExportLayout,
    ExportSource,
    StoredText,
    breaks_words,
    in_parts,
    json_object,
    json_string,
)
from sparse_adapt.plugins.engines.lucene import LuceneIndex, build_index, lucene_name
from sparse_adapt.plugins.engines.manifest import ExportFolder
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

PYSERINI_INDEX = (
    *("python", "-m", "pyserini.index.lucene", "--collection", "JsonVectorCollection"),
    *("--generator", "DefaultLuceneDocumentGenerator", "--impact", "--pretokenized"),
)


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: a collection. Raises InputError for a token or a query id that it can't hold."""
    names = [lucene_name(token) for token in source.vectors.tokens]
    if source.queries is not None:
        _check_query_ids(source.queries)
    keys = [json_string(name) for name in names]

    def document_line(text: StoredText) -> str:
        return f'{{"id": {json_string(text.text_id)}, "contents": "", "vector": {json_object(keys, text)}}}\n'

    def query_line(text: StoredText) -> str:
        pairs = zip(text.columns, text.weights, strict=True)
        words = (" ".join([names[column]] * int(impact)) for column, impact in pairs)
        return f"{text.text_id}\t{' '.join(words)}\n"

    return ExportLayout(documents=in_parts(document_line), query_line=query_line, queries_file="queries.tsv")


def how_to_load(export: ExportFolder) -> str:
    """The command that indexes an export, and Pyserini's own, or what they miss in the Java of this machine."""
    index = free(f"{export.path}-index")
    ours = ["sparse-adapt", "index", "--vectors", str(export.path), "-o", index]
    theirs = [*PYSERINI_INDEX, "--input", f"{export.path}/documents", "--index", index]
    missing = missing_for_pyserini()
    by_pyserini = (
        f"# Pyserini's own commands need a JDK of {OLDEST_JAVA} or newer in JAVA_HOME: {missing}"
        if missing
        else f"# or by Pyserini itself\n{shlex.join(theirs)}"
    )
    return f"{shlex.join(ours)}\n{by_pyserini}"


@contextmanager
def open_export(export: ExportFolder, url: str, documents: EncodedBatch | None) -> Iterator[LuceneIndex]:
    """Lucene with a temporary index of an export."""
    with TemporaryDirectory() as scratch:
        build_index(export.path, Place(Path(scratch) / "index"))
        with LuceneIndex(Path(scratch) / "index") as index:
            yield index


def _check_query_ids(queries: EncodedBatch) -> None:
    for query_id in queries.ids:
        if query_id.strip() != query_id or not query_id or any(map(breaks_words, query_id.replace(" ", ""))):
            raise InputError(
                repr(query_id), "this query id can't stand in a TSV file; give it a name without tabs"
            )
