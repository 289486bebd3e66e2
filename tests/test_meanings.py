"""Made-up texts that mean a term: always the same for a seed, never saying it."""

import numpy as np
import pytest
import torch
from families import build

from sparse_adapt.meanings import Meanings, Samples
from sparse_adapt.model import SparseEncoder
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


def meanings(encoder: SparseEncoder, texts: list[str]) -> Meanings:
    ids = encoder.tokenize(texts)
    new = [token.token_id for token in encoder.new_tokens]
    about = np.array([[token in text for token in new] for text in ids], dtype=bool).reshape(
        len(texts), len(new)
    )
    return Meanings(encoder, ids, about)


def extended(folder: object, *terms: str) -> SparseEncoder:
    encoder = SparseEncoder.load(str(folder))
    extend(encoder, [Term(term, "jargon") for term in terms])
    return encoder


@pytest.fixture(params=["bert", "roberta", "xlm-roberta"])
def encoder(request: pytest.FixtureRequest, tmp_path: object) -> SparseEncoder:
    return extended(build(tmp_path / "model", request.param), "zorvex", "kubectl")


def drawn(source: Meanings, count: int, seed: int) -> Samples:
    return source.draw(count, np.random.default_rng(seed))


def check(samples: Samples, encoder: SparseEncoder) -> None:
    terms = len(encoder.new_tokens)
    assert samples.meant.shape == samples.quiet.shape == (len(samples.token_ids), terms)
    assert samples.meant.dtype == samples.quiet.dtype == torch.bool
    assert not (samples.meant & samples.quiet).any()
    start, end = encoder.tokenize([""])[0]
    for text in samples.token_ids:
        assert (text[0], text[-1]) == (start, end)
        assert 2 <= len(text) <= encoder.max_tokens
        assert all(isinstance(token, int) and 0 <= token < encoder.old_size for token in text)


def test_texts_never_say_a_term_and_know_what_they_mean(encoder):
    samples = drawn(meanings(encoder, [*SAYING, *OTHER]), 60, 0)
    check(samples, encoder)
    assert len(samples.token_ids) == 120  # as many from anywhere as about a term
    assert samples.meant[60:].any(dim=1).all()
    assert samples.meant.any(dim=0).all()
    assert samples.quiet.any()


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
    assert torch.equal(first.meant, again.meant)
    assert torch.equal(first.quiet, again.quiet)
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
    assert not samples.meant.any()
    samples = drawn(meanings(encoder, [SAYING[0], *OTHER]), 12, 0)  # zorvex alone
    check(samples, encoder)
    zorvex = [token.term for token in encoder.new_tokens].index("zorvex")
    assert samples.meant[:, zorvex].any()
    assert not samples.meant[:, 1 - zorvex].any()


def test_without_new_tokens_there_is_nothing_to_mean(tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    source = Meanings(encoder, encoder.tokenize(OTHER), np.zeros((3, 0), dtype=bool))
    samples = drawn(source, 7, 0)
    check(samples, encoder)
    assert samples.meant.shape == (7, 0)


def test_a_source_about_a_term_is_no_ground_for_silence(encoder):
    """A text that may mean a term, being as close to the term's texts as they are, has no target for it."""
    twin = SAYING[0].replace("zorvex ", "")
    source = meanings(encoder, [*SAYING, twin, *OTHER])
    zorvex = [token.term for token in encoder.new_tokens].index("zorvex")
    assert not (source.unknown & source.about).any()
    assert source.unknown[len(SAYING), zorvex]
