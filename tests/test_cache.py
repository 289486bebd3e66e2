"""Arrays in files: there whole or not at all; a matrix is sound, or refused, for compiled code follows its numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random

from sparse_adapt.errors import OutputError
from sparse_adapt.files.cache import cached_arrays, cached_vectors, keep_arrays, keep_vectors, sound_csr

ROWS, COLUMNS = 3, 5
SOUND = {
    "indptr": np.array([0, 2, 2, 3], np.int64),
    "indices": np.array([1, 4, 0], np.int32),
    "data": np.array([0.5, 2.0, 0.0], np.float32),
}
UNSOUND = {
    "indices": [
        ([1, COLUMNS + 5, 0], "names columns beyond the 5"),
        ([1, COLUMNS, 0], "names columns beyond the 5"),
        ([1, 2**31 - 1, 0], "names columns beyond the 5"),
        ([-1, 4, 0], "names columns beyond the 5"),
        ([4, 1, 0], "columns stand twice in a row, or out of order"),
        ([1, 1, 0], "columns stand twice in a row, or out of order"),
        ([1, 4], "don't fit its weights"),
        ([1.0, 4.0, 0.0], "indices isn't a row of integer values"),
        ([[1, 4, 0]], "indices isn't a row of integer values"),
    ],
    "indptr": [
        ([0, -(10**9), 2, 3], "don't fit its weights"),
        ([0, 2, 1, 3], "don't fit its weights"),
        ([0, 2, 2, 2], "don't fit its weights"),
        ([0, 2, 2, 10**12], "don't fit its weights"),
        ([1, 2, 2, 3], "its rows aren't 3"),
        ([0, 2, 3], "its rows aren't 3"),
        ([0, 2, 2, 3, 3], "its rows aren't 3"),
        (np.array([0, 2**64 - 1, 2, 3], np.uint64), "don't fit its weights"),
    ],
    "data": [
        ([0.5, np.nan, 0.0], "negative or no numbers"),
        ([0.5, np.inf, 0.0], "negative or no numbers"),
        ([0.5, -1.0, 0.0], "negative or no numbers"),
        ([0.5, 2.0], "don't fit its weights"),
        ([1, 2, 3], "data isn't a row of floating values"),
    ],
}


@given(st.lists(st.lists(st.floats(0, 9, width=32), min_size=3, max_size=3), min_size=1, max_size=5))
def test_sparse_vectors_come_back_as_they_were(tmp_path_factory, rows):
    vectors = csr_matrix(np.array(rows, np.float32))
    path = tmp_path_factory.mktemp("kept") / "vectors.safetensors"
    keep_vectors(path, vectors)
    back = cached_vectors(path)
    assert back is not None and back.shape == vectors.shape
    assert np.array_equal(back.toarray(), vectors.toarray())
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_what_is_absent_or_broken_is_none(tmp_path):
    assert cached_arrays(tmp_path / "none") is None
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"\x08\x00\x00")
    assert cached_arrays(broken) is None and cached_vectors(broken) is None
    keep_arrays(broken, {"other": np.zeros(2, np.float32)})
    assert cached_vectors(broken) is None


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("here")
    with pytest.raises(OutputError, match="can't be written"):
        keep_arrays(tmp_path / "file" / "vectors", {"a": np.zeros(1)})


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [(name, values, problem) for name, cases in UNSOUND.items() for values, problem in cases],
)
def test_what_is_unsound_is_refused(name, values, problem):
    with pytest.raises(ValueError, match=problem):
        sound_csr({**SOUND, name: np.asarray(values)}, ROWS, COLUMNS)


@pytest.mark.parametrize("name", SOUND)
def test_what_is_missing_is_named(name):
    arrays = {key: values for key, values in SOUND.items() if key != name}
    with pytest.raises(ValueError, match=f"it has no {name}"):
        sound_csr(arrays, ROWS, COLUMNS)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 9), st.integers(1, 9))
def test_what_is_sound_comes_back_as_it_was(seed, rows, columns):
    matrix = random(rows, columns, density=0.4, random_state=seed, format="csr", dtype=np.float32)
    matrix.sort_indices()
    back = sound_csr({name: getattr(matrix, name) for name in SOUND}, rows, columns)
    assert back.shape == matrix.shape and back.dtype == np.float32
    assert np.array_equal(back.toarray(), matrix.toarray())


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_whatever_is_accepted_can_be_searched(data):
    """Any numbers at all: either refused, or what compiled code may follow."""
    whole = st.sampled_from([-(10**9), -1, 0, 1, 2, 3, 4, 5, 10, 2**31 - 1])
    arrays = {
        "indptr": np.array(data.draw(st.lists(whole, min_size=3, max_size=5)), np.int64),
        "indices": np.array(data.draw(st.lists(whole, max_size=4)), np.int32),
        "data": np.array(data.draw(st.lists(st.floats(width=32), max_size=4)), np.float32),
    }
    try:
        matrix = sound_csr(arrays, ROWS, COLUMNS)
    except ValueError:
        return
    matrix.check_format(full_check=True)
    assert (matrix.data >= 0).all() and np.isfinite(matrix.data).all()
    assert matrix.indices.size == 0 or 0 <= matrix.indices.min() <= matrix.indices.max() < COLUMNS
