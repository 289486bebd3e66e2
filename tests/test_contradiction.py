"""The benchmark of contradictions: what stands in their place, and its table."""

from benchmarks.contradiction import others, table
from sparse_adapt.collection.examples import Triplet

TRIPLETS = [Triplet(f"anchor {n}", tuple(f"{n} against {m}" for m in range(1 + n % 5))) for n in range(12)]


def test_other_sentences_are_as_many_and_never_the_anchor():
    drawn = others(TRIPLETS)
    anchors = [each.anchor for each in TRIPLETS]
    assert [each.anchor for each in drawn] == anchors
    for before, after in zip(TRIPLETS, drawn, strict=True):
        assert len(set(after.contradictions)) == len(before.contradictions)
        assert set(after.contradictions) <= set(anchors) - {after.anchor}
    assert others(TRIPLETS) == drawn


def test_a_row_is_the_mean_over_its_seeds():
    row = {"collection": "ja", "kind": "dense", "row": "base", "settings": {}}
    found = [{**row, "measures": {"map": value, "nonzero_document": 128.0}} for value in (0.25, 0.5)]
    assert table(found).splitlines()[-1] == "| ja | dense | base | 2 | 0.375 | 128 |"
