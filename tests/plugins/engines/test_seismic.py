"""Seismic: what it would cut is refused, and many tokens go to its large index."""

import numpy as np
import pytest
from odd import export
from scipy.sparse import csr_matrix

from sparse_adapt.errors import InputError
from sparse_adapt.plugins.engines.formats import open_engine
from sparse_adapt.plugins.engines.manifest import read_export
from sparse_adapt.plugins.engines.seismic import how_to_load
from sparse_adapt.retrieve.vectors.folder import EncodedBatch


def test_seismic_needs_its_large_index_above_65536_tokens(tmp_path):
    tokens = [f"t{column}" for column in range(70_000)]
    rows = csr_matrix(([1.0, 2.0, 70_000.0], ([0, 1, 1], [3, 69_999, 65_539])), shape=(2, 70_000))
    manifest = export("seismic", tmp_path / "out", tokens, EncodedBatch(["low", "high"], rows))
    assert (manifest.facts["index"], manifest.clipped) == ("SeismicIndexLV", 1)  # 70,000 is beyond float16
    assert "SeismicIndexLV.build(" in how_to_load(read_export(tmp_path / "out"))
    queries = csr_matrix(([1.0, 1.0], ([0, 1], [3, 65_539])), shape=(2, 70_000))
    with open_engine("seismic", tmp_path / "out") as engine:
        run = engine.search_all(EncodedBatch(["q0", "q1"], queries), 5)
    assert run == {"q0": {"low": 1.0}, "q1": {"high": 65_504.0}}  # 65,539 is not taken for 3


@pytest.mark.parametrize("token", ["x" * 10_000, "x" * 101, "a\0b", ""])
def test_seismic_refuses_a_token_that_it_would_cut(token, tmp_path):
    with pytest.raises(InputError, match=f"this token has {len(token):,} characters; Seismic takes 1 to 100"):
        export("seismic", tmp_path / "out", ["a", token], EncodedBatch(["d0", "d1"], csr_matrix(np.eye(2))))
    assert list(tmp_path.iterdir()) == []
