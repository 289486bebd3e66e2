"""Which of a run's models is kept, by queries set aside."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.collection.glossary import Definition
from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.pipeline.choice import with_words
from sparse_adapt.retrieve.evaluate import Collection, ModelResult, evaluate_vectors, read_collection
from sparse_adapt.selection import comparison, models
from sparse_adapt.selection.comparison import TaughtDefinitions, keep_or_refuse, weigh
from sparse_adapt.selection.models import (
    Choice,
    ComparedModel,
    Maker,
    added,
    answers,
    choose,
    choose_from,
    choose_without_words,
    held_out_collection,
    keep,
    may_forget,
    record,
    try_models,
)
from sparse_adapt.selection.record import RANKING, has_words
from sparse_adapt.selection.retention import encode_collection
from sparse_adapt.selection.rule import BESIDE_RANKING
from sparse_adapt.terms.mining import Term

QUERIES = 16
NOISE = np.tile([0.2, -0.2], QUERIES // 2)  # between two that differ by it, a standard error of .05
NOISES = np.tile(NOISE, 2)  # of two kinds: of both together one of .036


@pytest.fixture(autouse=True)
def half_a_point(monkeypatch):
    """The bound that users have; other tests' models are too short taught for it."""
    monkeypatch.setattr(models, "FORGETS", 0.005)


def tried(name, weighed, back, values, nonzero=10.0, general=None):
    values = {"ndcg@10": np.broadcast_to(values, QUERIES), "nonzero_document": np.full(3, nonzero)}
    compared = ComparedModel(name, weighed, back, ModelResult((), values))
    if general is None:
        return compared
    result = asked(general)
    return replace(compared, general=result, forgets=may_forget(result, asked(0.7)))


def asked(values):
    """What a model reaches on two kinds of general questions."""
    queries = tuple(Query(f"q{row}", "what", kind) for kind in ("forum", "wiki") for row in range(QUERIES))
    found = np.broadcast_to(values, 2 * QUERIES)
    return ModelResult(queries, {"ndcg@10": found, "p@1": found})


BASE = tried("base", "", None, 0.3)
BEST = tried("rank", "token scales", 0.0, 0.5)


@pytest.mark.parametrize(
    ("others", "kept"),
    [
        (
            [tried("rank", "token scales^1/2", 0.0, 0.44 + NOISE)],
            2,
        ),  # which chance explains: 1.96 x .0516 = .101
        ([tried("rank", "token scales^1/2", 0.0, 0.39 + NOISE)], 1),
        ([tried("rank", "token scales^1/2", 0.0, 0.46)], 1),  # surely worse, if by little
        ([tried("rank", "token scales^1/2", 0.0, 0.49 + NOISE), BEST], 2),
        (
            [
                tried("rank", "token scales^1/2", 0.0, 0.49 + NOISE),
                tried("rank", "token scales^1/4", 0.0, 0.47 + NOISE),
            ],
            3,
        ),
        ([tried("rank at 50%", "token scales", 0.5, 0.46 + NOISE)], 2),
        (
            [
                tried("rank at 50%", "token scales^1/2", 0.5, 0.46 + NOISE),
                tried("rank", "token scales^1/4", 0.0, 0.49 + NOISE),
            ],
            2,  # weights back count more than token scales
        ),
        ([tried("rank", "", 0.0, 0.5 - 1e-6 + NOISE)], 1),  # without token scales it's another model
        ([tried("preserve", "idf", None, 0.49 + NOISE)], 1),  # which isn't distilled
        ([tried("rank", "token scales^1/2", 0.0, 0.6, nonzero=12.0)], 1),  # its documents are too long
        ([tried("preserve", "idf", None, 0.6)], 2),
    ],
)
def test_the_least_changed_of_the_best_is_kept(others, kept):
    assert choose([BASE, BEST, *others]).kept == kept


def test_a_model_without_the_words_that_were_asked_for_is_no_choice():
    alone = tried(RANKING, "token scales", None, 0.6)
    words = tried("dictionary and ranking", "", 0.0, 0.4)
    assert choose([BASE, alone, words], words=True).kept == 2
    assert choose([BASE, alone, words]).kept == 1


@pytest.mark.parametrize(
    ("others", "place"),
    [
        ([], 0),
        ([tried(RANKING, "", None, 0.4), tried("dictionary", "", None, 0.5)], 1),
        ([tried("dictionary", "", None, 0.5), tried(f"{RANKING} at 50%", "token scales", 0.5, 0.4)], 2),
        ([tried("base", "idf", None, 0.35), tried(RANKING, "", None, 0.2)], 1),
    ],
)
def test_the_best_without_words_is_known(others, place):
    assert choose_without_words([BASE, *others]).kept == place


