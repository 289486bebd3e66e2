"""The benchmark of what `adapt` brings: its tables, and runs that begin with what another made."""

import json

import numpy as np
import pytest

from benchmarks import adapting as benchmark
from benchmarks.adapting import Job, Recipe
from sparse_adapt.pipeline import adapt
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.teachers.teacher import Ranker, Teacher

BOTH = [Job("first", seed, "default") for seed in (0, 1)] + [Job("first", 1, "no idf")]


def row(mean: float, size: float = 10.0) -> dict:
    values = list(np.full(20, mean) + 0.01 * np.sin(np.arange(20)))
    costs = {"nonzero_document": size, "nonzero_query": 3.0, "flops": 1.0, "longest_list": 7}
    return {"ndcg@10": float(np.mean(values)), "recall@100": 0.5, **costs, "values": values}


@pytest.fixture
def measured() -> dict:
    rows = {name: row(0.4) for name in ("base", "weighed", "bm25", "dense", "teacher")}
    rows |= {"default-0": row(0.44), "default-1": row(0.46), "no idf-1": row(0.45, size=20.0)}
    return {"collection": "first", "rows": rows | {f"default-{seed} + bm25": row(0.5) for seed in (0, 1)}}


@pytest.fixture
def control() -> dict:
    found = {"base": row(0.7)} | {job.name: row(0.69) for job in BOTH}
    return {"collection": "control", "rows": found | {"no-idf/first-1": row(0.7)}}


def test_the_table_has_means_over_seeds_and_corrected_tests(measured, control):
    runs = {job.name: {"seconds": 600 * (job.seed + 1), "peak_memory": 2**31} for job in BOTH}
    lines = benchmark.table([measured], control, runs, [0, 1]).splitlines()
    cells = {line.split(" | ")[0].strip("| "): line.split(" | ")[1].strip(" |") for line in lines[2:]}
    assert cells["adapted"] == "0.450 (0.440 to 0.460)"
    assert cells["base"] == "0.400" and cells["points gained"] == "+5.0"
    assert float(cells["p, after Holm"]) < 0.001
    assert cells["control, 0.700 before"].startswith("0.69") and cells["minutes"] == "15 (10 to 20)"
    assert cells["GiB"] == "2.0 (2.0 to 2.0)" and cells["nonzero_document"] == "10.0 -> 10.0"


def test_an_ingredient_is_compared_with_the_default_of_the_same_seed(measured, control):
    found = benchmark.effects([measured], control, BOTH)
    line = benchmark.ablation(found).splitlines()[-1]
    assert line == "| no idf | -1.0 (p 0.00) | +1.0 | x 2.00 |"


def test_effects_of_earlier_runs_stay(measured, control, tmp_path):
    path, by = tmp_path / "ablation.json", ("recipe", "collection", "seed")
    [found] = (each._asdict() for each in benchmark.effects([measured], control, BOTH))
    other, old = {**found, "collection": "second"}, {**found, "gap": 0.5}
    assert benchmark.with_earlier([found], path, "effects", by) == [found]
    path.write_text(json.dumps({"effects": [other, old]}))
    assert benchmark.with_earlier([found], path, "effects", by) == [other, found]
    assert benchmark.with_earlier([found], path, "recovery", by) == [found]


def test_seeds_of_an_effect_are_averaged():
    effects = [
        benchmark.Effect("no idf", "first", seed, gap, 0.2, 0.0, 1.0) for seed, gap in ((0, 0.01), (1, 0.03))
    ]
    lines = benchmark.ablation([*effects, effects[0]._replace(collection="second")]).splitlines()
    assert lines[-1] == "| no idf | +2.0 | +1.0 (p 0.20) | +0.0 | x 1.00 |"


def test_recoveries_of_several_seeds_are_one_row():
    share = {"value": 0.5, "low": 0.1, "high": 0.9}
    figures = {"queries": 9, "floor": 0.3, "adapted": 0.35, "ceiling": 0.4}
    kinds = {"said": {**figures, "recovery": share}, "typed": {**figures, "recovery": None}}
    found = [{"collection": "first", "seed": seed, **kinds, "other": kinds["said"]} for seed in (0, 1)]
    lines = benchmark.recoveries(found).splitlines()
    first = "0.300 (0.300 to 0.300) | 0.350 (0.350 to 0.350) | 0.400 (0.400 to 0.400)"
    assert lines[2] == f"| first | say the real word | 2 | {first} | 50 % |"
    assert lines[3] == f"| first | type the coined word | 2 | {first} |  |"


def test_every_recipe_has_settings_that_exist():
    for recipe in benchmark.RECIPES.values():
        settings_for("rank", "default", recipe.rank)
        AdaptSettings.model_validate(recipe.settings)
    assert Recipe().begins_alike and not Recipe(without="BM25").begins_alike
    assert not benchmark.RECIPES["with contrast"].begins_alike  # pairs want sentences cut out of documents


def test_a_teacher_can_do_without_a_member(monkeypatch):
    teacher = Teacher((Ranker("one", len), Ranker("two", len)), len)  # type: ignore[arg-type]
    monkeypatch.setattr(adapt, "make_teacher", None)
    monkeypatch.setattr(benchmark, "make_teacher", lambda: teacher)
    benchmark._leave_out("one")
    assert adapt.make_teacher().name == "two"
