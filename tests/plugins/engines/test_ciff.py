"""CIFF: read back by another reader, and PISA ranks it as exact search does."""

from pathlib import Path

import numpy as np
import pytest
from ciff_toolkit.read import CiffReader
from hypothesis import given, settings
from hypothesis import strategies as st
from odd import SHORT_ODD_TOKENS, export
from scipy.sparse import csr_matrix, random

from sparse_adapt.errors import InputError
from sparse_adapt.plugins.engines.formats import open_engine
from sparse_adapt.plugins.engines.layout import unescape_token
from sparse_adapt.plugins.engines.manifest import read_export_manifest
from sparse_adapt.plugins.engines.quantise import Quantisation
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

TOKENS = [*SHORT_ODD_TOKENS, "\x00nul", "b", "a"]
LONG = "x" * 10_000


def read_ciff(path: Path) -> tuple[list[str], np.ndarray, list[str]]:
    """Terms, impacts (documents, terms) and ids, as another reader finds them."""
    with CiffReader(path) as reader:
        lists = list(reader.read_postings_lists())
        documents = list(reader.read_documents())
        impacts = np.zeros((len(documents), len(lists)), np.int64)
        for column, postings in enumerate(lists):
            rows = np.cumsum([posting.docid for posting in postings.postings])
            impacts[rows, column] = [posting.tf for posting in postings.postings]
            assert (postings.df, postings.cf) == (len(rows), impacts[:, column].sum())
        assert [document.doclength for document in documents] == impacts.sum(axis=1).tolist()
        assert reader.header.num_docs == reader.header.total_docs == len(documents)
        assert reader.header.total_terms_in_collection == impacts.sum()
    return [postings.term for postings in lists], impacts, [each.collection_docid for each in documents]


def test_ciff_by_hand(tmp_path):
    rows = np.array([[0, 1.5, 0], [0.02, 0, 0], [0, 9.0, 0.004]], dtype=np.float32)
    blocks = [EncodedBatch(["a", "b"], csr_matrix(rows[:2])), EncodedBatch(["c"], csr_matrix(rows[2:]))]
    tokens, scale = ["zeta", "alpha", "mid"], Quantisation(largest=255)
    manifest = export("ciff", tmp_path / "out", tokens, *blocks, quantisation=scale)
    # 1.5 -> 150; 0.02 -> 2; 9.0 -> 900, clipped to 255; 0.004 -> 0.4, dropped, so "mid" has no list
    assert read_ciff(tmp_path / "out/index.ciff")[0] == ["alpha", "zeta"]
    assert read_ciff(tmp_path / "out/index.ciff")[1].tolist() == [[150, 0], [0, 2], [255, 0]]
    assert read_ciff(tmp_path / "out/index.ciff")[2] == ["a", "b", "c"]
    assert (manifest.entries, manifest.dropped, manifest.clipped, manifest.documents) == (3, 1, 1, 3)
    assert read_export_manifest(tmp_path / "out", "ciff") == manifest
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "index.ciff",
        "manifest.json",
        "sparse-adapt.json",
        "tokens.json",
    ]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([1, 3, 40]))
def test_ciff_reads_back_and_is_what_protobuf_writes(tmp_path_factory, seed, documents, a_block):
    matrix = random(documents, 14, density=0.3, random_state=seed, format="csr", dtype=np.float32)
    matrix.data = (matrix.data**6 * 650).astype(np.float32)  # impacts of one, two and three bytes
    blocks = [
        EncodedBatch(
            [f"d{row}" for row in range(first, min(first + a_block, documents))],
            matrix[first : first + a_block],
        )
        for first in range(0, documents, a_block)
    ]
    folder = tmp_path_factory.mktemp("ciff") / "out"
    export("ciff", folder, TOKENS, *blocks)
    terms, impacts, ids = read_ciff(folder / "index.ciff")
    expected = np.minimum(np.rint(matrix.toarray().astype(np.float64) * 100), 65_535)
    kept = [column for column in range(14) if expected[:, column].any()]
    assert sorted(unescape_token(term) for term in terms) == sorted(TOKENS[column] for column in kept)
    assert terms == sorted(terms, key=str.encode)
    assert ids == [f"d{row}" for row in range(documents)]
    for place, term in enumerate(terms):
        assert impacts[:, place].tolist() == expected[:, TOKENS.index(unescape_token(term))].tolist()
    stored = (folder / "index.ciff").read_bytes()
    with CiffReader(folder / "index.ciff") as reader:
        assert all(postings.SerializeToString() in stored for postings in reader.read_postings_lists())


@pytest.mark.parametrize("document_id", ["a b", "a\nb", ""])
def test_ciff_refuses_an_id_that_its_readers_cut(document_id, tmp_path):
    with pytest.raises(InputError, match="readers of CIFF keep ids line by line"):
        export("ciff", tmp_path / "out", ["a"], EncodedBatch([document_id], csr_matrix([[1.0]])))
    assert list(tmp_path.iterdir()) == []


def test_a_token_of_10000_characters_is_found(tmp_path):
    documents = EncodedBatch(["d0", "d1"], csr_matrix(np.eye(2)))
    export("ciff", tmp_path / "out", ["a", LONG], documents)
    with open_engine("ciff", tmp_path / "out") as engine:
        run = engine.search_all(EncodedBatch(["q"], csr_matrix([[0.0, 1.0]])), 5)
    assert run == {"q": {"d1": 1.0}}
