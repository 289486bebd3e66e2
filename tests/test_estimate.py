"""How long an adaptation may take: the stages that are carried out, and no others."""

import pytest

from sparse_adapt.collection.readers import Document
from sparse_adapt.pipeline import estimate
from sparse_adapt.pipeline.estimate import Speeds, expected
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.pipeline.request import WITH_WORDS, Request
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.stages.stage import Sizes
from sparse_adapt.stages.table import find_stage, trained

DOCUMENTS = [Document(f"d{number}", "a text of some words") for number in range(400)]
SIZES = Sizes(documents=400, terms=16, queries=100, candidates=8)


@pytest.fixture(autouse=True)
def speeds(monkeypatch):
    found = Speeds(encoding=0.1, learning=0.3, short=0.02, judging=0.2)
    monkeypatch.setattr(estimate, "measured", lambda *given, **named: found)


def told(done=(), **settings) -> dict[str, float]:
    """Seconds by what is done in them."""
    request = Request(corpus="c", model="m", settings=AdaptSettings(**settings))
    return {row.what: row.seconds for row in expected(request, DOCUMENTS, 400, done)}


def stages(rows: dict[str, float]) -> list[str]:
    return [what.rpartition(" ")[2] for what in rows if " steps of " in what]


def test_stages_that_arent_carried_out_cost_nothing():
    assert stages(told()) == ["imitate"]
    assert not any("for terms" in what for what in told())
    assert stages(told(stages=WITH_WORDS)) == ["behaviour", "imitate"]
    assert stages(told(stages=("extend", "imitate"))) == ["imitate"]
    assert stages(told(stages=("extend", "warmup", "contrast", "imitate"))) == [
        "warmup",
        "contrast",
        "imitate",
    ]
    assert stages(told(frozen=True)) == ["behaviour"]


def test_a_glossary_costs_the_ranking_beside_it_and_a_second_choice():
    request = Request(corpus="c", model="m", glossary="g")
    with_words = {row.what: row.seconds for row in expected(request, DOCUMENTS, 400)}
    assert stages(with_words) == ["imitate", "dictionary"]
    choosing = "comparing models on the queries set aside"
    assert with_words[choosing] == 2 * told()[choosing]


def test_what_is_done_costs_nothing_again():
    rows = told(done={"terms", "candidates", "behaviour"}, stages=WITH_WORDS)
    assert stages(rows) == ["imitate"]
    assert not any("by the base model" in what for what in rows)


def test_steps_are_those_of_the_settings():
    imitate = next(seconds for what, seconds in told().items() if what == "300 steps of imitate")
    # 8 of 800 queries a step with 8 documents each, and 32 everyday texts; 400 documents before
    assert imitate == pytest.approx(300 * (64 * 0.3 + 40 * 0.02) + 400 * 0.1)


def test_many_queries_take_no_more_than_300_steps():
    settings = settings_for("imitate")
    steps = [settings.settled(queries).steps for queries in (1, 105, 2_400)]
    assert steps == [1, 53, 300]
    assert settings.model_copy(update={"steps": 7}).settled(2_400).steps == 7


@pytest.mark.parametrize("name", trained())
def test_every_stage_says_what_it_costs(name):
    settings = settings_for(name)
    effort = find_stage(name).costs(settings, SIZES)
    assert effort is not None
    assert effort.steps > 0
    read = effort.documents + effort.short
    assert read > 0 or effort.before > 0  # `table` reads nothing once it has begun
    more = find_stage(name).costs(settings.model_copy(update={"gradient_accumulation": 2}), SIZES)
    assert more is not None
    assert more.documents + more.short > read or read == 0


def test_an_extension_trains_nothing():
    extend = find_stage("extend")
    assert extend.costs(extend.settings(), SIZES) is None
