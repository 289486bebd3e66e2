"""Batches and loss terms of the stages, on the real tokenizer and small corpora."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.collection.glossary import Definition
from sparse_adapt.errors import ConfigError
from sparse_adapt.model import vocabulary
from sparse_adapt.model.head.pooling import activate
from sparse_adapt.model.idf import fourth_root, shares_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.objectives import anchor as anchor_module
from sparse_adapt.objectives import meanings
from sparse_adapt.objectives.anchor import SparseBackground, anchor
from sparse_adapt.objectives.matching import StepReading, penalty, sparsity
from sparse_adapt.objectives.meanings import AnsweredQuery, Sources, queries_about
from sparse_adapt.objectives.targets import Targets
from sparse_adapt.objectives.texts import GENERAL, Remembered, Texts, general_passages, some_passages
from sparse_adapt.objectives.token_scales import LearntScales
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.stages.dictionary import Dictionary, dictionary
from sparse_adapt.stages.distill import Distill, SixTerms, with_balance
from sparse_adapt.stages.rank import Rank, RankTask, RankWeights
from sparse_adapt.stages.warmup import SYNTHETIC_SHARE, Warmup, domain_vocabulary, warmup
from sparse_adapt.synthetic.background import LIKE_PASSAGES, synthetic
from sparse_adapt.terms.mining import Term
from sparse_adapt.training import losses
from sparse_adapt.training.loop import random_at, train

DOCUMENTS = {
    "a": "Zorvex keeps the pumps of a brewery apart from its taps. A zorvex is checked every spring.",
    "b": "The baker lets the dough rest overnight and shapes the loaves before dawn.",
    "c": "Install the zorvex before the first barrel arrives, or the beer turns sour.",
    "d": "Trains to the coast leave every hour from the northern platform.",
}
CANDIDATES = [
    Candidates("1", "keeping pumps and taps of a brewery apart", ("a", "c", "b"), (9.0, 7.0, -8.0)),
    Candidates("2", "trains to the sea", ("d", "b", "a"), (8.0, -8.0, -8.0)),
]
SHORT = {"steps": 2, "batch_size": 4, "labeller": "none"}


@pytest.fixture(scope="module")
def loaded() -> list[SparseEncoder]:
    """The bundled model, and the same with a token for a term. Read only."""
    base, model = (SparseEncoder.load("splade-tiny") for _ in range(2))
    vocabulary.extend(model, [Term("Zorvex", "jargon")])
    return [base, model]


@pytest.fixture
def base(loaded) -> SparseEncoder:
    return copy.deepcopy(loaded[0])


@pytest.fixture
def encoder(loaded) -> SparseEncoder:
    return copy.deepcopy(loaded[1])


def the_warmup(encoder, **settings):
    return warmup(encoder, list(DOCUMENTS.values()), Warmup(**{**SHORT, **settings}))


def test_half_of_a_warmup_batch_says_a_term(encoder):
    stage = the_warmup(encoder)
    for step in range(5):
        rows = stage.batch(random_at(0, step)).rows
        assert len(rows) == 4
        assert set(rows[:2]) <= {0, 2}  # the documents a and c


def test_new_tokens_are_masked_more_often(encoder):
    stage = the_warmup(encoder)
    hidden = {"new": [0, 0], "old": [0, 0]}
    for step in range(200):
        batch = stage.batch(random_at(0, step))
        for row, labels in zip(batch.rows, batch.labels, strict=True):
            for token, label in zip(stage.texts.ids[row], labels, strict=True):
                if token not in stage.special:
                    count = hidden["new" if token >= stage.texts.first else "old"]
                    count[0] += label >= 0
                    count[1] += 1
    rates = {kind: masked / seen for kind, (masked, seen) in hidden.items()}
    assert rates["new"] == pytest.approx(0.5, abs=0.06)
    assert rates["old"] == pytest.approx(0.15, abs=0.02)


def test_the_softmax_runs_over_what_the_texts_hold_and_the_new_tokens(encoder):
    texts = Texts(encoder, ["the cat"])
    kept = domain_vocabulary(texts, "domain").tolist()
    assert kept == sorted({*encoder.tokenize(["the cat"])[0], encoder.old_size})
    assert len(domain_vocabulary(texts, "full")) == encoder.vocabulary_size


def test_new_training_begins_where_the_old_pieces_left_off(encoder):
    """Only dimensions of the replaced pieces may differ from the base by construction, so they aren't compared."""
    texts = Texts(encoder, list(DOCUMENTS.values()))
    compared = texts.comparable([0, 1])
    pieces = list(encoder.new_tokens[0].pieces)
    assert compared[0, pieces].sum() == 0
    assert compared[1, : encoder.old_size].all()
    assert compared[:, encoder.old_size :].sum() == 0


