"""Languages that a detector tells: codes, texts, pairs, and what is missing."""

import sys

import pytest

from sparse_adapt.collection import sentences
from sparse_adapt.collection.examples import Pair
from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ConfigError, MissingExtraError
from sparse_adapt.teachers.pairs import in_language

TEXTS = {
    "en": "The pump moves water from the well to the house.",
    "de": "Die Pumpe befördert das Wasser aus dem Brunnen ins Haus.",
    "fr": "La pompe amène l'eau du puits jusqu'à la maison.",
    "ja": "ポンプは井戸の水を家まで運びます。",
}


@pytest.mark.parametrize("code", TEXTS)
def test_a_sentence_is_told(code):
    assert sentences.language_of(TEXTS[code]) == code
    sentences.check_language(code)


def test_a_pair_is_told_from_query_and_document_together():
    documents = [Document(code, text) for code, text in TEXTS.items()]
    pairs = [Pair("pump", code) for code in TEXTS]
    assert in_language(pairs, documents, "de") == [Pair("pump", "de")]
    assert in_language(pairs, documents, "en") == [Pair("pump", "en")]


def test_an_unknown_language_is_refused():
    with pytest.raises(ConfigError, match="unknown language 'english'"):
        sentences.check_language("english")


def test_without_the_detector_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "py3langid", None)
    sentences._known.cache_clear()
    with pytest.raises(MissingExtraError, match=r"pip install 'sparse-adapt\[language\]'"):
        sentences.check_language("en")
    sentences._known.cache_clear()
