"""Vectors to export by hand, few to read in a file and others that are hard on an engine, and how they must rank.

Hard are odd names, texts without an entry, weights at the ends of float32.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sparse_adapt.files.marker import checksum_of_bytes
from sparse_adapt.files.place import Place
from sparse_adapt.plugins.engines.engine import Engine
from sparse_adapt.plugins.engines.layout import ExportSource
from sparse_adapt.plugins.engines.manifest import ExportManifest
from sparse_adapt.plugins.engines.quantise import Quantisation
from sparse_adapt.plugins.engines.writing import write_export
from sparse_adapt.retrieve.search import search
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors
from sparse_adapt.retrieve.vectors.manifest import ModelStamp

TOKENS = ["a", "node.js", "supply chain"]
BLOCK = EncodedBatch(
    ["d1", 'd"2', "d3"], csr_matrix(np.array([[0.1, 0, 2], [0, 0, 0], [0, 1 / 3, 0]], np.float32))
)
QUERIES = EncodedBatch(["q1", "q2"], csr_matrix(np.array([[0, 1.5, 0.25], [0, 0, 0]], np.float32)))

ODD_TOKENS = [
    "node.js",
    "node_js",
    "node__js",
    "node\\u00002ejs",
    ".",
    "..",
    "supply chain",
    'say "hi"',
    "it's",
]
ODD_TOKENS += ["\\", "a\tb", "\x00", "\x1b[0m", "\x7f", "\u2028", "\ufffe", "naïve", "日本", "𝄞", "##ing"]
ODD_TOKENS += [
    "[PAD]",
    "{token:a}",
    "a,b:c",
    "cells",
    "weights",
    "_id",
    " ",
    "\u00a0",
    "x" * 10_000,
    "x" * 9_999,
]
ODD_IDS = ["d1", "d.2", 'd"3', "d 4/?#&", "d5\\", "日本", "d7\t", "d8", "d9", "d10"]
SHORT_ODD_TOKENS = [
    "two words",
    'quo"te',
    "it's",
    "back\\slash",
    "tab\there",
    "line\nfeed",
    "日本",
    "node.js",
]
SHORT_ODD_TOKENS += ["\\u000020", "Node.js", "[SEP]"]
EMPTY_ROWS = (3, 8)


def stamp_of(tokens: list[str]) -> ModelStamp:
    """A model by hand that has these tokens."""
    vocabulary = checksum_of_bytes(json.dumps(tokens).encode())
    return ModelStamp(
        name="by hand",
        weights_sha256="0",
        vocabulary_sha256=vocabulary,
        vocabulary_size=len(tokens),
        max_tokens=256,
    )


def vectors_of(tokens: list[str], *blocks: EncodedBatch) -> Vectors:
    return Vectors(stamp_of(tokens), tokens, list(blocks))


def export(
    name: str,
    folder: Path,
    tokens: list[str],
    *blocks: EncodedBatch,
    queries: EncodedBatch | None = None,
    quantisation: Quantisation | None = None,
) -> ExportManifest:
    """Write an export of some blocks for an engine."""
    source = ExportSource(vectors_of(tokens, *blocks), queries)
    return write_export(name, source, Place(folder), quantisation).manifest


def odd_documents() -> EncodedBatch:
    """Ten documents in all odd tokens, two of them empty, every token in at least one."""
    generator = np.random.default_rng(20)
    dense = generator.random((len(ODD_IDS), len(ODD_TOKENS))) * (
        generator.random((10, len(ODD_TOKENS))) < 0.4
    )
    dense[0], dense[1, 0] = np.linspace(0.1, 3.1, len(ODD_TOKENS)), 1e-6
    dense[list(EMPTY_ROWS)] = 0
    return EncodedBatch(list(ODD_IDS), csr_matrix(dense.astype(np.float32)))


def odd_queries() -> EncodedBatch:
    """Each odd token by itself, then all at once, then none."""
    rows = np.vstack(
        [np.eye(len(ODD_TOKENS)), np.full((1, len(ODD_TOKENS)), 0.7), np.zeros((1, len(ODD_TOKENS)))]
    )
    return EncodedBatch([f"q{row}" for row in range(len(rows))], csr_matrix(rows.astype(np.float32)))


def export_odd(name: str, folder: Path) -> Path:
    """Write an export of the odd documents and queries for an engine; its folder."""
    export(name, folder, ODD_TOKENS, odd_documents(), queries=odd_queries())
    return folder


def check_ranking(engine: Engine) -> None:
    """That an engine ranks the odd documents as exact search does the vectors that it keeps."""
    documents, queries = odd_documents(), odd_queries()
    exact = search(
        engine.query_weights(queries), queries.ids, engine.document_weights(documents), documents.ids, 10
    )
    run = engine.search_all(queries, 10)
    assert run.keys() == exact.keys()
    for query_id, found in run.items():
        assert found == pytest.approx(exact[query_id], rel=engine.tolerance)
        assert list(found.values()) == sorted(found.values(), reverse=True)
    assert run[queries.ids[-1]] == {}  # the query without an entry


def check_exact(engine: Engine) -> None:
    """That an engine keeps the odd documents and reads the odd queries as they are."""
    documents, queries = odd_documents(), odd_queries()
    assert (engine.document_weights(documents) != documents.vectors).nnz == 0
    assert (engine.query_weights(queries) != queries.vectors).nnz == 0


def vouch_anew(folder: Path) -> None:
    """Have a manifest vouch for its parts as they are now, after a test has spoilt one."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for part in manifest["parts"]:
        part["sha256"] = checksum_of_bytes((folder / part["path"]).read_bytes())
    path.write_text(json.dumps(manifest), encoding="utf-8")
