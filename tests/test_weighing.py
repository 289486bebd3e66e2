"""Which power of idf a collection's own evidence and other collections' test queries choose."""

from benchmarks.weighing import POWERS, choices, tables

FOUND = {
    "a": {"real": [0.1, 0.2, 0.3, 0.2, 0.1], "title: source": [0.5, 0.4, 0.3, 0.2, 0.1]},
    "b": {"real": [0.1, 0.1, 0.1, 0.1, 0.6], "title: source": [0.1, 0.2, 0.3, 0.4, 0.5]},
}


def test_a_collection_is_left_out_of_the_choice_that_is_tried_on_it():
    found = choices(FOUND, ["real", "title: source"])
    assert found["its own test queries (the most there is)"] == [2, 4]
    assert found["all collections together (in sample)"] == [4, 4]  # .1 + .6 beside .3 + .1
    assert found["the other collections (left out)"] == [4, 2]
    assert found["title: source"] == [0, 4]


def test_gains_are_points_beside_no_weighing():
    rows = tables(FOUND).splitlines()
    assert "| real | +20.0 | +0.0 |" in rows
    assert f"| the other collections (left out) | {POWERS[4]:g}: +0.0 | {POWERS[2]:g}: +0.0 | +0.0 |" in rows