@pytest.mark.parametrize(("general", "instead"), [(0.7, RANKING), (0.6, "dictionary")])
def test_ranking_alone_is_kept_where_words_cost_every_other_query(tiny_model, tmp_path, general, instead):
    base, ranked, words = (SparseEncoder.load(tiny_model) for _ in range(3))
    extend(words, [Term("zorvex", "jargon")])
    with torch.no_grad():
        ranked.output_bias.add_(0.5)
    makers = [Maker("base", None, lambda: base), Maker(RANKING, None, lambda: ranked)]
    makers.append(Maker("dictionary", None, lambda: words))
    reached = (("base", 0.3, 0.7), (RANKING, 0.5, general), ("dictionary", 0.4, 0.7))
    results = [tried(name, "", None, value, general=found) for name, value, found in reached]
    results = [
        replace(each, result=replace(each.result, queries=(Query("q", "who signs"),) * QUERIES))
        for each in results
    ]
    documents = [Document(f"d{n}", f"Zorvex number {n} and a server of the team.") for n in range(8)]
    folder = tmp_path / "kept"
    chosen, told = keep_or_refuse(
        Choice(tuple(results), 2, choose_without_words(results).kept),
        *(makers, documents, TaughtDefinitions(), 0, folder),
    )
    assert chosen.best.name == instead and told["best"] == 2
    kept = SparseEncoder.load(folder)
    if instead == "dictionary":  # which no model that may forget stands against
        assert told["refused"] is None and kept.new_tokens
        return
    assert told["refused"].startswith(
        "a gain that costs others: synthetic queries, beside ranking alone -10.0"
    )
    assert told["evidence"][0]["model"] == pytest.approx(0.5), "of the one that is kept"
    assert not kept.new_tokens
    assert_close(kept.output_bias, ranked.output_bias)


