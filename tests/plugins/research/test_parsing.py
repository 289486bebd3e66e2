"""What the parsers make of sentences: chunks whose head is a noun, and content words."""

import sys

import pytest

from sparse_adapt.errors import ConfigError, MissingExtraError
from sparse_adapt.plugins.research.parsing import ParsedSentence, Parser

ENGLISH = [
    "We found that the inductive properties of a saw (n = 8) depend on John Smith's team. It was raining.",
    "  ",
    "12 %, 30 % !",
]
JAPANESE = [
    "心筋症を合併した報告は少ない.",
    "「回答の受付は終了しました。」と出ます。",
]


def parts(sentence: ParsedSentence, kind: str = "chunks") -> list[str]:
    return [sentence.text[part.start : part.end] for part in getattr(sentence, kind)]


@pytest.fixture(scope="module")
def english() -> Parser:
    return Parser("en")


@pytest.fixture(scope="module")
def japanese() -> Parser:
    return Parser("ja")


def test_english_chunks_have_no_articles_pronouns_or_numbers_alone(english):
    found = list(english.sentences(ENGLISH))
    first, second = found[0]
    assert {"inductive properties", "saw", "team"} <= set(parts(first))
    assert not {"We", "the inductive properties", "8"} & set(parts(first))
    assert second.text == "It was raining."
    assert second.chunks == ()
    assert parts(second, "words") == ["raining"]
    assert found[1] == []
    assert all(sentence.chunks == () for sentence in found[2])


def test_japanese_chunks_have_no_clauses_brackets_or_particles(japanese):
    first, second = japanese.whole(JAPANESE)
    assert parts(first) == ["報告"]  # GiNZA's chunk begins with the clause that describes it
    assert {"回答", "受付"} <= set(parts(second))
    assert "心筋" in "".join(parts(first, "words"))


def test_an_unknown_language_names_those_there_are():
    with pytest.raises(ConfigError, match="unknown language 'fr'; there are en, ja"):
        Parser("fr")


def test_without_spacy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sparse-adapt\[spacy\]'"):
        Parser("en")


def test_without_the_pipeline_of_a_language_too(monkeypatch):
    monkeypatch.setattr("sparse_adapt.plugins.research.parsing.PIPELINES", {"en": ("no_such_pipeline",)})
    with pytest.raises(MissingExtraError, match=r"no_such_pipeline is not installed: pip install"):
        Parser("en")
