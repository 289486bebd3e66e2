"""Synthetic texts that mean a term: always the same for a seed, never saying it. A labeller tells how far each means
it.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from commands import ran
from dense_models import tiny_dense
from families import build
from numpy.typing import NDArray

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.objectives.meanings import defined_texts
from sparse_adapt.stages.dictionary import Dictionary
from sparse_adapt.stages.warmup import shared_features
from sparse_adapt.synthetic.background import like_queries
from sparse_adapt.synthetic.labelled import BACKGROUND_ONE_IN, LabelledMeanings
from sparse_adapt.synthetic.labels import Labeller
from sparse_adapt.synthetic.windows import Meanings, Samples, SyntheticTexts
from sparse_adapt.terms.mining import Term

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
BACKGROUND = like_queries()[::8]
FAMILIES = ["bert", "roberta", "xlm-roberta"]

Source = SyntheticTexts
Make = Callable[[SparseEncoder, list[str]], Source]


class Words:
    """A dense encoder of a few words: a direction for money, one for machines, and one for all else."""

    KINDS = (("spent", "team", "month", "spending", "office", "signs"), ("logs", "agent", "server", "backup"))

    def encode(self, texts: Sequence[str], progress: object = None) -> NDArray[np.float32]:
        rows = [
            [sum(text.lower().count(word) for word in kind) for kind in self.KINDS] + [0.5] for text in texts
        ]
        vectors = np.array(rows, dtype=np.float32).reshape(len(texts), 3)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def about(encoder: SparseEncoder, ids: list[list[int]]) -> NDArray[np.bool_]:
    new = [token.token_id for token in encoder.new_tokens]
    return np.array([[token in text for token in new] for text in ids], dtype=bool).reshape(
        len(ids), len(new)
    )


def told(encoder: SparseEncoder, texts: list[str]) -> Meanings:
    """What a text means is what it was made from."""
    ids = encoder.tokenize(texts)
    return Meanings(encoder, ids, about(encoder, ids))


def labelled(encoder: SparseEncoder, texts: list[str]) -> LabelledMeanings:
    ids = encoder.tokenize(texts)
    return LabelledMeanings(encoder, ids, about(encoder, ids), Words(), np.random.default_rng(0))


def extended(folder: object, *terms: str) -> SparseEncoder:
    encoder = SparseEncoder.load(str(folder))
    extend(encoder, [Term(term, "jargon") for term in terms])
    return encoder


@pytest.fixture(name="zorvex_extended")
def _zorvex_extended(tiny_model, tmp_path):
    extended(tiny_model, "zorvex").save(tmp_path / "extended")
    return tmp_path / "extended"


@pytest.fixture(autouse=True)
def _some_background_texts(monkeypatch):
    """One in sixteen of them, which are read as quickly as the few sources here."""
    monkeypatch.setattr("sparse_adapt.synthetic.labelled.like_queries", lambda: BACKGROUND)


@pytest.fixture(params=FAMILIES)
def encoder(request: pytest.FixtureRequest, tmp_path: object) -> SparseEncoder:
    return extended(build(tmp_path / "model", request.param), "zorvex", "kubectl")


@pytest.fixture(params=[told, labelled])
def make(request: pytest.FixtureRequest) -> Make:
    return request.param


def place_of(encoder: SparseEncoder, term: str) -> int:
    return [token.term for token in encoder.new_tokens].index(term)


def drawn(source: Source, count: int, seed: int) -> Samples:
    return source.draw(count, np.random.default_rng(seed))


def check(samples: Samples, encoder: SparseEncoder) -> None:
    shape = (len(samples.token_ids), len(encoder.new_tokens))
    assert samples.meaning.shape == samples.inactive.shape == shape
    assert samples.meaning.dtype == samples.inactive.dtype == torch.bool
    assert not (samples.meaning & samples.inactive).any()
    if samples.similarity_margin is not None:
        assert samples.similarity_margin.dtype == torch.float32
        assert torch.equal(samples.meaning, samples.similarity_margin >= 0)
        assert (samples.meaning | samples.inactive).all()
    start, end = encoder.tokenize([""])[0]
    for text in samples.token_ids:
        assert (text[0], text[-1]) == (start, end)
        assert 2 <= len(text) <= encoder.max_tokens
        assert all(isinstance(token, int) and 0 <= token < encoder.old_size for token in text)


def test_texts_never_say_a_term_and_know_what_they_mean(encoder, make):
    samples = drawn(make(encoder, [*SAYING, *OTHER]), 60, 0)
    check(samples, encoder)
    assert len(samples.token_ids) == 120  # as many from anywhere as about a term
    assert (samples.similarity_margin is None) == (make is told)
    about_one = samples.meaning[60:].any(dim=1)
    assert about_one.all() if make is told else about_one.float().mean() > 0.9
    assert samples.meaning.any(dim=0).all()
    assert samples.inactive.any()


def test_a_labeller_tells_the_meaning_whatever_a_text_was_made_from(encoder):
    source = labelled(encoder, [*SAYING, *OTHER])
    sources = [encoder.tokenizer.decode(ids) for ids in source.cut]
    background = Words().encode(BACKGROUND[::BACKGROUND_ONE_IN])
    labeller = Labeller(Words(), sources, source.about, background)
    texts = [encoder.tokenizer.decode(ids, skip_special_tokens=True) for ids in source.pool[:50]]
    assert np.allclose(source.similarity_margin[:50], labeller.similarity_margin(texts))
    assert np.allclose(source.similarity_margin[-len(background) :], labeller.of_vectors(background))
    zorvex = place_of(encoder, "zorvex")
    assert len(np.unique(source.similarity_margin[:, zorvex])) > 2  # not just what it was made from


def test_the_words_that_may_stand_for_another_are_those_nearest_to_it(encoder):
    source, random = labelled(encoder, [*SAYING, *OTHER]), np.random.default_rng(1)
    vectors = (random.integers(-2, 3, (len(source.words), 2)) / 2).astype(np.float32)  # many are equally near
    for text, found in zip(source.cut, source._alike(vectors), strict=True):
        for place, token in enumerate(text):
            row = np.flatnonzero(source.words == token)
            cosines = (vectors @ vectors[row[0]] if len(row) else np.zeros(0)).tolist()
            others = [number for number in range(len(cosines)) if number != row[0] and cosines[number] > 0.4]
            nearest = sorted(others, key=lambda number: -cosines[number])[:11]
            assert found.get(place, []) == source.words[nearest].tolist()


def test_a_later_stage_reads_nothing_again_but_what_its_model_worded(encoder):
    class Noting(Words):
        def encode(self, texts: Sequence[str], progress: object = None) -> NDArray[np.float32]:
            read.append(len(texts))
            return super().encode(texts)

    ids, dense = encoder.tokenize([*SAYING, *OTHER]), Noting()
    for _ in range(2):
        read = list[int]()
        source = LabelledMeanings(encoder, ids, about(encoder, ids), dense, np.random.default_rng(0))
    assert len(read) == 1 and 0 < read[0] < 0.2 * source.made


def test_texts_never_say_a_term_that_the_model_associates_with_everything(tmp_path, make):
    encoder = extended(build(tmp_path / "model", "bert"), "zorvex", "kubectl")
    with torch.no_grad():
        encoder.output_bias[encoder.old_size :] += 30.0
        assert (encoder(encoder.tokenize(OTHER)).weights[:, encoder.old_size :] > 0).all()
    check(drawn(make(encoder, [*SAYING, *OTHER]), 200, 0), encoder)


def test_the_same_seed_draws_the_same_and_another_one_others(encoder, make):
    texts = [*SAYING, *OTHER]
    first, again = (drawn(make(encoder, texts), 20, 5) for _ in range(2))
    assert first.token_ids == again.token_ids
    assert torch.equal(first.meaning, again.meaning)
    assert torch.equal(first.inactive, again.inactive)
    assert first.similarity_margin is again.similarity_margin or torch.equal(
        first.similarity_margin, again.similarity_margin
    )
    assert drawn(make(encoder, texts), 20, 6).token_ids != first.token_ids


def test_drawing_depends_on_nothing_drawn_before(encoder, make):
    source = make(encoder, [*SAYING, *OTHER])
    fresh = drawn(source, 10, 3)
    drawn(source, 40, 4)
    assert drawn(source, 10, 3).token_ids == fresh.token_ids


def test_one_source_is_enough(encoder, make):
    for text in (SAYING[0], OTHER[0], ""):
        check(drawn(make(encoder, [text]), 9, 0), encoder)


def test_terms_that_no_source_is_about_are_never_meant(encoder, make):
    samples = drawn(make(encoder, OTHER), 12, 0)
    check(samples, encoder)
    assert len(samples.token_ids) == 12
    assert not samples.meaning.any()
    samples = drawn(make(encoder, [SAYING[0], *OTHER]), 12, 0)  # zorvex alone
    check(samples, encoder)
    zorvex = place_of(encoder, "zorvex")
    assert samples.meaning[:, zorvex].any()
    assert samples.similarity_margin is None or (samples.similarity_margin[:, zorvex] > 0).any()
    assert not samples.meaning[:, 1 - zorvex].any()


def test_without_new_tokens_there_is_nothing_to_mean(tiny_model, make):
    encoder = SparseEncoder.load(tiny_model)
    samples = drawn(make(encoder, OTHER), 7, 0)
    check(samples, encoder)
    assert samples.meaning.shape == (7, 0)


def test_a_text_as_close_to_a_term_as_its_own_is_no_ground_for_silence(encoder, make):
    """A text that may mean a term, being as close to the term's texts as they are, has no target for it."""
    source = make(encoder, [*SAYING, SAYING[0].replace("zorvex ", ""), *OTHER])
    assert not (source.unknown & source.about).any()
    assert source.unknown[len(SAYING), place_of(encoder, "zorvex")]
    assert make is told or not source.unknown[-1].any()  # a labeller sees what the small model doesn't


