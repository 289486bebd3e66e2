"""Words that a query means by their definitions: which they are, what they weigh, and that nothing else changes."""

import json
import pickle
import re

import numpy as np
import pytest
from plain_words import PLAIN

import sparse_adapt as sa
from diagnostics.matches import explain
from sparse_adapt.collection.folder import CorpusFolder
from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ConfigError, InputError, ModelError
from sparse_adapt.files.marker import MARKER_FILE
from sparse_adapt.model.exact.defined import (
    DEFINED_FILE,
    VECTORS_FILE,
    DefinedSettings,
    DefinedWords,
)
from sparse_adapt.model.exact.words import ExactWords, WordSettings
from sparse_adapt.model.margins import Margins
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.defined import _texts, check_language, defined_words
from sparse_adapt.retrieve.evaluate import evaluate_vectors, read_collection
from sparse_adapt.retrieve.hybrid import document_vectors, query_vectors
from sparse_adapt.stages.card import write_card
from sparse_adapt.terms.entries import Entry
from sparse_adapt.terms.uses import Use

WORDS = PLAIN | {"unknown": 3.0}
NORTH, EAST, SOUTH = [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]
DIRECTIONS = {"moves water": NORTH, "half way": [0.6, 0.8], "the weather": EAST, "no idea": SOUTH}


class Directions:
    """A dense encoder of a few known texts."""

    def encode(self, texts):
        return np.array([DIRECTIONS[text] for text in texts], np.float32)


def defined(threshold: float = 0.0, words: tuple[str, ...] = ("zyqopump", "zephor")) -> DefinedWords:
    """The first word is about what lies north, the second about what lies south; one text is about neither."""
    about = np.array([[True, False], [False, True], [False, False]])[:, : len(words)]
    vectors = np.array([NORTH, SOUTH, EAST], np.float32)
    settings = DefinedSettings(labeller="directions", threshold=threshold, words=words)
    result = DefinedWords(settings, Margins.of(vectors, about))
    result.__dict__["encoder"] = Directions()
    return result


@pytest.fixture
def model(tiny_model):
    model = SparseEncoder.load(str(tiny_model))
    model.words = ExactWords(WordSettings(**WORDS))
    return model


# -- which words ------------------------------------------------------------------------------------


def test_a_similarity_margin_by_hand():
    margins = defined().margins.of_texts(np.array([NORTH, [0.6, 0.8]], np.float32))
    assert margins == pytest.approx(
        np.array([[1.0, -2.0], [-0.2, -1.4]])  # 1 - 0, -1 - 1; .6 - .8, -.6 - .8: to the nearest other text
    )


def test_the_least_cosine_keeps_what_background_texts_reach_from_meaning_a_term():
    vectors, about = np.array([NORTH, EAST], np.float32), np.array([[True], [False]])
    background = np.array([[0.8, -0.6]] * 4, np.float32)
    margins = Margins.of(vectors, about, background)
    assert margins.least == pytest.approx([0.8])
    assert margins.of_texts(np.array([[0.9, 0.0]], np.float32)) == pytest.approx(np.array([[0.1]]))


def test_where_no_text_is_about_a_word_nothing_means_it():
    margins = Margins.of(np.array([NORTH], np.float32), np.zeros((1, 1), np.bool_))
    assert margins.of_texts(np.array([NORTH], np.float32)) == -1.0


def test_a_query_means_a_word_from_the_threshold_on():
    words = defined(threshold=-0.25)
    assert words.meant_by(["moves water", "half way", "the weather"]) == [
        {"zyqopump": 2.0},
        {"zyqopump": pytest.approx(1.5)},  # .5 and 20 times .05
        {},
    ]
    assert defined(threshold=0.0).meant_by(["half way"]) == [{}]


def test_a_query_is_compared_once(monkeypatch):
    words = defined()
    first = words.meant_by(["moves water", "moves water"])
    monkeypatch.setattr(Directions, "encode", None)
    assert words.meant_by(["moves water", "moves water"]) == first


