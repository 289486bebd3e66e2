"""The six published terms, each by hand, and the recipe around them."""

import json
import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch import tensor
from torch.testing import assert_close

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.collection.glossary import Definition
from sparse_adapt.errors import ConfigError
from sparse_adapt.model import vocabulary
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.objectives.scores import relevant_to
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.plugins.research.stages import published
from sparse_adapt.plugins.research.stages.published import Published, PublishedReading, PublishedTerms
from sparse_adapt.stages.dictionary import dictionary
from sparse_adapt.stages.warmup import warmup
from sparse_adapt.terms.mining import Term
from sparse_adapt.training import losses
from sparse_adapt.training.loop import random_at, schedule, train

DOCUMENTS = {
    "a": "zorvex is a plan and the server sends a log",
    "b": "the backup of a database",
    "c": "zorvex zorvex zorvex",
    "d": "a saw is a tool",
}
CANDIDATES = [
    Candidates("1", "who plans", ("a", "b", "c"), (9.0, -8.0, 2.0)),
    Candidates("2", "zorvex of a saw", ("d", "a"), (8.0, -1.0)),
]


@pytest.fixture
def encoder(tiny_model):
    model = SparseEncoder.load(tiny_model)
    vocabulary.extend(model, [Term("zorvex", "coined")])
    return model


def reading(encoder, queries, candidates, terms=()):
    """A step over both queries whose weights are given by token: of queries, and of the documents a, b, c, d."""
    task = PublishedTerms(encoder, CANDIDATES, DOCUMENTS, Published(), terms)
    drawn = task.matched.scored.of([0, 1])
    assert drawn.documents == [0, 1, 2, 3]

    def rows(texts):
        found = torch.zeros(len(texts), encoder.vocabulary_size)
        for row, weights in enumerate(texts):
            for token, weight in weights.items():
                found[row, encoder.tokenizer.convert_tokens_to_ids(token)] = weight
        return found

    return PublishedReading(task, encoder, drawn, rows(queries), rows(candidates))


def test_the_weights_are_those_of_the_log():
    weights = {"kd": 1.0, "rank": 0.5, "sparsity": 1e-4, "domain": 10.0, "contrast": 5.0, "expand": 10.0}
    assert settings_for("published").weights.model_dump() == weights
    assert settings_for("published") == Published()
    assert (Published().floor, Published().margin, Published().batch_size, Published().learning_rate) == (
        2.0,
        5.0,
        2,
        1e-5,
    )


def test_kd_is_the_squared_distance_of_raw_scores(encoder):
    read = reading(encoder, [{"plan": 1.0}, {"saw": 2.0}], [{"plan": 3.0}, {}, {"plan": 1.0}, {"saw": 1.5}])
    # scores 3, 0, 1 and 3, 0 against 9, -8, 2 and 8, -1: gaps 6, 8, 1 and 5, 1
    expected = tensor((36 + 64 + 1 + 25 + 1) / 5)
    assert_close(read.task.functions["kd"](read), expected)


def test_rank_is_the_cross_entropy_at_the_teachers_best(encoder):
    read = reading(
        encoder, [{"plan": 1.0}, {"saw": 1.0}], [{"plan": math.log(2)}, {}, {}, {"saw": math.log(3)}]
    )
    # softmax 2, 1, 1 of 4 at the first; 3, 1 of 4 at the first
    assert_close(read.task.functions["rank"](read), tensor((math.log(2) + math.log(4 / 3)) / 2))


def test_contrast_takes_what_scores_above_zero_for_relevant(encoder):
    read = reading(encoder, [{"plan": 1.0}, {"saw": 1.0}], [{"plan": 4.0}, {}, {"plan": 2.0}, {"saw": 1.0}])
    # a and c before b: gaps 4 and 2 of 5; d before a: gap 1
    assert_close(read.task.functions["contrast"](read), tensor((1 + 3 + 4) / 3))
    assert relevant_to(CANDIDATES[0]).tolist() == [True, False, True]
    assert relevant_to(Candidates("3", "q", ("a", "b"), (9.0, 0.5))).tolist() == [True, False]  # the default
    assert published.relevant_of(Candidates("3", "q", ("a", "b"), (9.0, 0.5))) == ["a", "b"]


def test_sparsity_is_the_cross_term_alone(encoder):
    queries = [{"plan": 1.4, "saw": 0.7}, {"saw": 1.4}]  # means .7 and 1.05
    candidates = [{"plan": 2.0}, {"saw": 5.0, "zorvex": 9.0}, {"the": 3.0}, {"saw": 2.5}]
    # five candidates, a of both queries: plan 4 / 5, saw 7.5 / 5; the new token and `the` have no part
    read = reading(encoder, queries, candidates)
    assert_close(published.published_sparsity(read), tensor(0.7 * 0.8 + 1.05 * 1.5))


