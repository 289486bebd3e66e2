"""How long an adaptation may take: the stages that are carried out, and no others."""

import pytest

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ConfigError
from sparse_adapt.model.saved import tokenizer_of
from sparse_adapt.pipeline import estimate
from sparse_adapt.pipeline.demo import expected_of_demo
from sparse_adapt.pipeline.estimate import Speeds, expected, measure_speeds
from sparse_adapt.pipeline.plan import make_plan, settings_for
from sparse_adapt.pipeline.request import WITH_WORDS, Request
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.selection.questions import general_collection
from sparse_adapt.stages.table import find_stage, trained
from sparse_adapt.training.memory import Costs

DOCUMENTS = [Document(f"d{number}", "a text of some words") for number in range(400)]


@pytest.fixture(autouse=True)
def speeds(monkeypatch):
    found = Speeds(encoding=0.1, learning=0.3, by_dense=0.2, general=0.05, labelling=0.01)
    monkeypatch.setattr(estimate, "measure_speeds", lambda *given, **named: found)


def told(done=(), **settings) -> dict[str, float]:
    """Seconds by what is done in them."""
    request = Request(corpus="c", model="m", settings=AdaptSettings(**settings))
    return {row.what: row.seconds for row in expected(request, None, DOCUMENTS, 400, done)}


def stages(rows: dict[str, float]) -> list[str]:
    return [what.rpartition(" ")[2] for what in rows if " steps of " in what]


@pytest.mark.plugins("research")
def test_stages_that_arent_carried_out_cost_nothing():
    assert stages(told()) == [] and any("general questions" in what for what in told())
    assert stages(told(stages=("rank",))) == ["rank"]
    assert not any("for terms" in what for what in told(stages=("rank",)))
    assert stages(told(stages=WITH_WORDS)) == ["preserve", "rank"]
    assert stages(told(stages=("extend", "rank"))) == ["rank"]
    assert stages(told(stages=("extend", "warmup", "contrast", "rank"))) == [
        "warmup",
        "contrast",
        "rank",
    ]
    assert stages(told(frozen=True)) == ["preserve"]


def test_a_glossary_costs_the_ranking_beside_it_and_a_second_choice(monkeypatch):
    monkeypatch.setattr(estimate, "of_glossary", lambda *of: (60, 10))
    settings = AdaptSettings(stages=("extend", "dictionary", "rank"))
    request = Request(corpus="c", model="m", glossary="g", settings=settings)
    with_words = {row.what: row.seconds for row in expected(request, None, DOCUMENTS, 400)}
    assert stages(with_words) == ["rank", "dictionary"]
    choosing = "comparing models on the queries set aside"
    assert with_words[choosing] == 3 * told(stages=("rank",))[choosing]
    assert with_words["labelling 48,000 short texts"] == 480.0  # 8,000 and 2,000 a term of 10, 20,000 words
    assert (
        "scoring documents for 960 queries" in with_words
    )  # 400 documents make 800, the glossary 60, 100 set aside


def test_a_glossary_without_new_words_costs_its_queries_alone(monkeypatch):
    monkeypatch.setattr(estimate, "of_glossary", lambda *of: (60, 0))
    settings = AdaptSettings(stages=("extend", "dictionary", "rank"))
    for chosen, taught in ((settings, ["rank"]), (AdaptSettings(), [])):
        asked = Request(corpus="c", model="m", glossary="g", settings=chosen)
        rows = expected(asked, None, DOCUMENTS, 400)
        assert stages({row.what: row.seconds for row in rows}) == taught
    assert not any("labelling" in row.what for row in rows)


def test_a_glossary_is_looked_at_before_anything_is_done(tiny_model, tmp_path):
    glossary = tmp_path / "glossary.csv"
    glossary.write_text("term,definition\naccess log (AL),Who came.\nzorvex,A plan.\nserver,A machine.\n")
    request = Request(corpus="c", model=str(tiny_model), glossary=str(glossary))
    assert estimate.of_glossary(request, tokenizer_of(str(tiny_model))) == (6, 2), (
        "two queries an entry; server is a token"
    )


def test_many_terms_take_at_most_twice_the_time_of_a_tenth():
    found = Speeds(encoding=0.1, learning=0.3, by_dense=0.2, general=0.05, labelling=0.01)
    few, many = (
        estimate.labelled(terms, settings_for("dictionary")) * 0.01
        + estimate.stage_expected(
            "dictionary", settings_for("dictionary"), found, documents=3000, queries=0, terms=terms
        ).seconds
        for terms in (60, 600)
    )
    assert many < 2 * few


def test_what_is_done_costs_nothing_again():
    rows = told(done={"terms", "candidates", "preserve"}, stages=WITH_WORDS)
    assert stages(rows) == ["rank"]
    assert not any("by the base model" in what for what in rows)


