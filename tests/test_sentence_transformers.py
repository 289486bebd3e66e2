"""A model's folder is one of sentence-transformers: its SparseEncoder loads it, and documents score the same."""

import json

import torch
from scaled import with_scales
from sentence_transformers import SparseEncoder as Theirs
from torch.testing import assert_close

from sparse_adapt.retrieve.encode import encode

ASKED = ["a backup of the database", "zorvex reports", "the server"]


def test_a_model_with_scales_scores_alike_in_sentence_transformers(tiny_model, twelve_documents, tmp_path):
    model, texts = with_scales(tiny_model), [document.full_text for document in twelve_documents]
    model.save(tmp_path / "model")
    theirs = Theirs(str(tmp_path / "model"), device="cpu")
    token_scales = torch.tensor(
        json.loads((tmp_path / "model/token_scales.json").read_text())["token_scales"]
    )
    queries = theirs.encode_query(ASKED, convert_to_sparse_tensor=False) * token_scales.square()
    documents = theirs.encode_document(texts, convert_to_sparse_tensor=False)
    ours = encode(model, ASKED, "query") @ encode(model, texts, "document").T
    assert_close(
        theirs.similarity(queries, documents), torch.from_numpy(ours.toarray()), atol=1e-4, rtol=1e-4
    )