@pytest.mark.parametrize(
    ("others", "evidence"),
    [("who signs", (QUERIES // 2, 0.3, 0.5)), ("the zorvex", (QUERIES, 0.3, 0.3))],
    ids=["some", "all say it"],
)
def test_queries_that_say_a_taught_term_count_for_neither(monkeypatch, tiny_model, others, evidence):
    monkeypatch.setattr(comparison, "of_meaning", lambda *_: ([], {}))
    base, words = (SparseEncoder.load(tiny_model) for _ in range(2))
    extend(words, [Term("zorvex", "jargon")])
    queries = (Query("a", "a zorvex log"), Query("b", others)) * (QUERIES // 2)
    before, after, ranked = (
        ModelResult(queries, {"ndcg@10": np.tile(values, QUERIES // 2), "nonzero_document": np.ones(3)})
        for values in ([0.3, 0.3], [0.1, 0.5], [0.3, 0.4])
    )
    documents = [Document(f"d{n}", f"Zorvex number {n} and a server of the team.") for n in range(8)]
    definitions = TaughtDefinitions([Definition("zorvex", "a log of the server")], "a labeller")
    rows = weigh((base, words), (before, after), documents, definitions, 0, ranked).rows
    together, beside = rows[0], next(row for row in rows if row.kind == BESIDE_RANKING)
    assert (together.queries, together.base, together.model) == pytest.approx(evidence)
    assert beside.queries == evidence[0] and beside.model == pytest.approx(evidence[2])


ASKED = tried("base", "", None, 0.3, general=0.7)
WITHIN, BELOW = 0.6951, 0.6949  # half a point below .7, and a little less or more


@pytest.mark.parametrize(
    ("general", "taught", "kept"),
    [
        ((WITHIN, WITHIN), False, 1),
        ((BELOW, WITHIN), False, 2),  # the best that loses at most half a point
        ((0.75 + NOISES, WITHIN), False, 2),  # gains, but its interval reaches below -.5: .05 - 1.96 x .036
        ((0.79 + NOISES, WITHIN), False, 1),  # .09 - 1.96 x .036 is above
        ((np.repeat([0.75, 0.69], QUERIES), WITHIN), False, 2),  # gains, but one kind loses
        ((BELOW, BELOW), False, 0),
        ((BELOW, BELOW), True, 0),
        ((WITHIN, BELOW), True, 1),
    ],
)
def test_none_is_kept_that_may_forget(general, taught, kept):
    others = [
        tried("rank", "", None, value, general=found)
        for value, found in zip((0.5, 0.4), general, strict=True)
    ]
    assert choose([ASKED, *others], words=taught).kept == kept


def test_what_the_verdict_says_is_within_the_bound_of_what_is_kept():
    """By one interval: the sentence of a kept model never says more than the bound."""
    noise = np.random.default_rng(0).normal(0.7, 0.02, 2 * QUERIES)
    forgets = []
    for gain in np.linspace(-0.01, 0.01, 21):
        choice = Choice((ASKED, tried("rank", "", None, 0.5, general=noise + gain)), 1)
        forgets.append(choice.best.forgets)
        assert forgets[-1] == (record(choice)["general"][0]["low"] < -0.005)
    assert set(forgets) == {True, False}


@pytest.fixture
def learnt(tiny_model):
    """A model with factors of its own."""
    encoder = SparseEncoder.load(tiny_model)
    encoder.token_scales = np.linspace(0.0, 2.0, encoder.vocabulary_size, dtype=np.float32)
    return encoder


def test_powers_of_learnt_scales_are_tried_and_saved(tiny_model, learnt, tmp_path):
    texts = {
        f"d{number}": Document(f"d{number}", text) for number, text in enumerate(["the cat", "a dog", "we"])
    }
    held = held_out_collection(texts, [Candidates("q", "a cat", tuple(texts), (3.0, 2.0, 1.0))])
    learnt.save(tmp_path / "learnt")
    load = partial(SparseEncoder.load, tmp_path / "learnt")
    makers = [Maker("base", None, partial(SparseEncoder.load, tiny_model)), Maker("rank", 0.0, load)]
    results = try_models(makers, held)
    assert [each.label for each in results] == [
        *("base", "base with idf", "rank", "rank with token scales"),
        *("rank with token scales^3/4", "rank with token scales^1/2", "rank with token scales^1/4"),
    ]
    assert not any(each.result.run for each in results), "rankings of many models would take gigabytes"
    assert results[3].token_scales == pytest.approx(learnt.token_scales_of(), abs=1e-4)
    for place, power in ((3, 1.0), (4, 0.75), (5, 0.5), (6, 0.25)):
        keep(Choice(tuple(results), place), makers, list(texts.values()), tmp_path / str(place))
        kept = SparseEncoder.load(tmp_path / str(place))
        assert kept.token_scales_of() == pytest.approx(learnt.token_scales_of() ** power, abs=1e-4)
    keep(Choice(tuple(results), 2), makers, list(texts.values()), tmp_path / "published")
    assert SparseEncoder.load(tmp_path / "published").token_scales is None


@pytest.mark.parametrize("place", [1, 3, 5])
def test_vectors_of_general_questions_are_those_of_the_model_that_is_kept(
    tiny_model, learnt, zorvex_collection, tmp_path, place
):
    collection = read_collection(zorvex_collection)
    learnt.save(tmp_path / "learnt")
    load = partial(SparseEncoder.load, tmp_path / "learnt")
    makers = [Maker("base", None, partial(SparseEncoder.load, tiny_model)), Maker("rank", 0.0, load)]
    results = try_models(makers, collection)
    keep(Choice(tuple(results), place), makers, collection.documents, tmp_path / "model")
    model = SparseEncoder.load(tmp_path / "model")
    anew = encode_collection(model, collection)
    (base, _), (kept, reached) = (
        answers(maker, [results[place]], collection) for maker in (makers[0], makers[min(1, place // 2)])
    )
    found = evaluate_vectors(anew.queries, anew.documents, collection).values["ndcg@10"]
    for measured in (results[place].result, reached[0]):
        assert measured.values["ndcg@10"] == pytest.approx(found)
    stored = kept.with_scales(model, model.token_scales)
    assert (stored.documents != anew.documents).nnz == (stored.queries != anew.queries).nnz == 0
    assert (stored.documents != base.documents).nnz > 0


@pytest.mark.parametrize("words", [False, True])
def test_models_on_which_the_choice_hangs_are_asked_and_no_others(monkeypatch, words):
    """What is chosen is what the answers of all models together would choose."""
    random, asked_of, of_all = np.random.default_rng(0), 0, 0
    for _ in range(60):
        names = ["base", RANKING, "dictionary", "both at 50%", "both"]
        rows = [
            tried(name, weighed, back, random.choice([0.3, 0.4]) + random.uniform(0, 0.1) * NOISE)
            for name, back in zip(names, (None, 0.0, None, 0.5, 0.0), strict=True)
            for weighed in (("", "idf") if name == "base" else ("", "token scales", "token scales^1/2"))
        ]
        says = [asked(0.7), *(asked(random.choice([0.7, 0.69])) for _ in rows[1:])]
        full = [
            replace(row, general=result, forgets=may_forget(result, says[0]))
            for row, result in zip(rows, says, strict=True)
        ]

        asked_names: list[str] = []

        def answers_of(maker, of, *_, rows=rows, says=says, names=asked_names):
            names.append(maker.name)
            return maker.name, [says[next(n for n, row in enumerate(rows) if row is each)] for each in of]

        monkeypatch.setattr(models, "answers", answers_of)
        makers = [Maker(name, None, lambda: None) for name in names]
        collection = Collection((), (), {})
        choice = choose_from(makers, rows, collection, words=words)
        assert choice.kept == choose(full, words=words).kept
        if has_words(choice.best.name):
            assert choice.without_words == choose_without_words(full).kept
        assert choice.general == {name: name for name in asked_names}, "what each of them read"
        assert choice.kept == 0 or choice.best.name in choice.general
        assert len(asked_names) == len(set(asked_names))
        assert not asked_names or asked_names[0] == "base"
        asked_of, of_all = asked_of + len(asked_names), of_all + len(names)
    assert asked_of < 0.8 * of_all


def test_a_model_adapted_before_is_compared_with_the_scales_it_has(learnt, tmp_path):
    learnt.save(tmp_path / "learnt")
    texts = {f"d{number}": Document(f"d{number}", text) for number, text in enumerate(["the cat", "a dog"])}
    held = held_out_collection(texts, [Candidates("q", "a cat", tuple(texts), (2.0, 1.0))])
    results = try_models([Maker("base", None, partial(SparseEncoder.load, tmp_path / "learnt"))], held)
    assert [each.label for each in results] == ["base"]
    assert results[0].token_scales == pytest.approx(learnt.token_scales_of(), abs=1e-4)


def test_models_without_scales_of_their_own_take_up_those_beside_the_words(tiny_model, learnt):
    def with_scales() -> SparseEncoder:
        model = SparseEncoder.load(tiny_model)
        model.token_scales = np.full(model.vocabulary_size, 0.5, np.float32)
        return model

    makers = [
        Maker("base", None, partial(SparseEncoder.load, tiny_model)),
        Maker("extend", None, partial(SparseEncoder.load, tiny_model)),
        Maker("rank", 0.0, lambda: learnt),
    ]
    base, exact, extended, ranked = (each.make() for each in with_words(makers, with_scales))
    assert base.token_scales is None
    assert set(exact.token_scales_of()) == set(extended.token_scales_of()) == {0.5}
    assert ranked.token_scales is learnt.token_scales


def test_models_are_chosen_by_what_the_teacher_ranks_high():
    names = tuple(f"d{number}" for number in range(12))
    entry = Candidates("q", "who", names, tuple(float(number) for number in range(12)))
    documents = {name: Document(name, "text") for name in (*names, "other")}
    held = held_out_collection(documents, [entry])
    assert [document.document_id for document in held.documents] == list(names)
    assert held.judgements["q"] == {f"d{11 - place}": 10 - place for place in range(10)}


def test_what_ranking_changed_is_added_and_new_rows_stay(tiny_model):
    base, ranked, words = (SparseEncoder.load(tiny_model) for _ in range(3))
    extend(words, [Term("zorvex", "coined")])
    with torch.no_grad():
        ranked.input_rows[5] += 1.0
        ranked.output_bias[7] -= 2.0
        words.output_bias[9] += 0.5
    ranked.token_scales = np.linspace(0.5, 1.5, base.vocabulary_size, dtype=np.float32)
    rows, bias = words.input_rows.clone(), words.output_bias.clone()
    model = added(words, base, ranked, 0.5)
    size = base.vocabulary_size
    assert_close(model.input_rows[5], rows[5] + 0.5)
    assert_close(model.output_bias[[7, 9]], bias[[7, 9]] - torch.tensor([1.0, 0.0]))
    assert model.vocabulary_size == size + 1 and (model.input_rows[size:] == rows[size:]).all()
    assert (model.token_scales[:size] == ranked.token_scales).all() and model.token_scales[size] == 1.0