def test_the_default_sparsity_would_say_839_for_3150():
    queries = tensor([[1.05, 0.0, 0.0], [1.05, 0.0, 0.0]])
    candidates = tensor([[3.0, 3.24, 0.0], [3.0, 3.24, 0.0]])
    cross = losses.cross_sparsity(queries, candidates, torch.ones(3))
    assert_close(cross, tensor(3.150))  # 1.05 x 3
    flops = losses.flops(queries) + losses.flops(candidates)  # 1.1025 + 9 + 10.4976
    assert 2 / 8 * float(cross + 0.01 * flops) == pytest.approx(0.839, abs=5e-4)


def test_domain_is_divided_by_all_domain_tokens():
    weights, holds = tensor([[1.3, 0.0]]), tensor([[True, False]])
    assert_close(losses.hinge_share(weights, holds, 2.0), tensor(0.35))  # (2 - 1.3) / 2
    assert_close(losses.hinge_above(weights, holds, 2.0), tensor(0.70))
    assert losses.hinge_share(weights, torch.zeros_like(holds), 2.0) == 0.0
    assert losses.hinge_share(torch.zeros(3, 0), torch.zeros(3, 0, dtype=torch.bool), 2.0) == 0.0


def test_domain_counts_queries_and_candidates(encoder):
    read = reading(encoder, [{}, {"zorvex": 1.5}], [{"zorvex": 1.0}, {}, {"zorvex": 3.0}, {}])
    # one of two queries misses .5; of five candidates a misses 1, twice
    assert_close(published.published_domain(read), tensor(0.5 / 2 + (1.0 + 1.0) / 5))


def test_a_term_that_is_a_token_already_is_a_domain_token(encoder):
    old, new = encoder.tokenizer.convert_tokens_to_ids(["saw", "zorvex"])
    assert published.domain_tokens(encoder, ["Saw", "zorvex", "plan of a saw"]).tolist() == [old, new]
    assert published.domain_tokens(encoder, []).tolist() == [new]
    read = reading(encoder, [{}, {"saw": 1.0}], [{}, {}, {}, {"saw": 1.0, "plan": 1.0}], ["saw", "zorvex"])
    assert published.published_sparsity(read) == 0.0  # nothing but domain tokens in queries
    # the query misses 1 of saw and 2 of zorvex, of two tokens and two queries; a, c, a and d miss 2, 2, 2 and 1
    assert_close(published.published_domain(read), tensor(3 / 4 + 7 / 10))


def test_expand_is_a_mean_of_each_query_first():
    weights, wanted = tensor([[1.44, 9.0], [0.0, 0.2]]), tensor([[True, False], [True, True]])
    one, two, three = (math.log1p(math.exp(-weight)) for weight in (1.44, 0.0, 0.2))
    assert losses.expand_by_query(weights, wanted) == pytest.approx(0.429, abs=5e-4)
    assert_close(losses.expand_by_query(weights, wanted), tensor((one + (two + three) / 2) / 2))
    assert losses.expand_loss(weights, wanted) == pytest.approx(0.501, abs=5e-4)
    assert losses.expand_by_query(weights, torch.zeros_like(wanted)) == 0.0


def test_expand_is_at_most_the_logarithm_of_two():
    """A weight is never negative, so the loss that the published log reaches (1.5) can't come of its formula."""
    weights = torch.rand(8, 5, generator=torch.Generator().manual_seed(0)) * 9
    wanted = torch.ones(8, 5, dtype=torch.bool)
    assert losses.expand_by_query(weights, wanted) <= math.log(2)
    assert_close(losses.expand_by_query(torch.zeros(2, 3), wanted[:2, :3]), tensor(math.log(2)))


def test_a_query_wants_the_terms_of_what_scores_above_zero(encoder):
    task = PublishedTerms(encoder, CANDIDATES, DOCUMENTS, Published())
    assert task.wanted.tolist() == [[True], [False]]
    read = reading(encoder, [{"zorvex": 1.0}, {}], [{}, {}, {}, {}])
    assert_close(published.published_expand(read), tensor(math.log1p(math.exp(-1.0))))


@pytest.mark.parametrize("extended", [True, False])
def test_it_trains_with_and_without_new_tokens(tiny_model, encoder, tmp_path, extended):
    model = encoder if extended else SparseEncoder.load(tiny_model)
    task = PublishedTerms(model, CANDIDATES, DOCUMENTS, Published(epochs=2))
    history = train(model, task, tmp_path)
    assert len(history) == 2  # two queries a step
    assert np.isfinite([value for row in history for value in row.values()]).all()
    assert (history[0]["domain"] > 0) == extended


