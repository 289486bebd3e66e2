"""Terms lowered by their biases: the same vectors as the saved model's, and no more lowering than is needed."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sparse_adapt.api.calibrating import calibrate
from sparse_adapt.errors import ConfigError, ModelError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.before_after import DEPTH, Scales, lowered
from sparse_adapt.pipeline.calibrate import (
    amounts_for,
    amounts_of,
    check_calibrates,
    save_calibrated,
    tabulate_before_after,
)
from sparse_adapt.pipeline.words import WordOptions, add_exact_words
from sparse_adapt.retrieve.activity import Activity, background_queries
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import evaluate_model, evaluate_vectors, read_collection

TEXTS = ["who owns zorvex", "the plan of what to spend", "a saw and a file", "", "who signs for spending"]


@pytest.fixture(autouse=True)
def few_background_queries(monkeypatch):
    monkeypatch.setattr("sparse_adapt.retrieve.activity.BACKGROUND_TEXTS", 80)


@pytest.fixture
def model(tiny_run):
    return SparseEncoder.load(tiny_run / "4-distill")


def same(one, other):
    assert abs(one - other).max() == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("amount", [0.0, 1.5, -2.0])
def test_lowered_vectors_are_those_of_the_saved_model(tmp_path, model, amount):
    model.token_scales = np.linspace(0.5, 1.5, model.vocabulary_size).astype(np.float32)
    texts = Activity.of(model, TEXTS, "document")
    amounts = amounts_of(model, {"Zorvex": amount})
    save_calibrated(model, "here", amounts, [], Place(tmp_path / "model"))
    saved = SparseEncoder.load(tmp_path / "model")
    same(lowered(texts, amounts), encode(saved, TEXTS, "document"))
    same(lowered(texts, np.zeros_like(amounts)), encode(model, TEXTS, "document"))  # which stayed as it was


@pytest.mark.parametrize("activation", ["relu", "log1p_relu"])
def test_vectors_that_are_there_lower_as_texts_do(model, activation):
    model.form = replace(model.form, activation=activation)
    model.token_scales = np.linspace(0.5, 1.5, model.vocabulary_size).astype(np.float32)
    vectors = encode(model, TEXTS, "document")
    for amount in (0.0, 0.7, 100.0, -0.7):
        amounts = amounts_of(model, {"zorvex": amount})
        there = Activity.of(model, TEXTS, "document", vectors=vectors)
        read = replace(there, given=None)
        read.__dict__["positive_logits"] = read.logits
        same(lowered(there, amounts), lowered(read, amounts))


def test_only_the_biases_of_new_tokens_change(tmp_path, model):
    save_calibrated(model, "here", amounts_of(model, {"zorvex": 2.0}), [], Place(tmp_path / "model"))
    saved = SparseEncoder.load(tmp_path / "model").masked_lm.state_dict()
    new = model.new_tokens[0].token_id
    for name, before in model.masked_lm.state_dict().items():
        changed = (saved[name] != before).nonzero()
        if name.endswith("bias") and before.shape == (model.vocabulary_size,):
            assert changed.tolist() == [[new]]
        else:
            assert len(changed) == 0, name


def with_logits(monkeypatch, logits):
    monkeypatch.setattr(Activity, "positive_logits", np.maximum(np.asarray(logits, np.float32), 0.0))


def test_a_target_is_reached_and_no_term_is_lowered_further(model, monkeypatch):
    texts = background_queries()
    logits = Activity.of(model, texts, "query").logits + 3.0  # so that many are active
    with_logits(monkeypatch, logits)
    amounts = amounts_for(model, 0.25, texts)
    assert (logits > amounts).any(axis=1).mean() == 0.25
    assert (logits > amounts - 0.01).any(axis=1).mean() > 0.25


def test_each_term_is_lowered_only_where_it_activates_falsely(model, monkeypatch):
    logits = np.array([[5.0, 1.0], [4.0, -1.0], [-1.0, 2.0], [-2.0, -2.0]], np.float32)
    with_logits(monkeypatch, logits)
    amounts = amounts_for(model, 0.5, ["a", "b", "c", "d"])
    assert amounts.tolist() == pytest.approx(
        [0.0, 2.0], abs=1e-3
    )  # the first two may activate; the third activated the second
    assert ((logits > amounts).any(axis=1)).tolist() == [True, True, False, False]


def test_nothing_is_lowered_where_nothing_false_activations(model, monkeypatch):
    with_logits(monkeypatch, np.full((4, 1), -1.0))
    assert amounts_for(model, 0.0, ["a"] * 4).tolist() == [0.0]


def test_what_it_buys_and_costs(model, zorvex_collection):
    judged = read_collection(str(zorvex_collection), "test")
    scales = Scales.of(model, ["who owns zorvex"], judged.documents, judged)
    before_after = {each.name: each for each in scales.before_after(amounts_of(model, {"zorvex": 100.0}))}
    assert before_after["your queries that activate a term"].after == 0.0
    assert before_after["background queries that activate a term"].after == 0.0
    assert before_after["largest logit of a term where it is said"].before >= 0.0
    assert before_after["documents that say a term and activate it"].after == 0.0
    assert {"  control", "  explicit", "  semantic", "judged queries, nDCG@10"} <= set(before_after)
    nothing = scales.before_after(amounts_of(model, {}))
    assert all(each.before == each.after for each in nothing)
    assert len(tabulate_before_after(nothing).rows) == len(nothing)


@pytest.mark.parametrize("amount", [0.4, -3.0])
def test_queries_that_light_no_moved_term_needn_t_be_asked_again(model, zorvex_collection, amount):
    judged = read_collection(str(zorvex_collection), "test")
    scales, amounts = Scales.of(model, [], judged.documents, judged), amounts_of(model, {"zorvex": amount})
    asked = next(each for each in scales.query_sets if each.collection is judged)
    vectors = scales.documents.searched(amounts)
    whole = evaluate_vectors(asked.texts.searched(amounts), vectors, judged, DEPTH)
    assert asked.before_after(amounts, vectors)[0].after == pytest.approx(whole.means()["ndcg@10"])


@pytest.mark.parametrize("amount", [0.4, -3.0])
def test_figures_of_a_model_with_exact_words_are_those_of_the_saved_model(
    model, zorvex_collection, tmp_path, amount
):
    judged = read_collection(str(zorvex_collection), "test")
    add_exact_words(model, judged.documents.__iter__, WordOptions(heaviest=6))
    scales, amounts = Scales.of(model, [], judged.documents, judged), amounts_of(model, {"zorvex": amount})
    asked = next(each for each in scales.query_sets if each.collection is judged)
    figures = asked.before_after(amounts, scales.documents.searched(amounts))[0]
    save_calibrated(model, "here", amounts, [], Place(tmp_path / "m"))
    saved = SparseEncoder.load(tmp_path / "m")
    assert saved.words.settings == model.words.settings
    reached = [evaluate_model(each, judged).means()["ndcg@10"] for each in (model, saved)]
    assert [figures.before, figures.after] == pytest.approx(reached, abs=1e-6)


def test_the_command_writes_a_model_and_its_figures(sparse_adapt, tmp_path, tiny_run, zorvex_collection):
    words = ["--model", tiny_run / "4-distill", "--corpus", zorvex_collection, "-o", tmp_path / "calm"]
    done = sparse_adapt("calibrate", *words, "--lower-bias", "zorvex=0.5", "--json")
    assert done.status == 0, done.err
    shown = json.loads(done.out)
    told = json.loads((tmp_path / "calm" / "calibration.json").read_text())
    assert shown == told
    assert told["lowered"] == {"zorvex": 0.5}
    assert sparse_adapt("explain", "who owns zorvex", "--model", tmp_path / "calm").status == 0
    again = sparse_adapt("calibrate", *words, "--target-activations", "10%")
    assert again.status == 2 and "already there" in again.err
    assert sparse_adapt("calibrate", *words, "--target-activations", "10%", "--overwrite").status == 0


def test_costs_are_measured_on_what_the_model_was_made_for(tmp_path, tiny_run):
    found = calibrate(tiny_run, tmp_path / "calm", target_activations=0.0, progress=False)
    names = [each.name for each in found.before_after]
    assert names[0] == "background queries that activate a term"
    assert "documents that say a term and activate it" in names and "judged queries, nDCG@10" in names
    assert "terms moved" in found.headline and "no corpus is known" not in str(found)


def test_where_no_corpus_is_known_the_result_says_that_costs_are_not_measured(tmp_path, model):
    model.save(tmp_path / "alone")
    found = calibrate(tmp_path / "alone", tmp_path / "calm", lower_bias={"zorvex": 0.5}, progress=False)
    assert [each.name for each in found.before_after] == ["background queries that activate a term"]
    assert "no corpus is known; name one: --corpus CORPUS" in " ".join(str(found).split())


def test_mistakes(model, tiny_model, tmp_path, tiny_run):
    with pytest.raises(ConfigError, match="--lower-bias TERM=AMOUNT or --target-activations SHARE"):
        calibrate(tiny_run, tmp_path / "x")
    with pytest.raises(ConfigError, match="did you mean 'zorvex'"):
        amounts_of(model, {"zorvx": 1.0})
    with pytest.raises(ModelError, match="has no new token"):
        check_calibrates(SparseEncoder.load(tiny_model), "tiny")
