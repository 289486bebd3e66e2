"""A table for queries: learnt from scored documents, asked for in `adapt`, saved so that others read it."""

import json

import numpy as np
import pytest
import torch
from formed import check_same
from sentence_transformers import SparseEncoder as Theirs
from test_adapting import SETTINGS, Heard, corpus, request_  # noqa: F401 - fixtures

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.model.query_side import QuerySide, idf_side
from sparse_adapt.model.reading import Windows
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.adapt import adapt
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.selection.models import merge
from sparse_adapt.stages.query_table import QueryTable, TableReading, TokenWeights, hold
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.training.loop import train

QUERY = "the server"  # of its two tokens, the first stands in what the teacher likes, the second in what it doesn't


class Weighs(SparseEncoder):
    """An encoder whose documents weigh 1 at each token that they say, and nothing elsewhere."""

    def weights(self, token_ids):
        found = torch.zeros(len(token_ids), self.vocabulary_size)
        for row, ids in enumerate(token_ids):
            found[row, list(ids)] = 1.0
        return found


def examples() -> tuple[list[Candidates], dict[str, str]]:
    documents = {"a": "the the", "b": "server", "c": "a backup"}
    return [Candidates("q", QUERY, tuple(documents), (5.0, 1.0, 0.0))], documents


def test_the_table_begins_at_the_inverse_document_frequency():
    side = idf_side([[0, 1, 1], [1], [1, 3]], 4, 9, weightless=[0])
    np.testing.assert_allclose(side.weights, [0.0, *np.log1p([0.5 / 3.5, 3.5 / 0.5, 2.5 / 1.5])], rtol=1e-6)
    assert side.longest == 9


def test_a_token_of_documents_that_the_teacher_likes_gains(tiny_model, tmp_path):
    encoder = Weighs.load(tiny_model)
    task = TokenWeights(encoder, *examples(), QueryTable(steps=30, shrinkage=0.5, device="cpu"))
    before = encoder.query_side.weights.copy()
    liked, other = (encoder.tokenize([word], "query")[0][0] for word in QUERY.split())
    train(encoder, task, tmp_path)
    task.conclude(encoder)
    gain = encoder.query_side.weights / np.maximum(before, 1e-9)
    assert gain[liked] > gain[other]
    half = np.log(gain[liked])
    encoder.query_side = QuerySide(before, 64)
    task.settings = task.settings.model_copy(update={"shrinkage": 0.0})
    task.conclude(encoder)  # all of what was learnt is twice the half of it
    assert np.log(encoder.query_side.weights[liked] / before[liked]) == pytest.approx(2 * half, rel=1e-4)
    assert (encoder.query_side.weights[list(encoder.tokenizer.all_special_ids)] == 0).all()


def test_scores_and_the_hold_are_those_worked_out_by_hand(tiny_model):
    encoder = Weighs.load(tiny_model)
    task = TokenWeights(encoder, *examples(), QueryTable(calibrate=False, device="cpu"))
    liked, other = task.queries[0]
    reading = TableReading(task, task.batch(np.random.default_rng(0)))
    assert hold(reading) == 0.0
    with torch.no_grad():
        task.beside.own[liked], task.beside.own[other] = 0.5, -2.0
    reading = TableReading(task, task.batch(np.random.default_rng(0)))
    expected = [task.start[liked] * np.exp(0.5), task.start[other] * np.exp(-2.0), 0.0]
    np.testing.assert_allclose(reading.compared.student[0].detach(), expected, rtol=1e-5)
    assert hold(reading).item() == pytest.approx(0.5**2 + 2.0**2)


def test_the_stage_leaves_the_model_as_it_is_and_others_read_the_table(
    tiny_model, zorvex_collection, tmp_path
):
    settings = settings_for("query-table", overrides={"steps": 3, "batch_size": 4, "device": "cpu"})
    inputs = {"corpus": zorvex_collection}
    done = carry_out_stage("query-table", str(tiny_model), inputs, Place(tmp_path / "out"), settings)
    before, after = SparseEncoder.load(tiny_model), SparseEncoder.load(tmp_path / "out")
    for name, value in before.masked_lm.state_dict().items():
        assert torch.equal(value, after.masked_lm.state_dict()[name]), name
    assert after.query_side is not None and "3 steps" in done.message
    check_same(after, Theirs(str(tmp_path / "out"), device="cpu"))
    again = carry_out_stage("query-table", str(tmp_path / "out"), inputs, Place(tmp_path / "more"), settings)
    assert again.record["tokens_said"] == done.record["tokens_said"]  # a table that is there learns further


def test_scales_fold_into_the_table_and_scores_stay(tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    random = np.random.default_rng(0)
    encoder.query_side = QuerySide(random.random(encoder.vocabulary_size).astype(np.float32), 64)
    encoder.token_scales = random.random(encoder.vocabulary_size).astype(np.float32)
    texts = ["the server of a client", "a backup"]

    def scores():
        return (encode(encoder, texts, "query") @ encode(encoder, texts, "document").T).toarray()

    before = scores()
    encoder.fold_scales()
    assert encoder.token_scales is None
    np.testing.assert_allclose(scores(), before, rtol=1e-5)


def test_between_two_models_their_tables_are_between_too(tiny_model):
    models = [SparseEncoder.load(tiny_model) for _ in range(2)]
    for number, model in enumerate(models):
        model.query_side = QuerySide(np.full(model.vocabulary_size, 1.0 + number, np.float32), 64)
    assert merge(models[0], models[1], 0.25).query_side.weights == pytest.approx(1.75)


def test_adapt_ends_in_a_model_whose_queries_a_table_weighs(request_, tmp_path):  # noqa: F811
    settings = SETTINGS.model_copy(update={"query_side": "table", "windows": 24, "overlap": 6})
    request = type(request_)(**{**vars_of(request_), "settings": settings})
    heard = Heard()
    done = adapt(request, Place(tmp_path / "run"), heard)
    assert heard.plan.startswith("query-table, rank (a table weighs queries, and no model)")
    kept = SparseEncoder.load(done.model)
    assert kept.query_side is not None and kept.token_scales is None
    new = [token.token_id for token in kept.new_tokens]
    assert (kept.query_side.weights[new] > 0).all()
    choice = json.loads((tmp_path / "run" / "choice.json").read_text())
    assert choice["kept"] > 1  # the base model has no table
    assert "--query-side table" in request.command()
    assert kept.windows == Windows(24, 6)
    kept.read_by(None)  # other programs read a document's beginning
    check_same(kept, Theirs(str(done.model), device="cpu"))


def test_stages_that_teach_queries_to_expand_are_refused_beside_a_table(request_):  # noqa: F811
    settings = SETTINGS.model_copy(update={"query_side": "table", "stages": ("extend", "dictionary", "rank")})
    request = type(request_)(**{**vars_of(request_), "settings": settings})
    with pytest.raises(ConfigError, match="the stage dictionary teaches queries to activate tokens"):
        request.check()


def vars_of(request):
    return {name: getattr(request, name) for name in request.__slots__}