def test_terms_beside_the_corpus_are_read(sparse_adapt, tiny_model, zorvex_collection, tmp_path):
    places = ["--candidates", zorvex_collection, "--corpus", zorvex_collection, "-o", tmp_path / "out"]
    ran = sparse_adapt("published", "--model", tiny_model, *places, "--steps", "1")
    assert ran.status == 0, ran.errors
    record = json.loads((tmp_path / "out" / "stage.json").read_text())
    assert (record["stage"], record["steps"]) == ("published", 1)
    assert record["files"]["terms"]["path"] == str(zorvex_collection / "terms.json")


def test_steps_that_are_given_go_before_epochs_of_the_recipe(tmp_path):
    assert settings_for("warmup", "published").steps_for(26) == 50 * 7  # 26 / 4 is six batches and a half
    assert settings_for("warmup", "published", {"steps": 7}).steps_for(26) == 7
    assert settings_for("warmup", "published", {"steps": 7, "epochs": 1}).steps_for(26) == 7  # 26 / 4
    file = tmp_path / "run.toml"
    file.write_text('corpus = "gatrocraptic"\npreset = "published"\n[warmup]\nsteps = 9\n')
    plan = read_plan(file)
    assert [plan.settings[name].steps_for(26) for name in ("warmup", "published")] == [9, 650]
    assert read_plan(file, {"steps": 3}).settings["published"].steps_for(26) == 3


def test_each_epoch_ends_with_the_means_of_its_losses(sparse_adapt, tiny_model, zorvex_collection, tmp_path):
    places = ["--candidates", zorvex_collection, "--corpus", zorvex_collection, "-o", tmp_path / "out"]
    ran = sparse_adapt("published", "--model", tiny_model, *places, "--epochs", "2", "--batch-size", "1")
    history = [json.loads(row) for row in (tmp_path / "out" / "history.jsonl").read_text().splitlines()]
    half = len(history) // 2
    means = [np.mean([row["loss"] for row in part]) for part in (history[:half], history[half:])]
    told = [line for line in ran.err.splitlines() if line.startswith("epoch ")]
    assert [line.partition(":")[0] for line in told] == ["epoch 1 of 2", "epoch 2 of 2"]
    assert [line.rpartition("loss ")[2] for line in told] == [f"{mean:.3g}" for mean in means]
    assert f"mean of the last epoch {told[1].partition(': ')[2]}\n" in ran.err


def test_masked_words_are_drawn_from_anywhere_at_one_rate(encoder):
    settings = settings_for("warmup", "published", {"batch_size": 400})
    texts = ["A saw cuts a plank of wood in two."] * 9 + ["A zorvex plan."]
    task = warmup(encoder, texts, settings.model_copy(update={"epochs": None}))
    new, drawn = encoder.new_tokens[0].token_id, Counter[str]()
    for step in range(20):
        batch = task.batch(random_at(0, step))
        drawn["texts"] += len(batch.rows)
        drawn["term"] += batch.rows.count(9)
        drawn["masked"] += sum(new in labels for labels in batch.labels)
    assert drawn["term"] / drawn["texts"] == pytest.approx(0.1, abs=0.02)  # one text of ten says it
    assert drawn["masked"] / drawn["term"] == pytest.approx(0.15, abs=0.05)
    assert len(warmup(encoder, texts, settings).batch(random_at(0, 0)).rows) == len(texts)  # a smaller batch


def test_an_entry_of_a_glossary_is_one_text(encoder):
    entries = [Definition("zorvex", "A plan of what a team spends.", ("a zorvex", "zorvex by month"))]
    for preset, texts in (("default", 4), ("published", 1)):
        settings = settings_for("dictionary", preset, {"labeller": "none", "steps": 1})
        assert len(dictionary(encoder, entries, [], settings).texts) == texts
    assert settings_for("dictionary", "published").model_dump().items() >= {"new_mask_rate": 0.15}.items()


def test_the_learning_rate_falls_from_the_first_step():
    assert [schedule(step, 4, 0.0) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]


def test_what_only_distill_can_be_told_is_refused():
    with pytest.raises(ConfigError, match="published: unknown key 'penalised'"):
        settings_for("published", overrides={"penalised": "frequent"})


@pytest.mark.parametrize(
    ("stages", "preset", "expected"),
    [
        (("joint", "contrast"), "mosaic", {"batch_size": 128, "learning_rate": 5e-4, "weight_decay": 0.01, "ramp": 0.06,
                                 "longest": 256}),
        (("triplets", "labelled"), "jcse", {"batch_size": 512, "learning_rate": 5e-5}),
    ],
)  # fmt: skip
def test_batches_and_rates_of_the_other_recipes(stages, preset, expected):
    for stage in stages:
        assert settings_for(stage, preset).model_dump().items() >= expected.items()
