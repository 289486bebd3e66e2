"""Relevant content words: found as trying each one finds them, counted, shown."""

import pytest
from conftest import TWELVE

from sparse_adapt.errors import InputError
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.plugins.research.parsing import Parser
from sparse_adapt.plugins.research.relevance import find_relevant_words, plot_relevance, tabulate_relevance
from sparse_adapt.plugins.research.similarity import Likeness, cosines
from sparse_adapt.report.tables import to_json

PAIRS = [
    Likeness("The server sends its log to the client.", "A client sees the log of a server.", 4.0),
    Likeness("A nightly backup copies the database.", "Test the backup every week.", 4.0),
    Likeness("Stop.", "Who signs for spending?", 4.0),
]


@pytest.fixture(scope="module")
def parser() -> Parser:
    return Parser("en")


def test_the_word_is_the_one_that_every_try_finds(tiny_model, parser):
    encoder = load_encoder(tiny_model)
    relevance = find_relevant_words(encoder, PAIRS, parser)
    assert len(relevance.words) == 5  # "Stop." has one word
    first = relevance.words[0]
    assert (first.text, first.other) == PAIRS[0][:2]
    tried = {
        word: float(cosines(encoder, [first.text.replace(word, "", 1).replace("  ", " ")], [first.other])[0])
        for word in ("server", "sends", "log", "client")
    }
    assert first.without == pytest.approx(min(tried.values()), abs=1e-5)
    assert first.word == min(tried, key=lambda word: tried[word])
    assert first.similarity == pytest.approx(float(cosines(encoder, [first.text], [first.other])[0]))


def test_shares_are_of_all_relevant_words_and_of_all_content_words(tiny_model, parser, tmp_path):
    relevance = find_relevant_words(load_encoder(tiny_model), PAIRS, parser)
    rows = to_json(tabulate_relevance(relevance))
    assert sum(row["words"] for row in rows) == 5
    for key in ("share", "content"):
        assert sum(row[key] for row in rows) == pytest.approx(1.0)
    assert [row["words"] for row in rows] == sorted((row["words"] for row in rows), reverse=True)
    plot_relevance(relevance, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"


def test_every_word_goes_wherever_it_is_said(tiny_model, parser):
    encoder = load_encoder(tiny_model)
    pair = Likeness("The server sends the log to the server.", "A log.", 4.0)
    tried = {
        "The": ("server sends log to server.", "A log."),
        "server": ("The sends the log to the.", "A log."),
        "sends": ("The server the log to the server.", "A log."),
        "log": ("The server sends the to the server.", "A log."),
        "to": ("The server sends the log the server.", "A log."),
        "A": (pair.first, "log."),
        "log of the second": (pair.first, "A."),
    }
    left = cosines(encoder, *zip(*tried.values(), strict=True))
    found = find_relevant_words(
        encoder, [pair, Likeness(pair.second, pair.first, 4.0), pair], parser, every=True
    )
    (word,) = found.words  # one of the pair, in whichever order and however often it is given
    assert word.without == pytest.approx(float(left.min()), abs=1e-5)
    assert list(tried)[int(left.argmin())].startswith(word.word)
    assert {row["speech"] for row in found.rows() if row["content"]} >= {"noun", "article", "verb"}


def test_texts_without_words_to_choose_from_are_an_error(tiny_model, parser):
    with pytest.raises(InputError, match="no text has two words to choose from"):
        find_relevant_words(load_encoder(tiny_model), [Likeness("Stop.", "12", 4.0)], parser)


def test_every_document_is_parsed(parser):
    sentences = [each for found in parser.sentences(text for _, _, text in TWELVE) for each in found]
    assert len(sentences) >= 14
    for sentence in sentences:
        assert sentence.text == sentence.text.strip() != ""
        for part in (*sentence.chunks, *sentence.words):
            assert any(map(str.isalnum, sentence.text[part.start : part.end]))
