"""A table for queries: token scales fold into it, and between two models it is between theirs."""

import numpy as np
import pytest

from sparse_adapt.model.query_side import QuerySide
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.selection.models import merge


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
