"""About how long an adaptation takes: the stages that are carried out, and no others."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ConfigError
from sparse_adapt.model.saved import tokenizer_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline import estimate
from sparse_adapt.pipeline.adapt import STEPS
from sparse_adapt.pipeline.estimate import Forecast, Speeds, measure_speeds, of_adaptation, of_plan
from sparse_adapt.pipeline.plan import make_plan, settings_for
from sparse_adapt.pipeline.request import WITH_WORDS, Request
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.selection.questions import SOME, general_collection
from sparse_adapt.stages.table import find_stage, trained
from sparse_adapt.training.memory import Costs

DOCUMENTS = [Document(f"d{number}", "a text of some words") for number in range(400)]
FOUND = Speeds(encoding=0.1, learning=0.3, dense=0.2, length=600)
WITH_DICTIONARY = AdaptSettings(stages=("extend", "dictionary", "rank"))


@pytest.fixture(autouse=True)
def speeds(monkeypatch):
    monkeypatch.setattr(estimate, "measure_speeds", lambda *given, **named: FOUND)


def forecast(request, done=(), steps=STEPS) -> dict[str, float]:
    model = SimpleNamespace(tokenizer=None)
    return dict(of_adaptation(request, model, DOCUMENTS, 4000, steps, done).seconds)


def told(done=(), **settings) -> dict[str, float]:
    """Seconds of each part."""
    return forecast(Request(corpus="c", model="m", settings=AdaptSettings(**settings)), done)


def with_glossary(monkeypatch, terms: int, settings=WITH_DICTIONARY) -> Request:
    monkeypatch.setattr(estimate, "of_glossary", lambda *of: (60, terms))
    return Request(corpus="c", model="m", glossary="g", settings=settings)


def stages(seconds: dict[str, float]) -> list[str]:
    return [name.removeprefix("stages/") for name in seconds if name.startswith("stages/")]


@pytest.mark.plugins("research")
def test_stages_that_arent_carried_out_cost_nothing():
    assert stages(told()) == [] and told()["words"] == 4.0 and told()["choice"] > 0
    assert stages(told(stages=("rank",))) == ["rank"]
    assert told(stages=("rank",))["terms"] == told(stages=("rank",))["words"] == 0.0
    assert stages(told(stages=WITH_WORDS)) == ["preserve", "rank"]
    assert stages(told(stages=("extend", "rank"))) == ["rank"]
    named = ("extend", "warmup", "contrast", "rank")
    assert stages(told(stages=named)) == ["warmup", "contrast", "rank"]
    assert stages(told(frozen=True)) == ["preserve"]


def test_a_glossary_costs_the_ranking_beside_it_and_a_second_choice(monkeypatch):
    with_words = forecast(with_glossary(monkeypatch, 10))
    assert stages(with_words) == ["rank", "dictionary"]
    asked, compared, judging = estimate.of_questions(FOUND, 1), 3 * 400 * 0.1, 4 * 4000 * 0.1
    assert with_words["choice"] == pytest.approx(3 * compared + 4 * asked + judging)
    assert told(stages=("rank",))["choice"] == pytest.approx(compared + 3 * asked + judging)
    scored = 960  # 400 documents make 800 queries, the glossary 60, and 100 are set aside
    assert with_words["candidates"] == pytest.approx(400 * 0.3 + scored * 0.035)


def test_the_labeller_reads_before_definitions_are_taught(monkeypatch):
    labelled = with_glossary(monkeypatch, 10)
    alone = replace(labelled, of_stages={"dictionary": {"labeller": "none"}})
    seconds = [forecast(each)["stages/dictionary"] for each in (labelled, alone)]
    texts = (
        48_000  # 8,000 and 2,000 a term of 10, and 20,000 words, of 60 characters where documents have 600
    )
    assert seconds[0] - seconds[1] == pytest.approx(texts * 0.2 * 60 / 600)


def test_a_glossary_without_new_words_costs_its_queries_alone(monkeypatch):
    for settings, taught in ((WITH_DICTIONARY, ["rank"]), (AdaptSettings(), [])):
        assert stages(forecast(with_glossary(monkeypatch, 0, settings))) == taught


def test_a_glossary_is_looked_at_before_anything_is_done(tiny_model, tmp_path):
    glossary = tmp_path / "glossary.csv"
    glossary.write_text("term,definition\naccess log (AL),Who came.\nzorvex,A plan.\nserver,A machine.\n")
    request = Request(corpus="c", model=str(tiny_model), glossary=str(glossary))
    assert estimate.of_glossary(request, tokenizer_of(str(tiny_model))) == (6, 2), (
        "two queries an entry; server is a token"
    )


def test_many_terms_take_at_most_twice_the_time_of_a_tenth():
    few, many = (
        estimate._of_stages(
            [("dictionary", settings_for("dictionary"))], FOUND, documents=3000, queries=0, terms=terms
        ).total
        for terms in (60, 600)
    )
    assert many < 2 * few


def test_what_is_done_costs_nothing_again(monkeypatch):
    seconds = told(done={"terms", "candidates", "stages/preserve"}, stages=WITH_WORDS)
    assert stages(seconds) == ["rank"] and "candidates" not in seconds
    request = with_glossary(monkeypatch, 10)
    made = forecast(request, done={"dictionary"})
    assert stages(made) == ["rank", "dictionary"], "definitions are found, and not taught yet"


def test_a_forecast_ends_with_the_step_that_is_asked_for(monkeypatch):
    request, whole = with_glossary(monkeypatch, 10), [*forecast(with_glossary(monkeypatch, 10))]

    def named(until):
        return [*forecast(request, steps=STEPS[: STEPS.index(until) + 1])]

    assert named("words") == whole[:1] and named("terms") == named("queries") == whole[:2]
    assert named("candidates") == [*whole[:2], "candidates"]
    assert named("stages") == whole[:-1] and whole[-1] == "choice"


def test_no_model_reads_for_a_forecast_of_steps_in_which_none_does(monkeypatch):
    monkeypatch.setattr(estimate, "measure_speeds", None)
    request = Request(corpus="c", model="m", settings=AdaptSettings(stages=WITH_WORDS))
    assert forecast(request, steps=("words", "terms", "dictionary", "queries")) == {
        "words": 0.0,
        "terms": 4.0,
    }


def test_steps_are_those_of_the_settings():
    """8 queries a step of 300, each as long as 8.5 documents."""
    assert told(stages=("rank",))["stages/rank"] == pytest.approx(300 * 8 * 8.5 * 0.3)


def test_many_queries_take_no_more_than_300_steps():
    settings = settings_for("rank")
    steps = [settings.settled(queries=queries).steps for queries in (1, 105, 2_400)]
    assert steps == [1, 53, 300]
    assert settings.model_copy(update={"steps": 7}).settled(queries=2_400).steps == 7


@pytest.mark.parametrize("name", trained())
def test_every_stage_has_an_estimate_that_grows_with_its_batches(name):
    settings = (
        settings_for(name).settled(queries=100, terms=16).model_copy(update={"steps": 7, "epochs": None})
    )
    if name == "dictionary":
        settings = settings.model_copy(update={"labeller": "none"})
    once, twice = (
        estimate._of_stages(
            [(name, settings.model_copy(update={"gradient_accumulation": batches}))],
            FOUND,
            documents=400,
            queries=100,
            terms=16,
        ).total
        for batches in (1, 2)
    )
    assert once > 0 or find_stage(name).texts == 0
    assert twice == pytest.approx(2 * once)


def test_a_line_names_what_takes_long_and_short_work_is_not_announced():
    assert Forecast({"candidates": 20.0, "choice": 39.0}).lines() == []
    seconds = {"words": 1.0, "candidates": 120.0, "stages/rank": 360.0, "choice": 119.0}
    assert Forecast(seconds).lines() == [
        "about 10 min on this machine: candidates 2 min, rank 6 min, choice 2 min"
    ]


def test_advice_is_given_where_learning_may_take_more_memory_than_there_is():
    """8 queries a step, each as long as 8.5 documents: 68 texts."""
    costs = Costs(fixed=1e9, a_text=1e6, kept=1e3, a_token=1e5, longest=256, there=1.5e9)
    texts, tokens = 68.0, 100.0
    assert costs.at_most(texts, tokens) == round(1e9 + 68 * (1e6 + 100 * 1.01e5))

    def advice(memory=None, there=costs.there):
        settings = settings_for("rank", overrides={} if memory is None else {"memory": memory})
        return costs._replace(there=there).advice(settings, "rank", texts, tokens)

    assert advice() == (
        "rank takes at most 1.8 GB of memory, and 1.5 GB are to be had here; stop and pass --memory 1.5G"
    )
    assert advice("1.4G") == advice(there=2e9) == ""
    with pytest.raises(ConfigError, match="is too little"):
        advice("1.1G")


def test_a_demo_costs_its_stages_and_measuring_each_model():
    seconds = dict(of_plan(make_plan("gatrocraptic"), 5, SOME).seconds)
    assert [*seconds] == ["stages/warmup", "stages/dictionary", "stages/distill", "measuring"]
    measure = general_collection(most=SOME)
    asked = 5 * estimate.of_questions(FOUND, 1, SOME)
    assert seconds["measuring"] == pytest.approx(5 * 26 * 0.1 + asked)
    length = sum(min(1200, len(each.full_text)) for each in measure.documents) / len(measure.documents)
    texts = len(measure.documents) + len(measure.queries) / 4
    assert asked == pytest.approx(5 * texts * 0.1 * length / 600, rel=0.1)


@pytest.mark.parametrize(("seconds", "read"), [(1.0, 8), (0.01, 64)])
def test_a_trial_reads_more_texts_where_few_take_no_time(monkeypatch, tiny_model, seconds, read):
    counts: list[int] = []
    monkeypatch.setattr(estimate, "encode", lambda model, texts, side: counts.append(len(texts)))
    monkeypatch.setattr(estimate, "_seconds", lambda work, texts: (work(texts), seconds)[1])
    documents = [Document(f"d{number}", "a log of the server") for number in range(640)]
    encoder = SparseEncoder.load(str(tiny_model))
    assert measure_speeds(encoder, documents).encoding == seconds / read == seconds / max(counts)


def test_a_trial_tells_what_a_stage_takes(tiny_model):
    documents = [Document("d", "a log of the server")]
    settings = settings_for("rank", overrides={"device": "cpu"})
    found = measure_speeds(SparseEncoder.load(str(tiny_model)), documents, settings=settings)
    assert found.costs is not None and found.tokens == 7.0 and found.learning > 0 and found.length == 19.0
    assert found.costs.longest == 64 and found.costs.fixed < found.costs.there