# -- in vectors -------------------------------------------------------------------------------------


def test_a_query_gets_the_word_that_it_means_as_if_it_said_it(model):
    model.words.defined = defined()
    column = model.words.column("zyqopump")
    meant = model.words.queries(["moves water"], model.tokenizer)[0, column]
    model.words.defined = None
    said = model.words.queries(["zyqopump"], model.tokenizer)[0, column]
    assert said == pytest.approx(6.0)  # .5 x 2 x 3, twice since the tokenizer cuts it
    assert meant == pytest.approx(2.0 * said)


def test_a_query_that_says_the_word_means_it_no_more(model):
    DIRECTIONS["zyqopump moves water"] = NORTH
    plain = model.words.queries(["zyqopump moves water"], model.tokenizer)
    model.words.defined = defined()
    assert (model.words.queries(["zyqopump moves water"], model.tokenizer) != plain).nnz == 0


def test_documents_and_other_queries_stay_as_they_are(model):
    documents = [Document("1", "zyqopump moves water", "")]
    before = document_vectors(model, documents), query_vectors(model, ["the weather", " "])
    model.words.defined = defined()
    after = document_vectors(model, documents), query_vectors(model, ["the weather", " "])
    assert all((one != other).nnz == 0 for one, other in zip(before, after, strict=True))
    assert model.words.checksum == ExactWords(WordSettings(**WORDS)).checksum


# -- in files ---------------------------------------------------------------------------------------


def test_a_saved_model_has_its_definitions(model, tmp_path):
    model.words.defined = defined(threshold=-0.25)
    model.save(tmp_path / "m")
    again = SparseEncoder.load(str(tmp_path / "m")).words.defined
    assert again.settings == model.words.defined.settings
    for one, other in zip(again.margins, model.words.defined.margins, strict=True):
        assert (one == other).all() and one.dtype == other.dtype
    travelled = pickle.loads(pickle.dumps(model.words)).defined
    assert travelled.settings == model.words.defined.settings


def test_new_statistics_keep_the_definitions(model):
    model.words.defined = defined()
    assert model.words.with_settings(share=1.0).defined is model.words.defined


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (DEFINED_FILE, b"{"),
        (DEFINED_FILE, b'{"labeller": "x", "threshold": 9, "words": ["a"]}'),
        (DEFINED_FILE, b'{"labeller": "x", "threshold": 0, "words": []}'),
        (DEFINED_FILE, b'{"labeller": "x", "threshold": 0, "words": ["a"]}'),  # vectors are of two words
        (VECTORS_FILE, b"no safetensors"),
        (VECTORS_FILE, None),
    ],
)
def test_a_damaged_file_is_one_line(model, tmp_path, name, change):
    model.words.defined = defined()
    model.save(tmp_path / "m")
    (tmp_path / "m" / MARKER_FILE).unlink()  # whose checksums would tell
    path = tmp_path / "m" / name
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change)
    with pytest.raises(ModelError, match=f"{re.escape('defined_words')}.*--update --glossary"):
        SparseEncoder.load(str(tmp_path / "m"))


# -- of a glossary ----------------------------------------------------------------------------------


def test_texts_about_a_word_have_it_cut_out_of_them():
    documents = [
        Document("1", "the zyqopumps and the Zephor run", ""),
        Document("2", "a holiday", ""),
    ]
    entries = [
        Use(Entry(word, (word,), senses=(sense,)), "new word", 2, word)
        for word, sense in (("zyqopump", "a zyqopump moves water"), ("Zephor", "it blows"))
    ]
    texts, about = _texts(lambda: iter(documents), ["zyqopump", "Zephor"], entries)
    assert [" ".join(text.split()) for text in texts] == [
        "a moves water",
        "it blows",
        "the and the run",
        "a holiday",
    ]
    assert about.tolist() == [[True, False], [False, True], [True, True], [False, False]]


