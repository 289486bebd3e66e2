"""Made-up texts rank the documents as the dense encoder does: on old tokens, and the documents as they stood."""

import numpy as np
import pytest
import torch
from families import build
from test_meanings import OTHER, SAYING, Words, about, extended, told

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.collection.readers import Candidates
from sparse_adapt.made_up.judged import FEWER_EVERYDAY, JudgedMeanings
from sparse_adapt.made_up.windows import Samples
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.stages.dictionary import Dictionary, dictionary
from sparse_adapt.stages.distill import Distill
from sparse_adapt.stages.parts import made_up_lessons, ranking
from sparse_adapt.stages.parts.about import AnsweredQuery
from sparse_adapt.stages.parts.ranking import SHARPNESS, Ranking
from sparse_adapt.stages.parts.six_terms import SixTerms
from sparse_adapt.terms.function_words import function_tokens
from sparse_adapt.training.loop import random_at

TINY = {"seed": 0, "steps": 1, "judge": "any"}
DOCUMENTS = [1, 2, 4]  # rows of the sources below: spending, logs and backup


@pytest.fixture
def encoder(tmp_path) -> SparseEncoder:
    return extended(build(tmp_path / "model", "bert"), "zorvex", "kubectl")


def judged(encoder: SparseEncoder, documents) -> JudgedMeanings:
    ids = encoder.tokenize([*SAYING, *OTHER])
    return JudgedMeanings(encoder, ids, about(encoder, ids), Words(), np.random.default_rng(0), documents)


def samples_of(closeness: torch.Tensor, answered: list[bool]) -> Samples:
    nothing = torch.zeros(len(closeness), 0)
    return Samples([[1]] * len(closeness), nothing, nothing, nothing, closeness, torch.tensor(answered))


def test_texts_are_as_often_near_to_one_document_as_to_another(encoder):
    source = judged(encoder, DOCUMENTS)
    samples = source.draw(400, np.random.default_rng(0))
    assert samples.closeness.shape == (800, 3)
    everyday = 400 // FEWER_EVERYDAY
    assert not samples.answered[:everyday].any()  # these come first
    assert samples.answered[everyday:400].all()
    nearest = samples.closeness[everyday:400].argmax(dim=1).bincount(minlength=3)
    held = [len(rows) > 0 for rows in source.answered]
    assert (nearest > 0.7 * nearest.sum() / sum(held)).sum() == sum(held)


def test_closeness_is_the_dense_encoder_s(encoder):
    source = judged(encoder, DOCUMENTS)
    samples = source.draw(8, np.random.default_rng(0))
    texts = encoder.tokenizer.batch_decode(samples.token_ids, skip_special_tokens=True)
    documents = encoder.tokenizer.batch_decode(
        [source.cut[row] for row in DOCUMENTS], skip_special_tokens=True
    )
    assert np.allclose(samples.closeness, Words().encode(texts) @ Words().encode(documents).T, atol=1e-5)


def test_one_stage_s_made_up_texts_are_the_next_one_s(encoder, monkeypatch):
    """All but those that the model worded, which has learnt since: encoding them is what takes the time."""
    read: list[str] = []

    class Counting(Words):
        def encode(self, texts):
            read.extend(texts)
            return super().encode(texts)

    judge = Counting()
    monkeypatch.setattr(made_up_lessons, "_judge", lambda name: judge)
    documents = {str(number): text for number, text in enumerate([*SAYING, *OTHER])}
    entries = [Definition("zorvex", "The office that signs for spending.", ("A zorvex of the team.",))]
    relevant = [Candidates("q", "who signs for what is spent", ("1", "4", "5"), (9.0, -8.0, -8.0))]
    queries = [AnsweredQuery("who signs for what is spent", [documents["1"]])]

    first = dictionary(encoder, entries, list(documents.values()), Dictionary(**TINY), queries).meanings
    with torch.no_grad():
        encoder.output_bias.add_(torch.rand_like(encoder.output_bias))  # it associates something else now
    before = len(read)
    second = SixTerms(encoder, relevant, documents, Distill(**TINY), definitions=entries).meanings
    again = len(read) - before
    same = [one == other for one, other in zip(first.pool, second.pool, strict=True)]
    assert 0.85 < np.mean(same) < 1.0
    assert np.array_equal(first.pool_vectors[same], second.pool_vectors[same])
    assert again < 0.2 * first.made
    assert again > len(first.pool) - sum(same)