def test_vectors_are_remembered_as_they_were(encoder):
    ids = encoder.tokenize(list(DOCUMENTS.values()))
    memory = Remembered(encoder, ids)
    with torch.no_grad():
        expected = torch.cat([encoder([ids[row]]).weights for row in (2, 0, 2)])
    assert torch.equal(memory.weights([2, 0, 2]), expected)


def test_warm_up_moves_new_rows_and_nothing_else(encoder, tmp_path):
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    train(encoder, the_warmup(encoder), tmp_path)
    for name, tensor in encoder.state_dict().items():
        old = slice(0, encoder.old_size) if tensor.shape[:1] == (encoder.vocabulary_size,) else slice(None)
        assert torch.equal(tensor[old], before[name][old]), name
    name = next(name for name in before if name.endswith("word_embeddings.weight"))
    assert not torch.equal(encoder.input_rows[encoder.old_size :], before[name][encoder.old_size :])


def test_warm_up_needs_documents_that_say_a_term(encoder):
    with pytest.raises(ConfigError, match="none of the 1 documents holds any of the 1 new terms"):
        warmup(encoder, [DOCUMENTS["b"]], Warmup())


def test_a_definition_alone_is_about_its_term(encoder):
    entry = Definition("zorvex", "A valve between pump and tap.", ("cleaning it in spring",))
    stage = dictionary(encoder, [entry], [DOCUMENTS["b"]], Dictionary(**SHORT))
    assert stage.about.ravel().tolist() == [
        True,
        True,
        True,
        False,
    ]  # sentence, definition, example, document
    assert stage.texts.says.ravel().tolist() == [True, False, False, False]


ASKED = [
    AnsweredQuery("how to open a tap", [DOCUMENTS["b"]]),
    AnsweredQuery("what stops the pump", [DOCUMENTS["a"], ""]),
]


def test_a_query_is_about_what_its_answers_say(encoder):
    found = queries_about(encoder, [*ASKED, AnsweredQuery("is zorvex a valve", [])])
    said = ["zorvex" in DOCUMENTS[name].casefold() for name in "ba"]
    assert found.about.ravel().tolist() == [*said, True]
    assert found.token_ids == encoder.tokenize(
        ["how to open a tap", "what stops the pump", "is zorvex a valve"]
    )
    assert queries_about(encoder, []).about.shape == (0, 1)


def test_queries_are_sources_of_synthetic_texts_and_not_read(encoder):
    entry = Definition("zorvex", "A valve between pump and tap.", ())
    settings = Dictionary(**SHORT)
    without = dictionary(encoder, [entry], [DOCUMENTS["b"]], settings)
    stage = dictionary(encoder, [entry], [DOCUMENTS["b"]], settings, ASKED)
    assert len(stage.texts) == len(without.texts) == 3
    assert len(stage.meanings.about) == 3 + len(ASKED)
    assert np.array_equal(stage.meanings.about[3:], queries_about(encoder, ASKED).about)


def test_definitions_are_sources_of_synthetic_texts_while_distilling(encoder):
    entry = Definition("zorvex", "A valve between pump and tap.", ("cleaning it in spring",))
    settings = Distill(**SHORT)
    without = SixTerms(encoder, CANDIDATES, DOCUMENTS, settings)
    stage = SixTerms(encoder, CANDIDATES, DOCUMENTS, settings, definitions=[entry])
    more = len(stage.meanings.about) - len(without.meanings.about)
    first = stage.meanings.about[:more]  # as in the dictionary stage
    assert first.ravel().tolist() == [True, True, True]
    assert np.array_equal(stage.meanings.about[more:], without.meanings.about)


