"""The manifest of an export says in plain words what the export cost."""

import numpy as np
from odd import export, stamp_of
from scipy.sparse import csr_matrix

from sparse_adapt.plugins.engines.manifest import ExportManifest, remarks
from sparse_adapt.plugins.engines.quantise import Quantisation
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

ROWS = np.array([[1.25, 0.004, 70_000], [0.001, 0, 0], [0, 0, 0]], np.float32)
BLOCK = EncodedBatch(["d0", "d1", "d2"], csr_matrix(ROWS))


def test_impacts_are_told(tmp_path):
    scale = Quantisation(largest=255)
    manifest = export("anserini", tmp_path / "out", ["a", "b", "c"], BLOCK, queries=BLOCK, quantisation=scale)
    assert list(remarks(manifest)) == [
        "weights are stored as whole numbers: weight x 100, rounded",
        "left out, because they are below 0.005: 2 of 4 weights",
        "cut to 2.55, the largest that is stored: 1 of 4 weights",
        "found by no search, because no weight is left: 2 of 3 documents",
        "left out, because no weight is left: 2 of 3 queries",
    ]


def test_floats_are_told(tmp_path):
    manifest = export("seismic", tmp_path / "out", ["a", "b", "c"], BLOCK)
    assert list(remarks(manifest)) == [
        "weights are stored as they are",
        "cut to 65,504, the largest that is stored: 1 of 4 weights",
        "found by no search, because no weight is left: 1 of 3 documents",
    ]
    nothing_lost = EncodedBatch(["d0"], csr_matrix(ROWS[:1]))
    assert len(list(remarks(export("qdrant", tmp_path / "qdrant", ["a", "b", "c"], nothing_lost)))) == 1


def test_an_encoder_is_told():
    facts = {"largest_difference": 1.42e-6, "bound": 1e-4, "renamed_tokens": 1_200}
    assert list(remarks(ExportManifest(format="opensearch-model", model=stamp_of(["a"]), facts=facts))) == [
        "weights differ from PyTorch's by 1.4e-06 at most; 0.0001 is allowed",
        "1,200 tokens have another name there than in an export of vectors; fill an index from one of the two",
    ]