def test_without_documents_there_is_nothing_to_rank(encoder):
    ids = encoder.tokenize([*SAYING, *OTHER])
    assert ranking.ranking(encoder, ids, judged(encoder, ()), 1.0) is None
    assert ranking.ranking(encoder, ids, told(encoder, SAYING), 1.0) is None
    assert ranking.ranking(encoder, ids, judged(encoder, DOCUMENTS), 0.0) is None
    assert ranking.ranking(encoder, ids, judged(encoder, DOCUMENTS), 1.0).rows.shape == (
        3,
        encoder.vocabulary_size,
    )


def test_new_tokens_and_words_that_say_nothing_dont_count(encoder):
    with torch.no_grad():
        encoder.output_bias.add_(5.0)  # every token has weight everywhere
    held = np.unique(Ranking(encoder, encoder.tokenize(OTHER)).rows.indices)
    assert len(held) > 20
    assert held.max() < encoder.old_size
    assert not function_tokens(encoder.tokenizer)[held].any()


def test_a_model_may_have_rows_that_stand_for_no_token(encoder):
    found = Ranking(encoder, encoder.tokenize(OTHER)).rows
    encoder.grow(encoder.vocabulary_size + 7)  # as a vocabulary padded to a multiple of eight has
    with torch.no_grad():
        encoder.output_rows[-7:] = encoder.output_bias[-7:] = 0.0
    padded = Ranking(encoder, encoder.tokenize(OTHER)).rows
    assert padded.shape == (len(OTHER), encoder.vocabulary_size)
    assert np.allclose(padded[:, : found.shape[1]].toarray(), found.toarray(), atol=1e-6)
    assert not padded[:, found.shape[1] :].nnz


@pytest.fixture
def three(encoder) -> Ranking:
    """Documents of one token each, which a score tells apart."""
    found = Ranking(encoder, encoder.tokenize(OTHER))
    found.rows = found.rows.tolil()
    found.rows[:] = 0.0
    for row in range(3):
        found.rows[row, 10 + row] = 1.0
    found.rows = found.rows.tocsr()
    return found


def test_the_same_ranking_has_no_divergence_and_another_one_has(three):
    closeness = torch.tensor([[0.5, 0.4, 0.1], [0.2, 0.3, 0.35]])
    samples = samples_of(closeness, [True, True])
    documents, tokens = three.among(samples)
    assert tokens.tolist() == [10, 11, 12]
    logits = torch.expm1(SHARPNESS * closeness).requires_grad_()
    assert three.divergence(logits.detach(), samples, documents, tokens) == pytest.approx(0.0, abs=1e-4)
    turned = logits.detach().flip(1).requires_grad_()
    loss = three.divergence(turned, samples, documents, tokens)
    assert loss > 1.0
    loss.backward()
    assert turned.grad[0, 0] < 0 < turned.grad[0, 2]  # towards the first document, away from the last


def test_texts_that_mean_anything_dont_count(three):
    closeness = torch.tensor([[0.1, 0.2, 0.3], [0.5, 0.4, 0.1]])
    samples = samples_of(closeness, [False, True])
    documents, tokens = three.among(samples)
    logits = torch.rand(2, 3, requires_grad=True)
    three.divergence(logits, samples, documents, tokens).backward()
    assert not logits.grad[0].any()
    assert logits.grad[1].any()


def test_of_many_documents_those_near_to_a_text_are_ranked(three, monkeypatch):
    monkeypatch.setattr(ranking, "MOST", 2)
    samples = samples_of(
        torch.tensor([[0.9, 0.1, 0.2], [0.1, 0.2, 0.3], [0.0, 1.0, 0.0]]), [True, True, False]
    )
    documents, tokens = three.among(samples)
    assert documents.tolist() == [0, 2]
    assert tokens.tolist() == [10, 12]


def test_the_dictionary_stage_learns_it_and_documents_are_those_of_the_corpus(encoder, monkeypatch):
    monkeypatch.setattr(made_up_lessons, "_judge", lambda name: Words())
    monkeypatch.setattr("sparse_adapt.made_up.judged.POOL", 400)
    entry = Definition("zorvex", "What a team may spend.", ())
    stage = dictionary(encoder, [entry], [*SAYING, *OTHER], Dictionary(steps=1, samples=16))
    assert stage.meanings.documents.tolist() == list(range(2, 2 + len(SAYING) + len(OTHER)))
    batch = stage.batch(random_at(0, 0))
    optimizer = torch.optim.Adam(encoder.parameters(), 1e-3)
    found = []
    for _ in range(30):
        loss = stage.terms(encoder, batch)["listwise"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    assert found[-1] < 0.5 * found[0]