def test_general_passages_are_sources_where_a_judge_compares_them(encoder, monkeypatch):
    monkeypatch.setattr(meanings, "labeller_named", lambda name: name)
    monkeypatch.setattr(meanings, "LabelledMeanings", lambda *given, share: given)
    given = Sources(encoder.tokenize(list(DOCUMENTS.values())), np.array([[True], [False], [True], [False]]))
    _, token_ids, about, judge, _, documents = meanings.meanings(encoder, given, "dense", 0, range(2))
    passages = general_passages(encoder).ids
    assert (judge, documents) == ("dense", range(2))
    assert token_ids == [*given.token_ids, *passages]
    assert about.ravel().tolist() == [True, False, True, False, *[False] * len(passages)]
    unjudged = meanings.meanings(encoder, given, "none", 0, range(2))
    assert np.array_equal(unjudged.about, given.about)


def test_no_texts_are_made_of_the_passages_among_the_candidates(encoder):
    beside = {"p": "A zorvex of another meaning, in a passage of elsewhere."}
    entry = replace(CANDIDATES[1], document_ids=("d", "b", "p"))
    without, stage = (
        SixTerms(encoder, [CANDIDATES[0], last], DOCUMENTS, Distill(**SHORT), (), passages)
        for last, passages in ((CANDIDATES[1], {}), (entry, beside))
    )
    assert np.array_equal(stage.meanings.about, without.meanings.about)
    assert np.array_equal(stage.meanings.document_share, without.meanings.document_share)
    assert len(stage.matched.documents) == len(DOCUMENTS) + 1
    assert len(stage.hinges.unknown) == len(DOCUMENTS) + 1 and not stage.hinges.unknown[-1].any()


def test_the_dictionary_stage_takes_more_steps_for_more_terms():
    assert [Dictionary().settled(terms=terms).steps for terms in (1, 16)] == [100, 200]  # 100 x 16^(1/4)
    assert Dictionary(steps=7).settled(terms=16).steps == 7


def test_where_every_weight_learns_all_texts_are_held(encoder):
    entry = Definition("zorvex", "A valve between pump and tap.", ())
    stage = dictionary(encoder, [entry], [DOCUMENTS["b"]], Dictionary(**SHORT, samples=8))
    batch = replace(stage.batch(random_at(0, 0)), rows=[2, 2], general=[])  # a document that says no term
    assert len(batch.samples.token_ids) == 16  # eight from anywhere, eight that mean the term
    with torch.no_grad():
        assert float(stage.terms(encoder, batch)["anchor"]) < 1e-9
        encoder.output_bias[: encoder.old_size] += 0.5
        assert float(stage.terms(encoder, batch)["anchor"]) > 0.01
        encoder.output_bias[: encoder.old_size] = -100.0  # nothing is left of any text
        found = float(stage.terms(encoder, batch)["anchor"])
        before = stage.before.weights([2, 2])
        logits = encoder([stage.texts.ids[2]] * 2, stage.texts.unclipped_beside(before, 0)).maximum
        values = losses.unclipped(logits, before, activate)
        assert values.min() < -50.0  # far from coming back
        lost = float(losses.drift(values, before, stage.texts.comparable([2, 2])))
        assert found == pytest.approx(lost + SYNTHETIC_SHARE)  # synthetic texts can't be farther away than 1


def test_general_passages_are_held_and_light_no_new_term(encoder):
    entry = Definition("zorvex", "A valve between pump and tap.", ())
    stages = [
        dictionary(encoder, [entry], [DOCUMENTS["b"]], Dictionary(**SHORT)),
        SixTerms(encoder, CANDIDATES, DOCUMENTS, Distill(**SHORT)),
    ]
    batches = [stage.batch(random_at(0, 0)) for stage in stages]
    assert [len(batch.general) for batch in batches] == [GENERAL, GENERAL]
    key = ("domain", "anchor")  # where each stage counts a active passage
    with torch.no_grad():
        before = [stage.terms(encoder, batch) for stage, batch in zip(stages, batches, strict=True)]
        encoder.output_bias[encoder.old_size :] += 20.0  # activated by everything
        after = [stage.terms(encoder, batch) for stage, batch in zip(stages, batches, strict=True)]
    for name, was, now in zip(key, before, after, strict=True):
        assert float(now[name]) > float(was[name]) + 1.0


