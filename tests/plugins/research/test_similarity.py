"""Graded pairs: reading them, cosines of either kind of encoder, rank correlation."""

from pathlib import Path

import numpy as np
import pytest
from dense_models import tiny_dense

from sparse_adapt.errors import InputError
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.plugins.research.similarity import (
    Likeness,
    cases,
    correlation,
    cosines,
    read_graded,
    read_likenesses,
    spearman,
)
from sparse_adapt.retrieve.encode import encode


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_spearman_by_hand():
    assert spearman(array(0.1, 0.5, 0.9), array(1, 2, 30)) == pytest.approx(1.0)
    assert spearman(array(0.9, 0.5, 0.1), array(1, 2, 30)) == pytest.approx(-1.0)
    # ranks 1 3 2 4 against 1 2 3 4: 1 - 6 (0 + 1 + 1 + 0) / (4 (16 - 1))
    assert spearman(array(0, 2, 1, 3), array(1, 2, 3, 4)) == pytest.approx(1 - 12 / 60)
    assert spearman(array(1, 1, 1), array(1, 2, 3)) == 0.0


def test_spearman_sees_order_only():
    random = np.random.default_rng(0)
    found, wanted = random.random(30), random.random(30)
    assert spearman(np.exp(5 * found), wanted**3) == pytest.approx(spearman(found, wanted))


def test_an_interval_holds_the_value_and_a_model_gains_nothing_over_itself():
    random = np.random.default_rng(1)
    wanted = random.random(60)
    found = wanted + 0.3 * random.random(60)
    whole = correlation(found, wanted)
    assert whole.low < whole.value < whole.high
    assert correlation(found, wanted, found) == (0.0, 0.0, 0.0)
    worse = correlation(random.random(60), wanted, found)
    assert worse.high < 0


def test_candidates_of_a_query_stand_together_by_their_labels():
    pairs = [
        Likeness("q", "other", 0),
        Likeness("alone", "x", 2),
        Likeness("q", "same", 2),
        Likeness("q", "near", 1),
    ]
    rows = cases(pairs, {"model": array(0.1, 0.9, 0.8, 0.6), "baseline": array(0.4, 0.9, 0.5, 0.7)})
    assert [tuple(row.values()) for row in rows] == [
        ("q", "same", 2, 0.8, 0.5),
        ("q", "near", 1, 0.6, 0.7),
        ("q", "other", 0, 0.1, 0.4),
    ]


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_cosines_are_those_of_the_vectors(tiny_model, tmp_path, kind):
    place = tiny_model if kind == "sparse" else tiny_dense(tiny_model, tmp_path / "dense")
    encoder = load_encoder(place)
    firsts = ["the server sends a log", "a saw", "a saw"]
    seconds = ["the client sends a log", "a saw", "the report of the team"]
    found = cosines(encoder, firsts, seconds)
    assert found[1] == pytest.approx(1.0)
    for row, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        if kind == "sparse":
            left, right = encode(encoder, [first, second], "document").toarray()
        else:
            left, right = encoder.encode([first, second])
        cosine = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
        assert found[row] == pytest.approx(cosine, abs=1e-5)


def test_pairs_are_read_with_a_header_and_without(tmp_path: Path):
    path = tmp_path / "pairs.tsv"
    pairs = [Likeness("a", "b", 4.5), Likeness("c d", "e", 0.0)]
    path.write_text("4.5\ta\tb\n0\tc d\te\n")
    assert list(read_likenesses(path)) == pairs
    path.write_text("Score\tfirst\tsecond\n4.5\ta\tb\n\n0\tc d\te\n")
    assert list(read_likenesses(path)) == pairs


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("4\ta\tb\n3\ta\n", ":2: needs columns with tabs between: similarity, text, text (found: 2)"),
        ("4\ta\tb\nhigh\ta\tb\n", ":2: needs a number as similarity (found: high)"),
        ("nan\ta\tb\n", ":1: needs a number as similarity (found: nan)"),
        ("4\ta\t \n", ":1: a text is empty"),
        ("4\ta\tb\n3\ta\tc\n", "holds 2 pairs; a correlation needs at least 3"),
        ("4\ta\tb\n4\ta\tc\n4\tb\tc\n", "all pairs are equally similar"),
        ("", "holds no pairs"),
    ],
)
def test_a_bad_file_is_named(tmp_path, text, problem):
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_graded(path)
    assert problem in str(caught.value)
