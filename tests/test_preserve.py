"""The stage that keeps what a model did before its extension, and weights as shares of the gradient."""

import json

import pytest
import torch
from dense_models import tiny_dense

from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.model import vocabulary
from sparse_adapt.model.sparse import Pooled, SparseEncoder
from sparse_adapt.objectives.balance import balanced
from sparse_adapt.stages.preserve import Preserve, PreserveBatch, SparsePreserve, reaching
from sparse_adapt.stages.record import extended_from
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.terms.mining import Term, write_terms
from sparse_adapt.training.loop import random_at, train


@pytest.fixture
def texts(twelve_documents) -> list[str]:
    return [document.full_text for document in twelve_documents]


def stage_of(tiny_model, texts, **settings) -> tuple[SparseEncoder, SparsePreserve]:
    encoder, before = SparseEncoder.load(tiny_model), SparseEncoder.load(tiny_model)
    vocabulary.extend(encoder, [Term("zorvex", "coined"), Term("kubectl", "coined")])
    wanted = Preserve(**{"batch_size": 4, "steps": 3, "device": "cpu", **settings})
    return encoder, SparsePreserve(encoder, before, texts, wanted)


def test_a_batch_is_half_documents_half_snippets_and_mostly_says_new_terms(tiny_model, texts):
    _, stage = stage_of(tiny_model, texts, batch_size=16, snippet_words=3, background=0.0)
    saying = 0
    for step in range(8):
        batch = stage.batch(random_at(0, step))
        assert len(batch.ids) == len(batch.before) == 16
        assert all(token < stage.old for ids in batch.before for token in ids)
        saying += sum(bool(set(ids) & stage.pieces.keys()) for ids in batch.ids)
    assert 0.6 < saying / (8 * 16) < 0.9  # three in four are drawn for it, and some of the others say one too


def test_some_texts_are_of_background_words(tiny_model, texts):
    _, stage = stage_of(tiny_model, texts, batch_size=16, document_words=10, background=0.25)
    stage.saying, stage.mentioned, stage.documents = {}, [], ["zorvex"]
    told = [stage.batch(random_at(0, step)) for step in range(20)]
    (zorvex,) = stage.reference.tokenize(["zorvex"])
    said = [ids == zorvex for batch in told for ids in batch.before]
    assert 0.7 < sum(said) / len(said) < 0.8
    assert max(len(ids) for batch in told for ids in batch.before[:8]) > max(
        len(ids) for batch in told for ids in batch.before[8:]
    )


def test_where_new_rows_learn_alone_the_others_stay(tiny_model, texts, tmp_path):
    encoder, stage = stage_of(tiny_model, texts, steps=4, train="new")
    before = {name: value.clone() for name, value in encoder.named_parameters()}
    train(encoder, stage, tmp_path)
    moved = {name: v for name, v in encoder.named_parameters() if not torch.equal(v, before[name])}
    assert moved
    for name, value in moved.items():
        torch.testing.assert_close(value[: stage.old], before[name][: stage.old], rtol=0, atol=0)


def test_what_pieces_weighed_is_handed_over(tiny_model, texts):
    _, stage = stage_of(tiny_model, texts, handed=0.36)
    token = stage.added[0]
    first, second = token.pieces[:2]
    wanted = torch.zeros(1, stage.old + 2)
    wanted[0, first], wanted[0, second] = 3.0, 4.0
    stage._hand_over(wanted, PreserveBatch([[2, token.token_id, 3]], [[]]))
    # the root of 0.36 x (9 + 16) is 3; the pieces keep the root of 0.64: 0.8 of their weight
    torch.testing.assert_close(wanted[0, token.token_id], torch.tensor(3.0))
    torch.testing.assert_close(wanted[0, [first, second]], torch.tensor([2.4, 3.2]))
    assert pytest.approx(3.0**2 + 2.4**2 + 3.2**2) == 9 + 16  # the score of two such texts is what it was


def test_a_piece_that_also_stands_for_itself_keeps_its_weight(tiny_model, texts):
    _, stage = stage_of(tiny_model, texts, handed=1.0)
    token = stage.added[0]
    first = token.pieces[0]
    wanted = torch.zeros(1, stage.old + 2)
    wanted[0, list(token.pieces)] = 2.0
    stage._hand_over(wanted, PreserveBatch([[2, token.token_id, first, 3]], [[]]))
    assert wanted[0, first] == 2.0 and wanted[0, token.pieces[1]] == 0.0


