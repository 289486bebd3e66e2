"""A dense encoder keeps what it did before its extension."""

import pytest
from dense_models import tiny_dense

from sparse_adapt.model import vocabulary
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.plugins.research.stages.dense import DensePreserve
from sparse_adapt.stages.preserve import Preserve, PreserveBatch
from sparse_adapt.terms.mining import Term
from sparse_adapt.training.loop import train


@pytest.fixture
def texts(twelve_documents) -> list[str]:
    return [document.full_text for document in twelve_documents]


def dense_stage(tiny_model, texts, folder, **settings) -> tuple[SentenceEncoder, DensePreserve]:
    encoder, before = (
        SentenceEncoder.load(tiny_dense(tiny_model, folder / name)) for name in ("after", "before")
    )
    vocabulary.extend(encoder, [Term("zorvex", "coined"), Term("kubectl", "coined")])
    wanted = Preserve(**{"batch_size": 4, "steps": 3, "device": "cpu", **settings})
    return encoder, DensePreserve(encoder, before, texts, wanted)


def test_a_dense_encoder_is_as_far_from_before_as_two_less_two_cosines(tiny_model, texts, tmp_path):
    encoder, stage = dense_stage(tiny_model, texts, tmp_path)
    said = ["zorvex stops", "it starts kubectl again and again"]
    told = PreserveBatch(encoder.tokenize(said), stage.reference.tokenize(said))
    cosines = (encoder.encode(said) * stage.reference.encode(said)).sum(axis=1)
    found = stage.terms(encoder, told)
    assert set(found) == set(stage.weights) == {"old"}
    assert found["old"].item() == pytest.approx(2 - 2 * cosines.mean(), abs=1e-5)
    assert found["old"].item() > 1e-4  # an average of its pieces isn't what they were
    same = PreserveBatch(encoder.tokenize(["it starts"]), stage.reference.tokenize(["it starts"]))
    assert stage.terms(encoder, same)["old"].item() == pytest.approx(0.0, abs=1e-6)


def test_a_dense_encoder_learns_to_say_what_it_said_before(tiny_model, texts, tmp_path):
    encoder, stage = dense_stage(tiny_model, texts, tmp_path, steps=30, learning_rate=2e-3, background=0.0)
    said = [text for text in texts if "zorvex" in text.lower()]
    wanted = stage.reference.encode(said)
    before = (encoder.encode(said) * wanted).sum(axis=1).mean()
    train(encoder, stage, tmp_path / "work")
    assert 1 - (encoder.encode(said) * wanted).sum(axis=1).mean() < 0.5 * (1 - before)
