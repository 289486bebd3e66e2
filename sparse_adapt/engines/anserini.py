r"""Impacts for Lucene: an Anserini JsonVectorCollection, and queries as its impact search reads them.

    FOLDER/documents/part-00000.jsonl    {"id": ..., "contents": "", "vector": {"token": impact, ...}}
    FOLDER/queries.tsv                   query_id <TAB> each token, repeated as often as its impact says
    FOLDER/tokens.json, manifest.json

`documents` is what `-input` takes. Anserini writes each token `impact` times, a space after each, and Lucene
splits that text at white space: tokens keep their case, `##`, brackets, dots and accents, but one with white
space inside would fall apart. Such tokens are written with `\uXXXX` in place of the offending characters.
Documents without an impact stand in the collection, but Anserini doesn't index them. Dimensions: V vocabulary.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sparse_adapt.engines.layout import ExportLayout, ExportSource
from sparse_adapt.engines.manifest import ExportFolder
from sparse_adapt.engines.names import breaks_words, escape_token
from sparse_adapt.engines.quantise import Entries
from sparse_adapt.engines.writing import in_parts
from sparse_adapt.errors import InputError
from sparse_adapt.files.paths import free
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

if TYPE_CHECKING:  # Lucene needs Java, its files don't
    from sparse_adapt.engines.lucene import LuceneIndex

LONGEST_WORD = 255  # UTF-16 units; Lucene's WhitespaceAnalyzer cuts what is longer in two


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: a collection. Raises InputError for a token or a query id that it can't hold."""
    names = [lucene_name(token) for token in source.vectors.tokens]
    if source.queries is not None:
        _check_query_ids(source.queries)
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    return ExportLayout(
        documents=in_parts(partial(_document_lines, keys)),
        query_lines=partial(_query_lines, names),
        queries_file="queries.tsv",
    )


def how_to_load(export: ExportFolder) -> str:
    """The command that indexes an export; it says how the index is searched."""
    return shlex.join(
        ["sparse-adapt", "index", "--vectors", str(export.path), "-o", free(f"{export.path}-index")]
    )


@contextmanager
def open_export(export: ExportFolder, url: str, documents: EncodedBatch | None) -> "Iterator[LuceneIndex]":
    """Lucene with a temporary index of an export."""
    from sparse_adapt.engines.lucene import LuceneIndex
    from sparse_adapt.engines.lucene_building import build_index

    with TemporaryDirectory() as scratch:
        build_index(export.path, Path(scratch) / "index")
        with LuceneIndex(Path(scratch) / "index") as index:
            yield index


def lucene_name(token: str) -> str:
    """A token as Lucene will keep it whole (`names.escape_token`). Raises InputError for one that is too long."""
    name = escape_token(token)
    if not 0 < len(name.encode("utf-16-le")) // 2 <= LONGEST_WORD:
        raise InputError(
            repr(token[:40]), f"this token has {len(token)} characters, Lucene takes 1 to {LONGEST_WORD}"
        )
    return name


def _document_lines(keys: Sequence[str], impacts: Entries) -> Iterator[str]:
    for document_id, columns, values in impacts.rows():
        vector = ", ".join(f"{keys[column]}: {value}" for column, value in zip(columns, values, strict=True))
        key = json.dumps(document_id, ensure_ascii=False)
        yield f'{{"id": {key}, "contents": "", "vector": {{{vector}}}}}\n'


def _check_query_ids(queries: EncodedBatch) -> None:
    for query_id in queries.ids:
        if query_id.strip() != query_id or not query_id or any(map(breaks_words, query_id.replace(" ", ""))):
            raise InputError(
                repr(query_id), "this query id can't stand in a TSV file; give it a name without tabs"
            )


def _query_lines(names: Sequence[str], impacts: Entries) -> Iterator[str]:
    """One line a query that has an impact left; Anserini stops at a line without a text."""
    for query_id, columns, values in impacts.rows():
        words = (
            name for column, value in zip(columns, values, strict=True) for name in [names[column]] * value
        )
        if columns:
            yield f"{query_id}\t{' '.join(words)}\n"
