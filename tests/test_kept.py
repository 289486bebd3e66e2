"""Files that are there whole or not at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from sparse_adapt.errors import OutputError
from sparse_adapt.files.kept import keep_arrays, keep_vectors, kept_arrays, kept_vectors


@given(st.lists(st.lists(st.floats(0, 9, width=32), min_size=3, max_size=3), min_size=1, max_size=5))
def test_sparse_vectors_come_back_as_they_were(tmp_path_factory, rows):
    vectors = csr_matrix(np.array(rows, np.float32))
    path = tmp_path_factory.mktemp("kept") / "vectors.safetensors"
    keep_vectors(path, vectors)
    back = kept_vectors(path)
    assert back is not None and back.shape == vectors.shape
    assert np.array_equal(back.toarray(), vectors.toarray())
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_what_is_absent_or_broken_is_none(tmp_path):
    assert kept_arrays(tmp_path / "none") is None
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"\x08\x00\x00")
    assert kept_arrays(broken) is None and kept_vectors(broken) is None
    keep_arrays(broken, {"other": np.zeros(2, np.float32)})
    assert kept_vectors(broken) is None


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("here")
    with pytest.raises(OutputError, match="can't be written"):
        keep_arrays(tmp_path / "file" / "vectors", {"a": np.zeros(1)})