def test_general_passages_of_a_step_are_neighbours_by_length_and_read_as_one_block(encoder, monkeypatch):
    monkeypatch.setattr("sparse_adapt.objectives.texts.GENERAL_ONE_IN", 4)
    general = general_passages(encoder)
    lengths = [len(ids) for ids in general.ids]
    assert lengths == sorted(lengths)
    drawn = [some_passages(general, random_at(0, step)) for step in range(50)]
    assert all(rows == list(range(rows[0], rows[0] + GENERAL)) and rows[0] % GENERAL == 0 for rows in drawn)
    assert len({rows[0] for rows in drawn}) > 25
    whole = Remembered(encoder, general.old_ids, GENERAL).weights(range(16))
    again = Remembered(encoder, general.old_ids, GENERAL)
    again.weights([9])
    again.weights([2, 14])
    assert torch.equal(again.weights(range(16)), whole)


def test_what_a_document_lost_comes_back(encoder):
    """Where a weight is zero it has no gradient, but what had weight before is held by its logit."""
    entry = Definition("zorvex", "A valve between pump and tap.", ())
    stages = [
        dictionary(encoder, [entry], [DOCUMENTS["b"]], Dictionary(**SHORT)),
        SixTerms(encoder, CANDIDATES, DOCUMENTS, Distill(**SHORT)),
    ]
    (before,) = encoder.weights(encoder.tokenize([DOCUMENTS["b"]]))
    lost = int(before[: encoder.old_size].argmax())
    with torch.no_grad():
        encoder.output_bias[lost] -= 100.0
    assert encoder.weights(encoder.tokenize([DOCUMENTS["b"]]))[0, lost] == 0.0
    for stage, rows in zip(stages, ({"rows": [2, 2]}, {"others": [1]}), strict=True):
        encoder.zero_grad()
        stage.terms(encoder, replace(stage.batch(random_at(0, 0)), **rows))["anchor"].backward()
        assert encoder.output_bias.grad[lost] < 0.0


def test_where_new_rows_alone_learn_only_texts_that_say_a_term_are_held(encoder):
    stage = the_warmup(encoder)
    batch = replace(stage.batch(random_at(0, 0)), rows=[1, 3])
    with torch.no_grad():
        encoder.output_bias[: encoder.old_size] += 0.5
        assert float(stage.terms(encoder, batch)["anchor"]) == 0.0


def test_a_dictionary_of_other_words_is_refused(encoder):
    with pytest.raises(ConfigError, match="none of the 1 definitions is of a new term"):
        dictionary(encoder, [Definition("valve", "A tap.", ())], [], Dictionary())


def test_documents_that_queries_share_are_encoded_once(encoder):
    stage = SixTerms(encoder, CANDIDATES, DOCUMENTS, Distill(**SHORT))
    batch = stage.batch(random_at(0, 0))
    assert sorted(batch.documents) == [0, 1, 2, 3]
    for row, entry in enumerate(CANDIDATES):
        names = [list(DOCUMENTS)[batch.documents[place]] for place in batch.places[row].tolist()]
        assert tuple(names) == entry.document_ids


def test_a_query_wants_the_terms_of_its_relevant_documents(encoder):
    stage = SixTerms(encoder, CANDIDATES, DOCUMENTS, Distill(**SHORT))
    assert stage.hinges.wanted.ravel().tolist() == [True, False]


@pytest.mark.parametrize(
    ("queries", "terms", "pace"),
    [
        (15, 1, (150, 4)),
        (32, 28, (150, 4)),
        (33, 1, (300, 2)),
        (114, 16, (600, 2)),  # 300 x 16^(1/4)
    ],
)
def test_many_queries_and_terms_are_learnt_from_in_more_steps(queries, terms, pace):
    settled = Distill().settled(queries=queries, terms=terms)
    assert (settled.steps, settled.batch_size) == pace
    given = Distill(learning_rate=2e-5, steps=7, batch_size=3)
    assert given.settled(queries=queries, terms=terms) == given


def test_a_stage_settles_its_pace(encoder):
    many = [replace(CANDIDATES[0], query_id=str(number)) for number in range(40)]
    for candidates, steps, drawn in ((CANDIDATES, 150, 2), (many, 300, 2)):
        stage = SixTerms(encoder, candidates, DOCUMENTS, Distill(labeller="none"))
        assert (stage.steps, len(stage.batch(random_at(0, 0)).queries)) == (steps, drawn)


