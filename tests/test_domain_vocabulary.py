"""What a vocabulary trained on the corpus has and the model's lacks."""

import pytest
from families import byte_level

from sparse_adapt.collection.readers import Document
from sparse_adapt.model.saved import tokenizer_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.terms.alternatives import trained_vocabulary

TEXTS = [
    "Zorvex is how a team decides; a zorvex report, ZORVEX by zorvex.",
    "kubectl logs and kubectl reports of a zorvex; zorvexes too.",
    "In 1957 and 1957 the \u2603\u2603 server ran hydrofoilage once.",
]


@pytest.fixture
def documents() -> list[Document]:
    return [Document(str(number), text, "") for number, text in enumerate(TEXTS)]


@pytest.fixture
def tokenizer(tiny_model):
    return tokenizer_of(tiny_model)


def test_words_that_the_model_splits_are_found_and_nothing_else(documents, tokenizer):
    found = [term.text for term in trained_vocabulary(documents, tokenizer)]
    assert {"zorvex", "kubectl"} <= set(found)
    assert "server" not in found  # a token already
    assert "1957" not in found  # no letter
    assert not [word for word in found if "#" in word or "\u2603" in word or not word.strip()]
    counted = " ".join(TEXTS).lower()
    assert all(counted.count(word) >= 2 for word in found)
    assert all(word == word.lower() for word in found)


def test_every_word_found_can_be_given_a_token(documents, tokenizer, tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    terms = trained_vocabulary(documents, tokenizer)
    new = extend(encoder, terms).new_tokens
    assert [token.term for token in new] == [term.text for term in terms]
    unknown = tokenizer.unk_token_id
    assert all(len(token.pieces) > 1 and unknown not in token.pieces for token in new)


def test_a_smaller_vocabulary_and_fewer_terms(documents, tokenizer):
    everything = trained_vocabulary(documents, tokenizer)
    assert everything[0].text == "zorvex"  # said more often than any other
    assert trained_vocabulary(documents, tokenizer, top=1) == everything[:1]
    assert trained_vocabulary(documents, tokenizer, size=10) == []  # room for signs alone
    assert trained_vocabulary(documents, tokenizer) == everything


def test_nothing_comes_of_nothing(tokenizer):
    assert trained_vocabulary([], tokenizer) == []
    assert trained_vocabulary([Document("1", "", "")], tokenizer) == []


def test_what_the_tokenizer_cannot_spell_is_left_out(tokenizer):
    documents = [Document("1", "\u0436\u0443\u043a \u0436\u0443\u043a \u0436\u0443\u043a zorvex zorvex", "")]
    assert [term.text for term in trained_vocabulary(documents, tokenizer)] == ["zorvex"]


def test_other_kinds_of_tokenizer_keep_case():
    documents = [Document("1", "Zorvex Zorvex ZORVEX ZORVEX", "")]
    found = {term.text for term in trained_vocabulary(documents, byte_level())}
    assert {"Zorvex", "ZORVEX"} <= found