def test_a_forecast_ends_with_the_step_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(estimate, "of_glossary", lambda *of: (60, 10))
    settings = AdaptSettings(stages=("extend", "dictionary", "rank"))
    request = Request(corpus="c", model="m", glossary="g", settings=settings)

    def named(until):
        return [row.what for row in expected(request, None, DOCUMENTS, 4000, (), until)]

    whole = named(None)
    assert named("terms") == named("queries") == ["reading 4,000 documents for terms"] == whole[:1]
    candidates, trained = named("candidates"), named("stages")
    assert candidates == whole[: len(candidates)] and candidates[-1] == "scoring documents for 960 queries"
    assert trained == whole[: len(trained)] and stages(dict.fromkeys(trained, 0.0)) == ["rank", "dictionary"]
    assert any("labelling" in each for each in trained) and "comparing" in whole[len(trained)]


def test_steps_are_those_of_the_settings():
    rank = next(seconds for what, seconds in told(stages=("rank",)).items() if what == "300 steps of rank")
    assert rank == pytest.approx(300 * 8 * 8.5 * 0.3)  # 8 queries a step, each as long as 8.5 documents


def test_many_queries_take_no_more_than_300_steps():
    settings = settings_for("rank")
    steps = [settings.settled(queries=queries).steps for queries in (1, 105, 2_400)]
    assert steps == [1, 53, 300]
    assert settings.model_copy(update={"steps": 7}).settled(queries=2_400).steps == 7


@pytest.mark.parametrize("name", trained())
def test_every_stage_has_an_estimate_that_grows_with_its_batches(name):
    found = Speeds(encoding=0.1, learning=0.3, by_dense=0.2)
    sizes = {"documents": 400, "queries": 100, "terms": 16}
    settings = (
        settings_for(name).settled(queries=100, terms=16).model_copy(update={"steps": 7, "epochs": None})
    )
    more = settings.model_copy(update={"gradient_accumulation": 2})
    once = estimate.stage_expected(name, settings, found, **sizes)
    assert once.seconds > 0 or find_stage(name).texts == 0
    assert estimate.stage_expected(name, more, found, **sizes).seconds == pytest.approx(2 * once.seconds)


def test_memory_is_that_of_the_largest_stage_or_the_bound():
    """8 queries a step, each as long as 8.5 documents: 68 texts."""
    costs = Costs(fixed=1e9, a_text=1e6, kept=1e3, a_token=1e5, longest=256, there=1.5e9)
    found = Speeds(encoding=0.1, learning=0.3, by_dense=0.2, costs=costs, tokens=100.0)
    sizes = {"documents": 400, "queries": 100, "terms": 0}
    whole = estimate.stage_expected("rank", settings_for("rank"), found, **sizes)
    assert whole.memory == round(1e9 + 68 * (1e6 + 100 * 1.01e5))
    *_, last, advice = estimate.describe([estimate.Expected("encoding", 60.0), whole])
    assert last.endswith("in all, about; learning takes at most 1.8 GB of memory")
    assert advice == "only 1.5 GB of memory are to be had here; stop and pass --memory 1.5G"
    bounded = settings_for("rank", overrides={"memory": "1.4G"})
    assert estimate.stage_expected("rank", bounded, found, **sizes).memory == 1.4e9
    with pytest.raises(ConfigError, match="is too little"):
        estimate.stage_expected("rank", settings_for("rank", overrides={"memory": "1.1G"}), found, **sizes)


def test_a_demo_costs_its_stages_the_labeller_and_measuring_each_model():
    rows = {row.what: row.seconds for row in expected_of_demo(make_plan("gatrocraptic"))}
    *trained, labelling, encoding, general = rows
    assert trained == ["100 steps of warmup", "100 steps of dictionary", "150 steps of distill"]
    assert rows[labelling] == pytest.approx(300.0) and "30,000 short texts" in labelling
    assert encoding == "encoding 26 documents with 5 models"
    assert rows[encoding] == pytest.approx(13.0)
    assert general.endswith("general questions of 5 models")
    measure = general_collection(most=900)
    assert rows[general] == pytest.approx(5 * 0.05 * (len(measure.documents) + len(measure.queries) / 4))


@pytest.mark.parametrize(("seconds", "read"), [(1.0, 8), (0.01, 64)])
def test_a_trial_reads_more_texts_where_few_take_no_time(monkeypatch, tiny_model, seconds, read):
    counts: list[int] = []
    monkeypatch.setattr(estimate, "encode", lambda model, texts, side: counts.append(len(texts)))
    monkeypatch.setattr(estimate, "_seconds", lambda work: (work(), seconds)[1])
    documents = [Document(f"d{number}", "a log of the server") for number in range(640)]
    found = measure_speeds(str(tiny_model), documents)
    assert found.encoding == seconds / read == seconds / max(counts)
    assert found.general == 0.0, "which nobody wanted"
    assert measure_speeds(str(tiny_model), documents, general=True).general > 0.0


def test_a_trial_tells_what_a_stage_takes(tiny_model):
    documents = [Document("d", "a log of the server")]
    found = measure_speeds(
        str(tiny_model), documents, settings=settings_for("rank", overrides={"device": "cpu"})
    )
    assert found.costs is not None and found.tokens == 7.0
    assert found.costs.longest == 64 and found.costs.fixed < found.costs.there
