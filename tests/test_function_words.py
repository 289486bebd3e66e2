"""Which tokens say nothing of a topic, whatever marks the start of a word in the vocabulary."""

import pytest

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.terms.function_words import FUNCTION_WORDS, function_tokens, is_function_token


@pytest.mark.parametrize(
    "token", ["the", "The", "very", "Ġthe", "▁of", ",", "##-", "Ġ,", "…", "(", "##", "▁", "$"]
)
def test_function_tokens(token):
    assert is_function_token(token)


@pytest.mark.parametrize(
    "token", ["server", "##the", "##ing", "[unused12]", "ĠGod", "c++", "2", "it's", "théâtre"]
)
def test_tokens_with_a_meaning(token):
    assert not is_function_token(token)


def test_function_words_are_single_lower_case_words():
    assert len(FUNCTION_WORDS) > 150
    assert all(word.isalpha() and word == word.casefold() for word in FUNCTION_WORDS)


def test_special_tokens_say_nothing(tiny_model):
    tiny = SparseEncoder.load(tiny_model)
    marks = function_tokens(tiny.tokenizer)
    names = {token for token, token_id in tiny.tokenizer.get_vocab().items() if marks[token_id]}
    assert names >= {"[CLS]", "[SEP]", "[PAD]", ",", "the", "and", "s"}
    assert not names & {"server", "##s", "client", "1", "zorvex"}
