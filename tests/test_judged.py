"""Made-up texts judged by degrees: always the same for a seed, never saying a term."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from families import build
from numpy.typing import NDArray

from sparse_adapt.judged import JudgedMeanings
from sparse_adapt.meanings import Samples
from sparse_adapt.model import SparseEncoder
from sparse_adapt.nearness import Judge
from sparse_adapt.terms import Term
from sparse_adapt.vocabulary import extend

SAYING = [
    "A zorvex report compares what the team spent, month by month.",
    "Who owns zorvex? The office that signs for spending.",
    "kubectl logs show what the agent saw.",
    "The server of kubectl and zorvex.",
]
OTHER = [
    "A nightly backup copies the database to a second server.",
    "Renew a certificate before it expires.",
    "The tools of every wood shop in the company.",
]


class Words:
    """A dense encoder of a few words: a direction for money, one for machines, and one for all else."""

    KINDS = (("spent", "team", "month", "spending", "office", "signs"), ("logs", "agent", "server", "backup"))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [
            [sum(text.lower().count(word) for word in kind) for kind in self.KINDS] + [0.5] for text in texts
        ]
        vectors = np.array(rows, dtype=np.float32).reshape(len(texts), 3)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def meanings(encoder: SparseEncoder, texts: list[str]) -> JudgedMeanings:
    ids = encoder.tokenize(texts)
    new = [token.token_id for token in encoder.new_tokens]
    about = np.array([[token in text for token in new] for text in ids], dtype=bool).reshape(
        len(texts), len(new)
    )
    return JudgedMeanings(encoder, ids, about, Words(), np.random.default_rng(0))


def extended(folder: object, *terms: str) -> SparseEncoder:
    encoder = SparseEncoder.load(str(folder))
    extend(encoder, [Term(term, "jargon") for term in terms])
    return encoder


@pytest.fixture(params=["bert", "roberta", "xlm-roberta"])
def encoder(request: pytest.FixtureRequest, tmp_path: object) -> SparseEncoder:
    return extended(build(tmp_path / "model", request.param), "zorvex", "kubectl")


def drawn(source: JudgedMeanings, count: int, seed: int) -> Samples:
    return source.draw(count, np.random.default_rng(seed))


def check(samples: Samples, encoder: SparseEncoder) -> None:
    assert samples.nearness.shape == (len(samples.token_ids), len(encoder.new_tokens))
    assert samples.nearness.dtype == torch.float32
    start, end = encoder.tokenize([""])[0]
    for text in samples.token_ids:
        assert (text[0], text[-1]) == (start, end)
        assert 2 <= len(text) <= encoder.max_tokens
        assert all(isinstance(token, int) and 0 <= token < encoder.old_size for token in text)


def test_texts_never_say_a_term_and_know_what_they_mean(encoder):
    samples = drawn(meanings(encoder, [*SAYING, *OTHER]), 60, 0)
    check(samples, encoder)
    assert len(samples.token_ids) == 120  # as many from anywhere as about a term
    assert (samples.nearness[60:] >= 0).any(dim=1).float().mean() > 0.9
    assert (samples.nearness >= 0).any(dim=0).all()
    assert (samples.nearness < 0).any()


def test_a_judge_tells_the_meaning_whatever_a_text_was_made_from(encoder):
    source = meanings(encoder, [*SAYING, *OTHER])
    zorvex = [token.term for token in encoder.new_tokens].index("zorvex")
    judged = Judge(Words(), [encoder.tokenizer.decode(ids) for ids in source.cut], source.about)
    texts = [encoder.tokenizer.decode(ids, skip_special_tokens=True) for ids in source.pool[:50]]
    assert np.allclose(source.nearness[:50], judged.nearness(texts))
    assert len(np.unique(source.nearness[:, zorvex])) > 2  # not just what it was made from


def test_texts_never_say_a_term_that_the_model_associates_with_everything(tmp_path):
    encoder = extended(build(tmp_path / "model", "bert"), "zorvex", "kubectl")
    with torch.no_grad():
        encoder.output_bias[encoder.old_size :] += 30.0
        assert (encoder(encoder.tokenize(OTHER)).weights[:, encoder.old_size :] > 0).all()
    check(drawn(meanings(encoder, [*SAYING, *OTHER]), 200, 0), encoder)


def test_the_same_seed_draws_the_same_and_another_one_others(encoder):
    texts = [*SAYING, *OTHER]
    first, again = (drawn(meanings(encoder, texts), 20, 5) for _ in range(2))
    assert first.token_ids == again.token_ids
    assert torch.equal(first.nearness, again.nearness)
    assert drawn(meanings(encoder, texts), 20, 6).token_ids != first.token_ids


def test_drawing_depends_on_nothing_drawn_before(encoder):
    source = meanings(encoder, [*SAYING, *OTHER])
    fresh = drawn(source, 10, 3)
    drawn(source, 40, 4)
    assert drawn(source, 10, 3).token_ids == fresh.token_ids


def test_one_source_is_enough(encoder):
    for text in (SAYING[0], OTHER[0], ""):
        check(drawn(meanings(encoder, [text]), 9, 0), encoder)


def test_terms_that_no_source_is_about_are_never_meant(encoder):
    samples = drawn(meanings(encoder, OTHER), 12, 0)
    check(samples, encoder)
    assert len(samples.token_ids) == 12
    assert (samples.nearness < 0).all()
    samples = drawn(meanings(encoder, [SAYING[0], *OTHER]), 12, 0)  # zorvex alone
    check(samples, encoder)
    zorvex = [token.term for token in encoder.new_tokens].index("zorvex")
    assert (samples.nearness[:, zorvex] > 0).any()
    assert (samples.nearness[:, 1 - zorvex] < 0).all()


def test_without_new_tokens_there_is_nothing_to_mean(tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    source = JudgedMeanings(
        encoder, encoder.tokenize(OTHER), np.zeros((3, 0), dtype=bool), Words(), np.random.default_rng(0)
    )
    samples = drawn(source, 7, 0)
    check(samples, encoder)
    assert samples.nearness.shape == (7, 0)


def test_a_text_as_close_to_a_term_as_its_own_has_no_target(encoder):
    twin = SAYING[0].replace("zorvex ", "")
    source = meanings(encoder, [*SAYING, twin, *OTHER])
    zorvex = [token.term for token in encoder.new_tokens].index("zorvex")
    assert not (source.unknown[: len(SAYING)] & source.about[: len(SAYING)]).any()
    assert source.unknown[len(SAYING), zorvex]
    assert not source.unknown[-1].any()


def test_many_sources_are_sampled_and_each_keeps_its_place(encoder, monkeypatch):
    monkeypatch.setattr("sparse_adapt.judged.OTHERS", 2)
    monkeypatch.setattr("sparse_adapt.judged.OWN", 1)
    source = meanings(encoder, [*OTHER, *SAYING, *OTHER])
    assert len(source.cut) <= 4
    assert source.unknown.shape == (10, 2)