def test_sparsity_weighs_a_small_batch_less(encoder):
    many = [replace(CANDIDATES[0], query_id=str(number)) for number in range(16)]
    stage = SixTerms(encoder, many, DOCUMENTS, Distill(labeller="none"))
    documents = encoder.weights(stage.matched.documents.ids).detach()
    queries = encoder.weights(stage.matched.queries.ids).detach()
    drawn = stage.batch(random_at(0, 0))
    parts = (StepReading(stage, encoder, drawn, queries[:count], documents) for count in (8, 4))
    whole, half = (float(sparsity(read)) for read in parts)
    assert half == pytest.approx(whole / 2)  # the same query again and again: the same mean


def test_stop_words_cost_more_than_the_words_of_the_field(encoder):
    share = np.full(encoder.vocabulary_size, 0.2)
    the, stop, valve = encoder.tokenizer.convert_tokens_to_ids(["the", ".", "valve"])
    costs = {kind: penalty(kind, encoder, share) for kind in ("none", "frequent", "function")}
    assert costs["none"] is None
    assert (costs["frequent"] > 0.9).all()  # a word of every fifth document is a common one to it
    assert costs["function"][[the, stop]].tolist() == [1.0, 1.0]
    share[valve] = 0.9  # a word of most documents of a corpus is rare in an index with other texts
    assert penalty("function", encoder, share)[valve] == costs["function"][valve] == 0.0


def test_what_nobody_judged_is_not_sure():
    judged, unjudged = Targets.of(labelled=True), Targets.of(labelled=False)
    assert unjudged.meaning < judged.meaning
    for targets in (judged, unjudged):
        assert targets.unrelated < targets.none < 0 < targets.threshold < targets.meaning < targets.mention
    surely = (
        judged.meaning - judged.threshold
    ) / judged.slope  # the similarity margin of what surely means it
    assert surely == pytest.approx(0.1375)


@pytest.mark.parametrize("given", [None, Targets(threshold=0.5)])
def test_targets_that_are_given_stand(encoder, given):
    stage = SixTerms(encoder, CANDIDATES, DOCUMENTS, Distill(**SHORT, targets=given))
    assert stage.targets == stage.settings.targets == (given or Targets.of(labelled=False))
    assert the_warmup(encoder, targets=given).targets == stage.targets


LEARNT = {
    "steps": 2,
    "batch_size": 4,
    "temperature": 1.0,
    "token_scale_rate": 0.1,
    "weights": {"anchor": 0.0},
}


def test_scales_begin_with_the_idf_of_the_documents(encoder):
    stage = RankTask(encoder, CANDIDATES, DOCUMENTS, Rank(**LEARNT))
    documents = encode(encoder, list(DOCUMENTS.values()), "document")
    np.testing.assert_allclose(stage.beside.values, fourth_root(documents), rtol=1e-6)
    weights = torch.from_numpy(documents.toarray())
    counted = documents.multiply(fourth_root(documents)[None]).toarray()
    np.testing.assert_allclose(stage.beside(weights).detach().numpy(), counted, rtol=1e-5)


def test_scales_begin_with_how_common_a_token_is_in_background_texts_too(encoder, base):
    anchored = Rank(**{**LEARNT, "weights": {}})
    stage = RankTask(encoder, CANDIDATES, DOCUMENTS, anchored, base)
    documents = encode(encoder, list(DOCUMENTS.values()), "document")
    passages = encode(base, synthetic(anchor_module.TEXTS, anchored.seed)[LIKE_PASSAGES], "document")
    everywhere = np.pad(shares_of(passages), (0, encoder.vocabulary_size - passages.shape[1]))
    np.testing.assert_allclose(stage.beside.values, fourth_root(documents, everywhere), rtol=1e-4)
    common = int(everywhere.argmax())
    assert everywhere[encoder.old_size] == 0.0 < everywhere[common]
    assert stage.beside.values[common] < fourth_root(documents)[common]


