"""The benchmark of ways to teach: its table, and what it says of what was published."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from benchmarks import teaching
from benchmarks.tables import RESULTS as RESULTS_FOLDER


def result(row: str, seed: int, ndcg: float, **more: float) -> dict[str, object]:
    """One measured row of a synthetic collection."""
    sizes = {"nonzero_document": 80.0, "nonzero_query": 20.0}
    measures = {
        "measured": {"ndcg@10": ndcg, **sizes},
        **{key: {"ndcg@10": each} for key, each in more.items()},
    }
    return {
        "kind": "sparse",
        "collection": "small",
        "row": row,
        "seed": seed,
        "seconds": 3.0,
        "measures": measures,
    }


RESULTS = [
    result("base", 0, 0.5, control=0.7),
    result("extended", 0, 0.4, control=0.69),
    result("joint", 0, 0.45, control=0.7),
    result("joint", 1, 0.57, control=0.7),
    result("joint, contrast", 0, 0.5, control=0.7),
]


def test_the_table_holds_means_and_differences_in_points():
    lines = teaching.table(RESULTS).splitlines()
    assert (
        lines[4] == "| sparse | small | joint | 2 | 0.510 (0.450 to 0.570) | +1.0 | 80 / 20 |  | +0.0 | 3 |"
    )
    assert lines[3] == "| sparse | small | extended | 1 | 0.400 | -10.0 | 80 / 20 |  | -1.0 | 3 |"


def test_collapse_is_shown_where_it_was_measured():
    measured = result("joint", 0, 0.5, control=0.7)
    measured["measures"]["measured"]["anisotropy"] = 0.25
    assert "| 80 / 20 | 0.250 |" in teaching.table([RESULTS[0], measured]).splitlines()[-1]
    assert teaching._anisotropy(csr_matrix(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]))) == pytest.approx(
        1.4 / 3
    )


def test_the_drawing_is_that_of_the_figures():
    found = json.loads((RESULTS_FOLDER / "teaching.json").read_text())
    assert teaching.drawing(found) == teaching.DRAWN.read_text()
    drawn = {
        row
        for row in (*teaching.STAGES, *teaching.ALPHAS)
        if teaching.scores(found, "sparse", "cranfield", row)
    }
    assert drawn == {*teaching.STAGES, *teaching.ALPHAS}


def test_a_control_that_some_seeds_have_is_shown_with_their_number():
    lines = teaching.table([*RESULTS, result("joint, contrast", 1, 0.5)]).splitlines()
    assert lines[5].endswith(
        "| joint, contrast | 2 | 0.500 (0.500 to 0.500) | +0.0 | 80 / 20 |  | +0.0 (1 of 2) | 3 |"
    )


def test_published_orderings_hold_or_not_by_the_means():
    rows = {line.split(" | ")[0].strip("| "): line for line in teaching.orderings(RESULTS).splitlines()}
    assert "yes: 0.500, 0.400" in rows["extension alone hurts"]
    assert "yes: 0.510, 0.400" in rows["joint training gives it back"]
    assert "yes: 0.500, 0.450" in rows["contrast alone afterwards is best"]  # by the seed that both have
    assert "no: 0.500, 0.500" in rows["and better than the base"]
    assert "not measured" in rows["alpha .1 is too weak"]


def test_every_row_compared_is_measured_and_every_model_has_its_folder():
    names = {row.name for row in teaching.ROWS} | {"base"}
    assert {name for _, *pair in teaching.PUBLISHED for name in pair} <= names
    taught = {repr(stage) for row in teaching.ROWS for stage in row.stages}
    folders = {stage.name for row in teaching.ROWS for stage in row.stages}
    assert len(folders) == len(taught)
    assert all(name.replace("-", "").replace(".", "").replace("_", "").isalnum() for name in folders)
