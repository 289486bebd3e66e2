"""Templates are files that can be read as they stand, and so are their keys once the comment sign is gone."""

import re

from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.pipeline.template import run_template
from sparse_adapt.plugins.research.suite.settings import (
    SuiteCollection,
    SuiteFile,
    SuiteGroups,
    SuiteRanker,
    read_suite,
    suite_template,
)
from sparse_adapt.stages.table import find_stage, trained

FILE = re.compile(r'^# [a-z]+ = "[a-z]+\.jsonl?"\n', re.MULTILINE)
KEY = re.compile(r"^# (?=[a-z_]+ = \S)", re.MULTILINE)


def test_the_run_template_is_a_run_file(tmp_path):
    (tmp_path / "run.toml").write_text(run_template())
    plan = read_plan(tmp_path / "run.toml")
    assert plan.stages == ("extend", "warmup", "dictionary", "distill")
    assert plan.corpus == "gatrocraptic"


def test_every_key_of_the_run_template_says_the_default(tmp_path):
    text = FILE.sub("", run_template())
    (tmp_path / "run.toml").write_text(KEY.sub("", text))
    plan = read_plan(tmp_path / "run.toml")
    for stage in plan.stages[1:]:
        assert plan.settings[stage] == settings_for(stage, "default", {"seed": 0})


def test_the_run_template_names_every_setting():
    text = run_template()
    for name in trained():
        table = text.partition(f"\n[{name}]\n")[2].partition("\n[")[0]
        for key in find_stage(name).settings.model_fields:
            assert f"\n# {key} =" in f"\n{table}", (name, key)


def test_the_suite_template_is_a_suite(tmp_path):
    (tmp_path / "suite.toml").write_text(suite_template())
    suite = read_suite(tmp_path / "suite.toml")
    assert list(suite.rows) == ["base", "bm25"]
    assert list(suite.collections) == ["mine"]
    for kind in (SuiteFile, SuiteRanker, SuiteCollection, SuiteGroups):
        assert all(f" {key} =" in suite_template() for key in kind.model_fields)