def test_a_divergence_from_the_teacher_counts_scales(encoder):
    asked, told = [entry.query for entry in CANDIDATES], [entry.teacher_scores for entry in CANDIDATES]
    stage = RankTask(encoder, CANDIDATES, DOCUMENTS, Rank(**LEARNT, calibrate=False))
    encoder.token_scales = stage.beside.values
    scores = (
        encode(encoder, asked, "query") @ encode(encoder, list(DOCUMENTS.values()), "document").T
    ).toarray()
    places = [[list(DOCUMENTS).index(name) for name in entry.document_ids] for entry in CANDIDATES]
    expected = losses.kl(
        torch.from_numpy(np.take_along_axis(scores, np.array(places), axis=1)),
        torch.tensor(told),
        torch.ones(2, 3, dtype=torch.bool),
    )
    with torch.no_grad():
        terms = stage.terms(encoder, stage.batch(random_at(0, 0)))
    assert float(terms["kd"]) == pytest.approx(float(expected), rel=1e-4)


def test_scales_learn_where_texts_match_and_go_with_the_model(encoder, base, tmp_path):
    stage = RankTask(encoder, CANDIDATES, DOCUMENTS, Rank(**LEARNT))
    start = stage.beside.values
    train(encoder, stage, tmp_path)
    moved = np.flatnonzero(stage.beside.values != start)
    texts = [*DOCUMENTS.values(), *(entry.query for entry in CANDIDATES)]
    active = set(encode(base, texts, "document").indices.tolist())
    assert 0 < len(moved) < 2 * len(active)
    assert encoder.token_scales is None
    stage.conclude(encoder)
    np.testing.assert_array_equal(encoder.token_scales, stage.beside.values)
    encoder.save(tmp_path / "model")
    saved = SparseEncoder.load(tmp_path / "model")
    kept = RankTask(saved, CANDIDATES, DOCUMENTS, Rank(**LEARNT, token_scales="none"))
    for again in (kept, SixTerms(saved, CANDIDATES, DOCUMENTS, Distill(**SHORT))):
        np.testing.assert_allclose(
            again.beside.values, encoder.token_scales, atol=1e-5
        )  # a model's own are kept


def test_scales_of_idf_stay_as_they_are(encoder, tmp_path):
    stage = RankTask(encoder, CANDIDATES, DOCUMENTS, Rank(**LEARNT, token_scales="idf"))
    start = stage.beside.values
    train(encoder, stage, tmp_path)
    np.testing.assert_array_equal(stage.beside.values, start)
    assert stage.beside.gain.grad is None
    assert not stage.beside.gain.requires_grad


def test_background_texts_are_like_queries_and_like_passages_and_the_same_for_a_seed():
    texts = synthetic(1000, 3)
    assert texts == synthetic(1000, 3) != synthetic(1000, 4)
    like_queries, like_passages = ([text.split() for text in texts[first::2]] for first in (0, 1))
    assert {len(words) for words in like_queries} == set(range(2, 9))
    assert {len(words) for words in like_passages} == set(range(16, 49))
    for kind in (like_queries, like_passages):
        words = [word for text in kind for word in text]
        assert words.count("the") > 3 and words.count("the") < 0.01 * len(words)  # of English text it is .05
    words = [word for text in like_queries for word in text]
    assert len(set(words)) > len(words) / 3


def test_background_texts_are_far_from_a_model_by_what_it_forgot(encoder, base):
    background = SparseBackground(encoder, base, 0)
    rows = background.draw(random_at(0, 0))
    with torch.no_grad():
        extended = float(background.distance(encoder, rows))
        encoder.output_bias[: encoder.old_size] += 0.5
        changed = float(background.distance(encoder, rows))
        encoder.output_bias[:] = -100.0
        inactive = float(background.distance(encoder, rows))
    assert extended < 0.01 < changed < inactive == pytest.approx(1.0)


def test_background_texts_are_far_from_a_model_whose_scales_moved(encoder, base):
    background = SparseBackground(encoder, base, 0)
    rows = background.draw(random_at(0, 0))
    token_scales = LearntScales(np.full(encoder.vocabulary_size, 3.0, np.float32), 0.1)
    with torch.no_grad():
        begun = float(background.distance(encoder, rows, token_scales))
        assert begun == pytest.approx(float(background.distance(encoder, rows)), abs=1e-6)
        token_scales.gain += math.log(2.0)
        assert float(background.distance(encoder, rows, token_scales)) == pytest.approx(
            1.0, abs=0.2
        )  # (2 - 1)^2


