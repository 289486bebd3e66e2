"""Models of every form, built by sentence-transformers, and what their vectors have to be."""

from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SparseEncoder as Theirs
from sentence_transformers.sparse_encoder.modules import (
    Router,
    SparseStaticEmbedding,
    SpladePooling,
    Transformer,
)

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.terms.mining import Term

TERMS = [Term("zorvex", "jargon"), Term("kubectl", "jargon")]
TEXTS = [
    "Set max connections; kubectl logs show the rest (zorvex).",
    "zorvex",
    "",
    "the server of zorvex, " * 12,  # longer than these models read
]
POOLINGS = {
    "log1p_relu": {"activation_function": "log1p_relu"},
    "sum": {"pooling_strategy": "sum"},
    "sum-log1p_relu": {"pooling_strategy": "sum", "activation_function": "log1p_relu"},
}
PROMPTS = {"query": "find the ", "document": "a text: "}


def transformer(folder) -> Transformer:
    return Transformer(str(folder), transformer_task="fill-mask")


def theirs_of(folder, pooling=None, **about) -> Theirs:
    return Theirs(modules=[transformer(folder), SpladePooling(**(pooling or {}))], device="cpu", **about)


def routed(folder, pooling=None, weight=None, **about) -> Theirs:
    """A table on the side of queries."""
    module = transformer(folder)
    weight = (
        torch.rand(len(module.tokenizer), generator=torch.Generator().manual_seed(3))
        if weight is None
        else weight
    )
    table = SparseStaticEmbedding(tokenizer=module.tokenizer, weight=weight, frozen=True)
    router = Router.for_query_document([table], [module, SpladePooling(**(pooling or {}))])
    return Theirs(modules=[router], device="cpu", **about)


def two_encoders(folder, other, pooling=None, **about) -> Theirs:
    """Queries read by the model in `other`, whose tokens are those of the one in `folder`."""
    router = Router.for_query_document(
        [transformer(other), SpladePooling(**(pooling or {}))], [transformer(folder), SpladePooling()]
    )
    return Theirs(modules=[router], device="cpu", **about)


def written(model: Theirs, folder: Path) -> Path:
    model.save(str(folder))
    return folder


def check_same(ours: SparseEncoder, theirs: Theirs) -> None:
    """Ours of both sides, held against theirs."""
    for side, encoded in (("query", theirs.encode_query), ("document", theirs.encode_document)):
        expected = encoded(TEXTS, convert_to_sparse_tensor=False, show_progress_bar=False).numpy()
        found = encode(ours, TEXTS, side).toarray()
        expected[[not text for text in TEXTS]] = 0.0  # we give a text without a word no weights
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5)
        assert (expected > 0).any()