def test_many_sources_are_sampled_and_each_keeps_its_place(encoder, monkeypatch):
    monkeypatch.setattr("sparse_adapt.synthetic.labelled.OTHERS", 2)
    monkeypatch.setattr("sparse_adapt.synthetic.labelled.OWN", 1)
    source = labelled(encoder, [*OTHER, *SAYING, *OTHER])
    assert len(source.cut) <= 4
    assert source.unknown.shape == (10, 2)


def test_a_reworded_window_keeps_its_places_or_takes_words_alike(encoder):
    """Words that one encoder finds alike may stand for each other; no other word comes in."""
    source = labelled(encoder, [*SAYING, *OTHER])
    row = 0
    text, alike = source.cut[row], source.alike[row]
    for place, others in alike.items():
        assert text[place] not in others
        assert 0 < len(others) <= 11
    random = np.random.default_rng(0)
    allowed = set(text) | {word for others in alike.values() for word in others}
    texts = [source._reworded(row, random) for _ in range(40)]
    assert all(set(made) <= allowed for made in texts)
    assert not alike or any(not set(made) <= set(text) for made in texts)


def test_words_of_any_kind_are_common_ones_more_often(encoder):
    source = labelled(encoder, [*SAYING, *OTHER])
    drawn_words = source._any(4000, np.random.default_rng(0))
    assert set(drawn_words) <= set(source.words.tolist())
    half = np.isin(drawn_words, source.words[: len(source.words) // 2]).mean()
    assert 0.5 < half < 0.7  # 2 ** -0.75 = 0.59


def test_words_learn_together_by_what_the_labeller_knows_of_them(encoder):
    texts, settings = [*SAYING, *OTHER], Dictionary()
    source = labelled(encoder, texts)
    found = shared_features(source, settings)
    assert found is not None
    assert found.pace == 2.0
    assert found.token_ids.tolist() == source.words.tolist()
    assert found.features.mean(dim=0).abs().max() < 1e-6
    assert shared_features(source, settings.model_copy(update={"shared_steps": 0.0})) is None
    assert shared_features(told(encoder, texts), settings) is None


def test_a_document_that_says_what_an_acronym_is_short_for_is_about_it(tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    extend(encoder, [Term("acl", "acronyms"), Term("zorvex", "jargon")])
    definitions = [
        Definition("ACL", "access control list"),
        Definition(
            "ACL", "a document that tells at great length who may read or write what of all that there is"
        ),
        Definition("zorvex", "spending"),  # one word is no long form
    ]
    texts = ["An Access Control List of spending.", "An access list.", f"Here {definitions[1].definition}."]
    found = defined_texts(encoder, definitions, texts)
    acl, zorvex = ([token.term for token in encoder.new_tokens].index(term) for term in ("acl", "zorvex"))
    about = found.about[list(found.documents)]
    assert about[:, acl].tolist() == [True, False, False] and not about[:, zorvex].any()
    assert not found.texts.says[list(found.documents)].any()


def test_fewer_steps_have_as_many_fewer_texts_labelled(
    zorvex_extended, tiny_model, zorvex_collection, tmp_path, monkeypatch
):
    monkeypatch.setattr("sparse_adapt.synthetic.labelled.POOL", 100)
    monkeypatch.setattr("sparse_adapt.stages.dictionary.STEPS", 10)
    monkeypatch.setattr("sparse_adapt.objectives.rows.FITTED", 20)
    monkeypatch.setattr("sparse_adapt.objectives.rows.STEPS", 2)
    words = ["dictionary", "--model", str(zorvex_extended), "--glossary", str(zorvex_collection)]
    words += ["--labeller", str(tiny_dense(tiny_model, tmp_path / "dense")), "--device", "cpu"]
    made: dict[str, int] = {}
    for steps in ("1", "10"):
        made_of = LabelledMeanings._made

        def counted(self, count, random, steps=steps, made_of=made_of):
            made[steps] = count
            return made_of(self, count, random)

        with monkeypatch.context() as patch:
            patch.setattr(LabelledMeanings, "_made", counted)
            status, said = ran(*words, "--steps", steps, "-o", str(tmp_path / steps))
        assert status == 0, said
        assert ("dictionary: 1 of 10 steps, so 10% of the texts are labelled" in said) == (steps == "1")
    assert made == {"1": 210, "10": 2_100}
