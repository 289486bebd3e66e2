"""Groups of texts: matrices and accuracies by hand, files that can't be used, and the command."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import refused
from dense_models import tiny_dense
from scipy.sparse import csr_matrix

from sparse_adapt.errors import InputError, MissingExtraError
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.plugins.research.groups import (
    GroupedText,
    compare_groups,
    measure_groups,
    read_members,
    v_measure,
)
from sparse_adapt.plugins.research.groups_report import apart, group_tables, plot_groups

LINES = [
    {"group": "spending", "text": "zorvex reports", "seen": True},
    {"group": "spending", "text": "what a team spent with its plan", "seen": False},
    {"group": "backup", "text": "a nightly copy of the database", "seen": True},
    {"group": "backup", "text": "the second server has the backup", "seen": True},
    {"group": "wood", "text": "a saw and a plane"},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "groups.jsonl", LINES)


def write(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def members(groups: str, seen: str = "") -> list[GroupedText]:
    flags = {"s": True, "u": False, "-": None}
    return [
        GroupedText(group, f"text {number}", flags[seen[number]] if seen else None)
        for number, group in enumerate(groups)
    ]


def test_matrices_by_hand():
    vectors = csr_matrix(np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [3.0, 4.0, 0.0]]))
    found = compare_groups(vectors, members("aab"))
    # of length 1: (1, 0), (0, 1) and (.6, .8); the third dimension is in no group and doesn't count
    assert found.names == ("a", "b")
    assert found.sizes == (2, 1)
    # means (.5, .5) and (.6, .8): (.1 + .3) / 2
    assert np.array(found.difference) == pytest.approx(np.array([[0.0, 0.2], [0.2, 0.0]]))
    assert found.mean_difference == pytest.approx(0.1)  # of four entries
    assert group_tables({"one": found})[0].rows[0]["mean_difference"] == found.mean_difference
    assert found.similarity[0][0] == pytest.approx(0.0)  # one pair within a, at a right angle
    assert found.similarity[0][1] == found.similarity[1][0] == pytest.approx((0.6 + 0.8) / 2)
    assert found.similarity[1][1] is None
    assert (found.within, found.between) == (pytest.approx(0.0), pytest.approx(0.7))


def test_accuracies_by_hand():
    angles = np.radians([0, 10, 25, 90, 14])  # a, b, a, b, c
    vectors = csr_matrix(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    found = compare_groups(vectors, members("ababc", "suus-")).found
    # 0 deg: 10 b, 14 c, 25 a: third; 10: 14 c, 0 a, 25 a, 90 b: fourth; 25: 14 c, 10 b, 0 a: third
    # 90: 25 a, 14 c, 10 b: third; c alone isn't asked for
    assert found["all"].queries == 4
    assert found["all"].found == {1: 0.0, 3: 0.75, 5: 1.0}
    assert (found["seen"].queries, found["unseen"].queries) == (2, 2)
    assert found["seen"].found == {1: 0.0, 3: 1.0, 5: 1.0}
    assert found["unseen"].found == {1: 0.0, 3: 0.5, 5: 1.0}
    # which share of them: one of three for three of the four queries, one of the four others there are for all
    assert found["all"].accuracy == pytest.approx({1: 0.0, 3: 0.25, 5: 0.25})
    assert found["unseen"].accuracy == pytest.approx({1: 0.0, 3: 1 / 6, 5: 0.25})


def test_a_share_may_fall_where_one_of_them_is_found_more_often():
    angles = np.radians([0, 1, 50, 51, 2])
    vectors = csr_matrix(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    found = compare_groups(vectors, members("aabba")).found["all"]
    # each of the three a finds both others first; each b the other b, then a, a, a
    assert found.accuracy == pytest.approx(
        {1: 1.0, 3: (3 * 2 / 3 + 2 * 1 / 3) / 5, 5: (3 * 0.5 + 2 * 0.25) / 5}
    )
    assert found.found == {1: 1.0, 3: 1.0, 5: 1.0}


def test_texts_of_the_same_entity_are_not_what_is_found():
    angles = np.radians([0, 1, 20, 5])
    vectors = csr_matrix(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    texts = [
        GroupedText("a", "x", entity="e"),
        GroupedText("a", "y", entity="e"),
        GroupedText("a", "z"),
        *members("b"),
    ]
    found = compare_groups(vectors, texts)
    # x and y are of one entity: nearest of what is left is b, then z; z finds b, then y
    assert found.found["all"].queries == 3
    assert found.found["all"].accuracy == pytest.approx(
        {1: 0.0, 3: (0.5 + 0.5 + 2 / 3) / 3, 5: (0.5 + 0.5 + 2 / 3) / 3}
    )
    assert [each.candidate for each in found.nearest] == ["text 0", "text 0", "text 0", "y"]
    alone = compare_groups(
        vectors[:2], [GroupedText("a", "x", entity="e"), GroupedText("a", "y", entity="e")]
    )
    assert (alone.found["all"].queries, alone.nearest) == (0, ())


def test_one_text_may_be_of_two_groups(tmp_path):
    lines = [{"group": "a", "text": "Falcon", "entity": "f"}, {"group": "b", "text": "Falcon"}, *LINES[:2]]
    found = read_members(write(tmp_path / "groups.jsonl", lines))
    assert [(each.group, each.text, each.entity) for each in found[:2]] == [
        ("a", "Falcon", "f"),
        ("b", "Falcon", None),
    ]


def test_anisotropy_by_hand():
    vectors = csr_matrix(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]))
    assert compare_groups(vectors, members("aab")).anisotropy == pytest.approx((0 + 0.6 + 0.8) / 3)
    same = csr_matrix(np.array([[1.0, 1.0]] * 3))
    assert compare_groups(same, members("aab")).anisotropy == pytest.approx(1.0)  # collapsed


def test_clusters_nearest_texts_and_what_changed_by_hand():
    angles = np.radians([0, 4, 90, 94])
    good = compare_groups(csr_matrix(np.stack([np.cos(angles), np.sin(angles)], axis=1)), members("aabb"))
    mixed = compare_groups(csr_matrix(np.stack([np.cos(angles), np.sin(angles)], axis=1)), members("abab"))
    assert good.v_measure == pytest.approx(1.0)  # both clusters are groups
    assert mixed.v_measure == pytest.approx(0.0, abs=1e-9)  # a cluster says nothing of the group
    first = good.nearest[0]
    assert (first.query, first.candidate, first.label) == ("text 0", "text 1", True)
    assert first.similarity == pytest.approx(np.cos(np.radians(4)))
    assert not mixed.nearest[0].label
    rows = apart({"before": good, "after": good}).rows
    assert [row["apart"] for row in rows] == [0.0, 0.0]
    changed = np.abs(np.array(good.similarity) - np.array(mixed.similarity)).mean()
    assert apart({"before": good, "after": mixed}).rows[1]["apart"] == pytest.approx(changed)


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sparse-adapt\[research\]'"):
        v_measure(csr_matrix(np.eye(2)), np.array([0, 1]))


def test_lengths_and_the_order_of_texts_are_nothing():
    random = np.random.default_rng(0)
    vectors, of = random.random((9, 5)), members("abcabcabc")
    first = compare_groups(csr_matrix(vectors), of)
    order = [0, 1, 2, *random.permutation(range(3, 9))]
    scaled = csr_matrix((vectors * random.uniform(0.5, 9, (9, 1)))[order])
    again = compare_groups(scaled, [of[place] for place in order])
    assert np.array(again.similarity) == pytest.approx(np.array(first.similarity))
    assert np.array(again.difference) == pytest.approx(np.array(first.difference))
    assert again.found == first.found


def test_texts_without_weights_are_like_none_and_ties_go_by_the_file():
    vectors = csr_matrix(np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]]))
    found = compare_groups(vectors, members("abab"))
    assert found.within == found.found["all"].accuracy[1] == 0.0  # the copies are of different groups
    assert found.between == pytest.approx(0.25)  # one of four pairs
    empty = compare_groups(csr_matrix((4, 2)), members("aabb"))
    assert empty.within == empty.between == 0.0
    assert np.array(empty.difference).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert empty.found["all"].accuracy[1] == 0.5  # all are level: text 0 finds 1, 1 finds 0, 2 and 3 find 0


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_either_kind_of_model_is_measured(kind, tiny_model, tmp_path, file):
    folder = tiny_model if kind == "sparse" else tiny_dense(tiny_model, tmp_path / "dense")
    found = measure_groups(load_encoder(folder), read_members(file))
    assert found.names == ("spending", "backup", "wood")
    assert np.array(found.difference).shape == (3, 3)
    assert found.found["unseen"].queries == 1
    assert found.within is not None
    assert -1.0 <= found.within <= 1.0


@pytest.mark.parametrize(
    "lines, said",
    [
        ([], "holds no groups"),
        ([{"group": "a"}], ':1: needs a string "text"'),
        ([{"group": "", "text": "x"}], ':1: "group" is empty'),
        ([{"group": "a", "text": "x", "seen": "yes"}], ':1: needs true or false as "seen" \\(found: "yes"'),
        ([{"group": "a", "text": "x"}, {"group": "a", "text": "x"}], ':2: duplicate text of a group "a x"'),
        ([{"group": "a", "text": "x", "entity": 3}], ':1: needs a string "entity"'),
        ([{"group": "a", "text": "x"}, {"group": "a", "text": "y"}], 'all texts are of one group, "a"'),
        ([{"group": "a", "text": "x"}, {"group": "b", "text": "y"}], "no group has two texts"),
    ],
)
def test_files_that_say_nothing_are_refused(tmp_path, lines, said):
    with pytest.raises(InputError, match=said):
        read_members(write(tmp_path / "groups.jsonl", lines))


def test_the_command_shows_and_writes(sparse_adapt, tiny_model, file, tmp_path):
    given = ["groups", "--model", tiny_model, "--groups", file, "--device", "cpu"]
    status, out, said = sparse_adapt(*given, "--json")
    assert status == 0
    figures = json.loads(out)[str(tiny_model)]
    assert figures["names"] == ["spending", "backup", "wood"]
    assert figures["mean_difference"] == pytest.approx(np.mean(figures["difference"]))
    assert "groups --model" in said
    refusal = refused(sparse_adapt(*given, "--baseline", tmp_path / "no", "-o", tmp_path / "out"))
    assert "no such model" in refusal
    assert not (tmp_path / "out").exists()
    before = tiny_dense(tiny_model, tmp_path / "dense")
    status, out, said = sparse_adapt(*given, "--baseline", before, "-o", tmp_path / "out")
    assert status == 0
    assert "A@1" in out
    assert "groups.png" in said
    folder = tmp_path / "out"
    assert (folder / "groups.png").read_bytes().startswith(b"\x89PNG")
    assert list(json.loads((folder / "groups.json").read_text())) == [str(before), str(tiny_model)]
    page = (folder / "groups.md").read_text()
    assert "| unseen | 1 |" in page
    assert "(groups.png)" in page
    assert "already there" in refused(sparse_adapt(*given, "-o", folder))
    missing = refused(sparse_adapt("groups", "--model", tiny_model, "--groups", tmp_path / "none.jsonl"))
    assert "none.jsonl" in missing


def test_a_heat_map_says_what_to_install(tiny_model, file, tmp_path, monkeypatch):
    found = compare_groups(csr_matrix(np.eye(5)), read_members(file))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sparse-adapt\[plot\]'"):
        plot_groups({"one": found}, tmp_path / "groups.png")


def test_the_command_does_without_maps(sparse_adapt, tiny_model, file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    given = ["groups", "--model", tiny_model, "--groups", file, "--device", "cpu", "-o", tmp_path / "out"]
    status, _, said = sparse_adapt(*given)
    assert status == 0
    assert "pip install 'sparse-adapt[plot]'" in said
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "groups.json",
        "groups.md",
        "sparse-adapt.json",
    ]