def test_an_anchor_reads_no_document_again_that_the_batch_has_read(encoder):
    stage = SixTerms(encoder, CANDIDATES, DOCUMENTS, Distill(**SHORT))
    batch = stage.batch(random_at(0, 0))
    asked = []
    with torch.no_grad():
        encoder.output_bias.add_(0.1)  # or all would be as it was
        readings = [
            stage.read(encoder, replace(batch, documents=rows, others=[0, 3, 0]))
            for rows in ([], [3, 1], [0, 2, 3])
        ]
        hook = encoder.register_forward_pre_hook(lambda _, given: asked.append(len(given[0])))
        distances = [float(anchor(read)) for read in readings]
        hook.remove()
    assert distances[0] > 1e-4
    assert distances == pytest.approx([distances[0]] * 3, rel=1e-5)
    assert asked == [3 + GENERAL, 2 + GENERAL, GENERAL]


def test_a_step_reads_each_text_once(encoder):
    stage = SixTerms(encoder, CANDIDATES, DOCUMENTS, Distill(**SHORT))
    batch, read = stage.batch(random_at(0, 0)), []
    hook = encoder.masked_lm.register_forward_pre_hook(
        lambda _, given, named: read.extend(named["attention_mask"].sum(1).tolist()), with_kwargs=True
    )
    stage.terms(encoder, batch)
    hook.remove()
    general = [stage.anchor.general.ids[row] for row in batch.general]
    assert sorted(read) == sorted(map(len, [*stage.matched.ids(batch), *batch.samples.token_ids, *general]))


def test_an_anchor_in_background_texts_keeps_what_others_mean(base, tmp_path):
    texts, forgotten = synthetic(60, 9), {}
    before = encode(base, texts, "document")
    for weight in (0.0, 50.0):
        model = copy.deepcopy(base)
        settings = Rank(
            steps=8,
            batch_size=4,
            learning_rate=1e-3,
            token_scales="none",
            weights=RankWeights(anchor=weight, sparsity=0.1),
        )
        stage = RankTask(model, CANDIDATES, DOCUMENTS, settings)
        (tmp_path / str(weight)).mkdir()
        train(model, stage, tmp_path / str(weight))
        forgotten[weight] = abs(encode(model, texts, "document") - before).sum()
    assert forgotten[50.0] < 0.7 * forgotten[0.0]


def test_a_teacher_without_an_opinion_finds_nothing_relevant(encoder):
    flat = [Candidates("1", "trains", ("a", "b"), (3.0, 3.0))]
    stage = SixTerms(encoder, flat, DOCUMENTS, Distill(**SHORT))
    with torch.no_grad():
        terms = stage.terms(encoder, stage.batch(random_at(0, 0)))
    assert float(terms["contrast"]) == 0.0
    assert all(torch.isfinite(value) for value in terms.values())


@pytest.mark.parametrize("extended", [True, False])
def test_distill_trains_with_and_without_new_tokens(encoder, base, tmp_path, extended):
    model = encoder if extended else base
    settings = settings_for("distill").model_copy(update=SHORT)
    stage = SixTerms(model, CANDIDATES, DOCUMENTS, settings)
    history = train(model, stage, tmp_path)
    assert set(stage.weights) <= set(history[-1])
    assert np.isfinite([value for row in history for value in row.values()]).all()


def test_distill_takes_weights_as_shares_of_the_gradient(encoder):
    plain = settings_for("distill").model_copy(update=SHORT)
    task = SixTerms(encoder, CANDIDATES, DOCUMENTS, plain)
    given = dict(task.weights)
    assert with_balance(encoder, task, plain).weights == given
    shares = with_balance(encoder, task, plain.model_copy(update={"balanced": True})).weights
    assert (shares["kd"], shares["anchor"]) == (given["kd"], given["anchor"])
    assert {key for key in given if shares[key] != given[key]} >= {"rank", "domain", "expand"}


def test_the_same_seed_gives_the_same_bits(encoder, tmp_path):
    results = []
    for number in range(2):
        model = copy.deepcopy(encoder)
        (tmp_path / str(number)).mkdir()
        train(model, the_warmup(model), tmp_path / str(number))
        results.append(model.input_rows[model.old_size :].detach().clone())
    assert torch.equal(results[0], results[1])
