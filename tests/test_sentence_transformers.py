"""A model's folder is one of sentence-transformers: its SparseEncoder loads it, and documents score the same."""

import copy
import json

import pytest
import torch
from scaled import with_scales
from sentence_transformers import SparseEncoder as Theirs
from torch.testing import assert_close

import sparse_adapt as sa
from sparse_adapt.model.head.library import install
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


@pytest.mark.parametrize("strategy", ["max", "sum"])
@pytest.mark.parametrize("activation", ["relu", "log1p_relu"])
def test_the_head_in_a_model_of_sentence_transformers_gives_its_weights_and_gradients(
    tiny_model, strategy, activation
):
    plain = Theirs(str(tiny_model), device="cpu")
    plain[1].pooling_strategy, plain[1].activation_function = strategy, activation
    with torch.no_grad():
        decoder = plain[0].auto_model.get_output_embeddings()
        decoder.bias += 0.1 * torch.randn(decoder.bias.shape, generator=torch.Generator().manual_seed(7))
    ours = install(copy.deepcopy(plain))
    for texts in (ASKED, ["server", "", "a backup of the database and of the server " * 4]):
        weights = [each.encode_document(texts, convert_to_sparse_tensor=False) for each in (plain, ours)]
        assert weights[0].count_nonzero() and weights[0].shape == (3, 200)
        assert_close(weights[1], weights[0], atol=1e-5, rtol=1e-5)
        gradients = []
        for each in (plain, ours):
            torch.manual_seed(7)  # for dropout
            each.train()(each.preprocess(texts))["sentence_embedding"].square().sum().backward()
            gradients.append({name: each.grad for name, each in each.named_parameters()})
        assert gradients[0].keys() == gradients[1].keys()
        for name, gradient in gradients[0].items():
            assert (gradient is None) == (gradients[1][name] is None), name
            if gradient is not None:
                assert_close(gradients[1][name], gradient, atol=1e-4, rtol=1e-3, msg=name)
        for each in (plain, ours):
            each.eval().zero_grad()


def test_a_model_with_the_head_is_saved_as_it_was(tiny_model, tmp_path):
    ours = install(Theirs(str(tiny_model), device="cpu"))
    ours.save_pretrained(str(tmp_path / "saved"))
    again = Theirs(str(tmp_path / "saved"), device="cpu")
    vectors = [each.encode_query(ASKED, convert_to_sparse_tensor=False) for each in (ours, again)]
    assert_close(vectors[0], vectors[1], atol=1e-5, rtol=1e-5)


def test_the_head_is_refused_where_it_would_be_another(tiny_model):
    theirs = Theirs(str(tiny_model), device="cpu")
    with pytest.raises(TypeError, match="no masked language model"):
        install(torch.nn.Sequential(theirs[0]))
    decoder = theirs[0].auto_model.get_output_embeddings()
    theirs[0].auto_model.cls.predictions.register_forward_hook(lambda *given: 2 * given[-1])
    with pytest.raises(TypeError, match="more to its logits than one linear layer"):
        install(theirs)
    assert "forward" not in vars(decoder)


def test_a_model_with_exact_words_loads_there_by_its_weights_alone_and_its_card_says_so(
    tiny_model, twelve_documents, tmp_path
):
    added = sa.add_words(str(tiny_model), twelve_documents, tmp_path / "model", device="cpu")
    theirs = Theirs(str(tmp_path / "model"), device="cpu")
    texts = [document.full_text for document in twelve_documents]
    weights = encode(added.model.encoder, texts, "document", scales=False).toarray()
    found = theirs.encode_document(texts, convert_to_sparse_tensor=False).numpy()
    assert_close(torch.from_numpy(found), torch.from_numpy(weights), atol=1e-4, rtol=1e-4)
    card = (tmp_path / "model" / "README.md").read_text()
    assert "sentence-transformers and others that load this folder get all weights of tokens" in card