def test_entries_that_need_no_word_make_no_definitions():
    use = Use(Entry("pump", ("pump",), senses=("moves water",)), "word with a token", 2)
    assert defined_words(lambda: iter(()), [use]) is None


def test_words_of_a_language_that_the_dense_encoder_does_not_read_are_refused(model):
    german = model.words.with_settings(share=0.5)
    german.settings = german.settings.model_copy(update={"language": "de"})
    with pytest.raises(ConfigError, match="reads English, and the words are of the language de"):
        check_language(german)


def test_a_glossary_of_words_that_the_model_knows_is_refused():
    with pytest.raises(
        InputError, match="none of its 1 entries defines a word that the model's tokenizer cuts"
    ):
        sa.add_words(
            "splade-tiny",
            ["the pump moves water", "another pump"],
            glossary={"pump": "a machine that moves water"},
            device="cpu",
            progress=False,
        )


def test_an_update_names_the_words_that_its_glossary_leaves_out(model, tmp_path, monkeypatch):
    """A glossary of the new entries alone would take the old ones' definitions away unsaid."""
    model.words = model.words.with_definitions(defined())
    model.save(tmp_path / "m")
    monkeypatch.setattr(
        "sparse_adapt.pipeline.defined.defined_by",
        lambda definitions, encoder, *rest: encoder.words.with_definitions(defined(words=("zephor",))),
    )
    documents, glossary = ["a zephor blows", "a zephor", "a zyqopump"], {"zephor": "a wind"}
    given = {"glossary": glossary, "update": True, "device": "cpu", "progress": False}
    updated = sa.add_words(str(tmp_path / "m"), documents, tmp_path / "n", **given)
    assert updated.notes == ["no longer found by definition, for the glossary before is replaced: zyqopump"]
    again = sa.add_words(str(tmp_path / "n"), documents, tmp_path / "o", **given)
    assert again.notes == []


def test_a_card_tells_of_words_that_are_found_by_definition(model, tmp_path):
    model.words = model.words.with_definitions(defined())
    model.save(tmp_path / "m")
    write_card(tmp_path / "m")
    assert "means one of 2 words by its definition" in (tmp_path / "m" / "README.md").read_text()
    model.words = model.words.with_definitions(None)
    model.save(tmp_path / "n")
    write_card(tmp_path / "n")
    assert "definition" not in (tmp_path / "n" / "README.md").read_text()


def test_questions_that_mean_a_word_find_its_documents_with_nothing_trained(tmp_path):
    glossary = [
        {"term": each.term, "definition": each.definition}
        for each in read_dictionary("corpora/gatrocraptic/dictionary.jsonl")
    ]
    added = sa.add_words(
        "splade-tiny", "gatrocraptic", tmp_path / "m", glossary=glossary, device="cpu", progress=False
    )
    assert json.loads((tmp_path / "m" / DEFINED_FILE).read_text())["words"] == ["Gatrocraptic"]
    assert "1 by definition too" in str(added)
    model = SparseEncoder.load(str(tmp_path / "m"))
    asked = read_collection(CorpusFolder("gatrocraptic"), "test")
    documents = document_vectors(model, asked.documents)
    texts = [query.text for query in asked.queries]
    meaning = evaluate_vectors(query_vectors(model, texts), documents, asked)
    report = explain(texts[0], model, asked.documents)
    model.words.defined = None
    plain = evaluate_vectors(query_vectors(model, texts), documents, asked)
    semantic = [result.means("semantic")["ndcg@10"] for result in (plain, meaning)]
    assert semantic[0] < 0.55 and semantic[1] > 0.75, semantic
    for kind in ("control", "explicit"):
        assert meaning.means(kind)["ndcg@10"] >= plain.means(kind)["ndcg@10"] - 0.01
    means = next(token for token in report.tokens if token.token == "=gatrocrapt")
    assert means.word and means.expansion, "unsaid, and meant"
    assert "meant by its definition" in report.__str__()
