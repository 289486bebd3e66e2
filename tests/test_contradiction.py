"""The benchmark of contradictions: what stands in their place, and its table."""

import pytest

from benchmarks import contradiction
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


@pytest.mark.parametrize(
    ("row", "stages"),
    [
        ("contradictions", [("triplets", "triplets.jsonl", 1.0)]),
        ("6 contradictions", [("triplets", "triplets-6.jsonl", 1.0)]),
        ("one stage", [("labelled", "labelled.jsonl", 1.0)]),
        ("two stages", [("triplets", "triplets.jsonl", 0.0), ("labelled", "labelled.jsonl", 1.0)]),
        ("two stages, reverse", [("labelled", "labelled.jsonl", 1.0), ("triplets", "triplets.jsonl", 0.0)]),
    ],
)
def test_the_stages_of_a_row_follow_each_other(row, stages, tmp_path, monkeypatch):
    done = []

    def carried_out(stage, model, files, place, settings):
        [(key, file)] = files.items()
        assert key == stage
        done.append((stage, file.name, settings.own))
        models.append((model, str(place.folder)))

    models: list[tuple[str, str]] = []
    monkeypatch.setattr(contradiction, "carry_out_stage", carried_out)
    made = contradiction.teach(row, tmp_path, "dense", "base", {"seed": 1}, tmp_path / "labelled.jsonl")
    assert done == stages
    assert [before for before, _ in models] == ["base", *(after for _, after in models[:-1])]
    assert made == models[-1][1]


def test_labelled_pairs_are_asked_for_in_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", ["contradiction", "--data", str(tmp_path), "--rows", "two stages"])
    with pytest.raises(SystemExit):
        contradiction.main()
    assert "--labelled: name a file of labelled pairs" in capsys.readouterr().err