def test_a_weight_that_is_wanted_and_off_has_a_gradient():
    maximum = torch.tensor([[-2.0, -2.0, 1.0]], requires_grad=True)
    values = reaching(Pooled(maximum, torch.zeros(1, 3)), torch.tensor([[True, False, True]]))
    torch.testing.assert_close(values, torch.tensor([[-2.0, 0.0, 0.6931472]]))  # ln 2
    values.sum().backward()
    torch.testing.assert_close(maximum.grad, torch.tensor([[1.0, 0.0, 0.5]]))  # 1 / (1 + 1)


def test_it_wins_back_what_the_extension_lost(tiny_model, texts, tmp_path):
    encoder, stage = stage_of(tiny_model, texts, steps=30, learning_rate=2e-3, background=0.0)
    history = train(encoder, stage, tmp_path)
    first, last = history[:5], history[-5:]
    assert sum(row["old"] for row in last) < 0.6 * sum(row["old"] for row in first)
    assert sum(row["new"] for row in last) < 0.6 * sum(row["new"] for row in first)


def test_a_model_without_new_tokens_is_refused(tiny_model, texts):
    same = SparseEncoder.load(tiny_model)
    with pytest.raises(ConfigError, match="no tokens beyond the 200 of the model before it; extend it first"):
        SparsePreserve(same, SparseEncoder.load(tiny_model), texts, Preserve())


def test_the_model_before_is_found_behind_the_folder(tiny_model, zorvex_collection, tmp_path):
    settings = Preserve(steps=1, batch_size=2, device="cpu")
    write_terms(tmp_path / "terms.json", [Term("zorvex", "coined")])
    carry_out_stage(
        "extend", str(tiny_model), {"terms": tmp_path / "terms.json"}, Place(tmp_path / "extended")
    )
    corpus = str(zorvex_collection)
    out = Place(tmp_path / "preserve")
    outcome = carry_out_stage("preserve", str(tmp_path / "extended"), {"corpus": corpus}, out, settings)
    assert outcome.record["steps"] == 1
    assert extended_from(str(tmp_path / "preserve")) == str(tiny_model)
    assert json.loads((tmp_path / "preserve" / "stage.json").read_text())["stage"] == "preserve"
    with pytest.raises(ConfigError, match="nothing says which model was extended to this one"):
        carry_out_stage("preserve", str(tiny_model), {"corpus": corpus}, Place(tmp_path / "other"), settings)
    assert not (tmp_path / "other").exists()


def test_what_stands_before_a_sparse_model_is_sparse(tiny_model, zorvex_collection, tmp_path):
    write_terms(tmp_path / "terms.json", [Term("zorvex", "coined")])
    carry_out_stage(
        "extend", str(tiny_model), {"terms": tmp_path / "terms.json"}, Place(tmp_path / "extended")
    )
    dense = str(tiny_dense(tiny_model, tmp_path / "dense"))
    place = Place(tmp_path / "out")
    with pytest.raises(ConfigError, match="one is sparse, the other dense; name another --baseline"):
        named = {"corpus": zorvex_collection, "before": dense}
        carry_out_stage("preserve", str(tmp_path / "extended"), named, place)
    assert not place.folder.exists()


def test_balanced_weights_make_terms_pull_as_told(tiny_model, texts):
    encoder, stage = stage_of(tiny_model, texts)
    stage.weights = {"old": 1.0, "new": 0.5, "extra": 0.0}
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    stage.weights = balanced(encoder, stage)
    assert stage.weights["old"] == 1.0
    again = balanced(encoder, stage)
    assert again["new"] == pytest.approx(stage.weights["new"] ** 2 / 0.5)  # the same factor once more
    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())


def test_a_weight_of_nothing_stays_nothing(tiny_model, texts):
    encoder, stage = stage_of(tiny_model, texts)
    stage.weights = {"old": 0.0, "new": 0.0, "extra": 0.0}
    assert balanced(encoder, stage) == {"old": 0.0, "new": 0.0, "extra": 0.0}


def test_what_learns_beside_an_encoder_is_on_its_device_before_the_first_step(tiny_model, texts, monkeypatch):
    encoder, stage = stage_of(tiny_model, texts)
    stage.beside = torch.nn.Linear(2, 2)
    monkeypatch.setattr(SparseEncoder, "device", torch.device("meta"))
    places: list[str] = []

    def terms(*_: object) -> dict[str, torch.Tensor]:
        places.append(stage.beside.weight.device.type)
        return {key: torch.zeros(()) for key in stage.weights}

    monkeypatch.setattr(stage, "terms", terms)
    balanced(encoder, stage)
    assert set(places) == {"meta"}
