"""Presets against the numbers of their sources: what a source prints, and where it leaves a number to a reader."""

import re
from pathlib import Path

import pytest

from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.plugins.research.stages.pairs import COSINE
from sparse_adapt.plugins.research.stages.triplets import COSINE as COSINE_OF_TRIPLETS
from sparse_adapt.stages.table import find_stage, trained

PUBLISHED_PAGE = Path(__file__).parents[3] / "docs" / "published.md"
SIX_TERMS = {"kd": 1.0, "rank": 0.5, "sparsity": 1e-4, "domain": 10.0, "contrast": 5.0, "expand": 10.0}
MASKED_WORDS_ALONE = {"mlm": 1.0, "anchor": 0.0, "domain": 0.0, "recall": 0.0}
# stage, preset: what the source prints. A range is by its upper end.
PRINTED = {
    ("warmup", "published"): {
        **{"train": "all", "epochs": 50, "batch_size": 4, "learning_rate": 5e-5, "new_learning_rate": 5e-5},
        **{"ramp": 0.0, "softmax": "full", "weights": MASKED_WORDS_ALONE},
    },
    ("dictionary", "published"): {
        **{"train": "all", "epochs": 50, "batch_size": 4, "learning_rate": 5e-5, "new_learning_rate": 5e-5},
        **{"ramp": 0.0, "softmax": "full", "entries": "whole", "weights": MASKED_WORDS_ALONE},
    },
    ("published", "published"): {"epochs": 50, "batch_size": 2, "weights": SIX_TERMS},
    ("joint", "mosaic"): {
        **{"batch_size": 128, "learning_rate": 5e-4, "new_learning_rate": 5e-4, "weight_decay": 0.01},
        **{"ramp": 0.06, "longest": 256, "epochs": 5, "masked": "domain", "mask_rate": 0.15},
    },
    ("contrast", "mosaic"): {
        **{"batch_size": 128, "learning_rate": 5e-4, "new_learning_rate": 5e-4, "weight_decay": 0.01},
        **{"ramp": 0.06, "longest": 256, "epochs": 5},
    },
    ("triplets", "jcse"): {"own": 0.0, "batch_size": 512, "learning_rate": 5e-5, "new_learning_rate": 5e-5},
    ("labelled", "jcse"): {"own": 1.0, "batch_size": 512, "learning_rate": 5e-5, "new_learning_rate": 5e-5},
    ("triplets", "jcse-large"): {"own": 0.0, "batch_size": 512, "learning_rate": 1e-5},
    ("labelled", "jcse-large"): {"own": 1.0, "batch_size": 512, "learning_rate": 1e-5},
    ("dynamic", "zhang"): {
        **{"learning_rate": 2e-5, "new_learning_rate": 2e-5, "longest": 128, "epochs": 10},
        **{
            "candidates": 5,
            "hardest": 3,
            "together": 2,
            "among": "all",
            "masking": "dynamic",
            "summed": True,
        },
    },
    ("contrast", "zhang"): {
        **{"form": "nt-xent", "batch_size": 256, "learning_rate": 2e-5, "new_learning_rate": 2e-5},
        **{"ramp": 0.1, "longest": 128, "epochs": 10},
    },
}
# Settings of a preset that its source leaves open, by our reading.
READ = {
    ("warmup", "published"): {"new_mask_rate", "term_texts", "labeller"},
    ("dictionary", "published"): {"new_mask_rate", "term_texts", "labeller"},
    ("dynamic", "zhang"): {"softmax", "context", "refresh", "visits"},
}


def test_the_table_has_every_preset():
    assert set(PRINTED) == {(stage, name) for stage in trained() for name in find_stage(stage).presets}


@pytest.mark.parametrize(("stage", "preset"), PRINTED)
def test_a_preset_has_the_numbers_of_its_source(stage, preset):
    settings = settings_for(stage, preset).model_dump()
    for key, value in PRINTED[stage, preset].items():
        assert settings[key] == value, key


@pytest.mark.parametrize(("stage", "preset"), PRINTED)
def test_a_preset_sets_nothing_that_is_neither_printed_nor_named_as_a_reading(stage, preset):
    known = {*PRINTED[stage, preset], *READ.get((stage, preset), ())}
    known |= {"batch_size", "gradient_accumulation"} if stage == "dynamic" else {"new_learning_rate"}
    assert set(find_stage(stage).presets[preset]) <= known


def test_a_step_of_dynamic_masking_has_256_texts_by_accumulation():
    settings = settings_for("dynamic", "zhang")
    assert settings.batch_size * settings.gradient_accumulation == 256
    assert settings.steps_for(2560) == 10 * 10


def test_temperatures_and_alpha_are_those_of_the_sources():
    assert COSINE["nt-xent"] == 0.1
    assert COSINE_OF_TRIPLETS == 0.05
    assert settings_for("joint", "mosaic").weights.mlm == 0.3
    assert (
        settings_for("contrast", "zhang").projection is None
    )  # that is, where a dense encoder learns by nt-xent


def test_the_page_names_the_presets_of_every_stage_that_has_some():
    page = PUBLISHED_PAGE.read_text(encoding="utf-8")
    table = page.split("| preset |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| `([\w-]+)` \| ([^|]*) \|", table, re.MULTILINE)
    named = {(stage, preset) for preset, stages in rows for stage in re.findall("`(\\w+)`", stages)}
    assert named == set(PRINTED)
