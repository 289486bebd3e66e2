"""Exact words: what a text's words are, what they weigh, and that they match in every place that searches."""

import json
import math
import pickle
import re
import shutil

import numpy as np
import pytest
import torch
from families import FAMILIES, build
from plain_words import PLAIN
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ConfigError, InputError, ModelError
from sparse_adapt.model.exact.analysis import Analyzer
from sparse_adapt.model.exact.defaults import SHARE
from sparse_adapt.model.exact.language import AUXILIARIES, NONE, Language, general_shares, language_of
from sparse_adapt.model.exact.statistics import Statistics
from sparse_adapt.model.exact.words import (
    EXACT_WORDS_FILE,
    FIRST_WORD,
    WIDTH,
    ExactWords,
    WordSettings,
    column_of,
)
from sparse_adapt.model.forms import heaviest
from sparse_adapt.model.idf import scaled
from sparse_adapt.model.query_side import QuerySide
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.words import WordOptions, add_exact_words, fragments, token_scales_by_idf, updated
from sparse_adapt.retrieve.columns import beside, only, products, split, used_columns
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, read_collection
from sparse_adapt.retrieve.hybrid import document_vectors, query_vectors
from sparse_adapt.retrieve.search import top_k
from sparse_adapt.selection.retention import encode_both, encode_collection, encode_unscaled


def words_of(text: str, language: str = "en") -> list[str]:
    return [word.stem for word in Analyzer(Language(language)).words(text)]


@pytest.fixture
def model(tiny_model):
    return SparseEncoder.load(str(tiny_model))


@pytest.fixture
def hybrid(model):
    model.words = ExactWords(WordSettings(**PLAIN))
    return model


# -- words of a text --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Flying planes, the PLANES", ["fli", "plane", "plane"]),
        ("maxConnections", ["maxconnections", "max", "connect"]),
        ("max_connections", ["max_connections", "max", "connect"]),
        ("ERR-4012", ["err-4012", "err", "4012"]),
        ("a.b.c node.js", ["a.b.c", "b", "c", "node.js", "node", "js"]),
        ("C++ and C# or C", ["c++", "c#", "c"]),
        ("long-term follow-up", ["long", "term", "follow", "up"]),
        ("the pump's valve; we don't, it Isn\u2019t", ["pump", "valv"]),
        ("What does it do, or did they?", ["what"]),
        ("Jane Doe and Don", ["jane", "doe", "don"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("flux\u2010gate soft\u00adware zero\u200bwidth", ["flux", "gate", "softwar", "zerowidth"]),
        ("\u6771\u4eac\u90fd", ["\u6771\u4eac", "\u4eac\u90fd"]),
        ("\u732b", ["\u732b"]),
        ("X\u7dda CT", ["x", "\u7dda", "ct"]),
        ("\uff21\uff22\uff11", ["ab1"]),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", ["\u0939\u093f\u0928\u094d\u0926\u0940"]),
        ("... -- \u2014", []),
        ("x" * 101, []),
        ("", []),
    ],
)
def test_the_words_of_a_text(text, words):
    assert words_of(text) == words


def test_stems_and_stop_words_are_those_of_the_language():
    assert words_of("die Pumpen und der Motor", "de") == ["pump", "motor"]
    assert words_of("the pumps", NONE) == ["the", "pumps"]


@pytest.mark.parametrize("code", [*AUXILIARIES])
def test_no_form_of_an_auxiliary_verb_is_a_word(code):
    assert words_of(AUXILIARIES[code].title(), code) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("the pump of the house is on and it was in use for a year", "en"),
        ("die Pumpe ist in dem Haus und der Motor ist auf dem Dach", "de"),
        ("la pompe est dans la maison et le moteur est sur le toit", "fr"),
        ("ERR-4012 ERR-4013 pump_a7", NONE),
        ("", NONE),
    ],
)
def test_the_language_is_told_by_its_stop_words(text, code):
    assert language_of(text.lower().split()) == code


def test_a_language_without_stems_is_refused():
    with pytest.raises(ConfigError, match=r"language .*xx.*choose none for words as they are written"):
        Language("xx")


def test_a_column_is_the_same_on_every_machine():
    assert column_of("pump") == 283_244_092
    columns = {column_of(str(number)) for number in range(20_000)}
    assert len(columns) >= 19_998 and min(columns) >= FIRST_WORD and max(columns) < WIDTH


# -- weights ----------------------------------------------------------------------------------------


def test_a_document_weighs_words_by_bm25():
    words = ExactWords(WordSettings(**PLAIN))
    vectors = words.documents([Document("1", "pump pump valve"), Document("2", "valve", title="pump")])
    row = {column: weight for column, weight in zip(vectors[0].indices, vectors[0].data, strict=True)}
    # 3 words of 4 on average: k1 (1 - b + b 3/4) = .9 (.6 + .3) = .81
    assert row == pytest.approx({column_of("pump"): 2 / 2.81, column_of("valv"): 1 / 1.81})
    # title and text: 2 words, .9 (.6 + .2) = .72; the title alone: 1 of 2, .9 (.6 + .2) = .72
    assert vectors[1, column_of("pump")] == pytest.approx(2 / 1.72)
    assert vectors[1, column_of("valv")] == pytest.approx(1 / 1.72)


def test_a_query_weighs_words_by_what_they_tell(model):
    words = ExactWords(WordSettings(**{**PLAIN, "idf": {"sing": 0.25}}))
    vectors = words.queries(["sings sings zorvex"], model.tokenizer)
    cut = len(model.tokenizer.tokenize("zorvex")) > 1
    assert vectors[0, column_of("sing")] == pytest.approx(
        2 * 0.5 * 2.0 * 0.25 * words_in_pieces(model, "sings")
    )
    assert vectors[0, column_of("zorvex")] == pytest.approx(0.5 * 2.0 * 2.0 * (2 if cut else 1))


def words_in_pieces(model, word: str) -> float:
    return 2.0 if len(model.tokenizer.tokenize(word)) > 1 else 1.0


def test_statistics_by_hand():
    analyzer = Analyzer(Language("en"))
    documents = [
        Document("1", "a pump pump", title="pump"),
        Document("2", "the valve"),
        Document("3", "valves"),
    ]
    statistics = Statistics.of(documents, analyzer)
    assert statistics.frequencies == {"pump": 1, "valv": 2}
    assert (statistics.mean_words, statistics.mean_title_words) == (5 / 3, 1.0)
    idf = statistics.idf("en", 0.0)
    assert idf["pump"] == pytest.approx(
        math.log(1 + (1 - 1 / 3) / (1 / 3 + 0.5 / 3))
    )  # as ln(1 + (N-n+.5)/(n+.5))
    assert idf["pump"] == pytest.approx(math.log(1 + 2 / 1.5))
    share = 0.5 / 3 + 0.5 * general_shares("en")["pump"]
    assert statistics.idf("en", 0.5)["pump"] == pytest.approx(math.log(1 + (1 - share) / (share + 0.5 / 3)))


def test_a_score_is_the_models_and_that_of_words(hybrid):
    documents = [Document("1", "a bird sings"), Document("2", "money", title="bank")]
    query = ["the bird sings"]
    weights = (
        encode(hybrid, query, "query") @ encode(hybrid, [each.full_text for each in documents], "document").T
    )
    words = products(hybrid.words.queries(query, hybrid.tokenizer), hybrid.words.documents(documents))
    found = products(query_vectors(hybrid, query), document_vectors(hybrid, documents))
    assert found.shape == (1, 2) and words[0, 0] > 0
    np.testing.assert_allclose(found.toarray(), (weights + words).toarray(), rtol=1e-6)


def test_without_words_a_vector_is_the_models_own(model):
    documents = [Document("1", "a bird sings")]
    assert document_vectors(model, documents).shape == (1, model.vocabulary_size)
    assert (document_vectors(model, documents) != encode(model, ["a bird sings"], "document")).nnz == 0


def test_models_that_words_alone_tell_apart_read_each_text_once(hybrid, tiny_model, zorvex_collection):
    base, collection = SparseEncoder.load(str(tiny_model)), read_collection(zorvex_collection)
    hybrid.words = hybrid.words.with_settings(heaviest=5)
    hybrid.token_scales = np.linspace(0.5, 2.0, hybrid.vocabulary_size, dtype=np.float32)
    assert hybrid.adds_words_to(base) and not base.adds_words_to(hybrid)
    both = encode_both(base, hybrid, collection)
    for model, found in zip((base, hybrid), both, strict=True):
        alone = encode_collection(model, collection)
        assert (found.queries != alone.queries).nnz == (found.documents != alone.documents).nnz == 0
    with torch.no_grad():
        hybrid.output_rows[0, 0] += 1.0
    assert not hybrid.adds_words_to(base)
    read = [encode_collection(hybrid, collection), encode_both(base, hybrid, collection)[1]]
    assert (read[0].documents != read[1].documents).nnz == 0


@pytest.mark.parametrize("part", ["max_tokens", "token_scales", "query_side"])
def test_models_that_read_otherwise_differ_by_more_than_words(hybrid, tiny_model, part):
    base = SparseEncoder.load(str(tiny_model))
    table = np.full(hybrid.vocabulary_size, 2.0, np.float32)
    read_otherwise = base if part == "token_scales" else hybrid
    setattr(
        read_otherwise,
        part,
        {"max_tokens": 9, "token_scales": table, "query_side": QuerySide(table, 9)}[part],
    )
    assert not hybrid.adds_words_to(base)


def test_a_document_keeps_its_heaviest_weights_beside_all_words(hybrid):
    hybrid.words = hybrid.words.with_settings(heaviest=3)
    own, whole = (
        document_vectors(hybrid, [Document("1", "a bird sings")]),
        encode(hybrid, ["a bird sings"], "document"),
    )
    tokens, words = own.indices < FIRST_WORD, own.indices >= FIRST_WORD
    assert (tokens.sum(), words.sum()) == (3, 2)
    assert sorted(own.data[tokens]) == pytest.approx(sorted(whole.data)[-3:])
    assert query_vectors(hybrid, ["a bird sings"]).nnz == encode(hybrid, ["a bird sings"], "query").nnz + 2


def test_a_word_that_no_statistic_knows_matches(hybrid):
    vectors = document_vectors(hybrid, [Document("1", "about ERR-4012"), Document("2", "about ERR-4013")])
    found = query_vectors(hybrid, ["ERR-4012"])
    columns = found.indices[found.indices >= FIRST_WORD]
    scores = products(only(found, columns), only(vectors, columns)).toarray()[0]
    assert scores[0] > scores[1] > 0  # the second by `err` alone
    assert column_of("err-4012") in vectors[0].indices and column_of("err-4012") not in vectors[1].indices


# -- columns ----------------------------------------------------------------------------------------


def test_columns_that_are_used_stand_side_by_side():
    words = ExactWords(WordSettings(**PLAIN))
    rows = words.documents([Document("1", "pump valve"), Document("2", ""), Document("3", "pump")])
    columns = used_columns([rows])
    assert columns.tolist() == sorted([column_of("pump"), column_of("valv")])
    assert only(rows, columns).toarray().tolist() == rows[:, columns].toarray().tolist()
    assert only(rows, columns[:0]).shape == (3, 0)
    assert only(rows, np.array([5], np.int32)).nnz == 0


def test_two_parts_are_put_beside_each_other(model):
    words = ExactWords(WordSettings(**PLAIN)).documents([Document("1", "pump")])
    weights = encode(model, ["a bird sings"], "document")
    whole = beside(weights, words, FIRST_WORD)
    assert whole.shape == (1, WIDTH) and whole.nnz == weights.nnz + words.nnz
    assert whole[0, column_of("pump")] == words[0, column_of("pump")] and whole.has_canonical_format


# -- made from a corpus -----------------------------------------------------------------------------


def test_words_of_a_corpus(model, twelve_documents):
    words = add_exact_words(model, lambda: twelve_documents, WordOptions(heaviest=5))
    settings = words.settings
    assert (settings.documents, settings.language, settings.share, settings.pieces) == (12, "en", 0.7, 1.3)
    assert settings.scale > 0 and settings.heaviest == 5 and set(settings.idf) >= {"zorvex", "databas"}
    again = add_exact_words(model, lambda: twelve_documents, WordOptions(heaviest=5))
    assert again.settings == settings


def test_a_match_on_a_token_counts_by_the_root_of_its_idf(model):
    """Of three documents all hold token 5, one token 7, none token 9: ln(4 / 4), ln(4 / 2), ln(4 / 1)."""
    weights = np.zeros((3, model.vocabulary_size), np.float32)
    weights[:, 5], weights[0, 7] = 1.0, 2.0
    scales = token_scales_by_idf(model, csr_matrix(weights), general=False)
    expected = [0.0, math.log(2) ** 0.25, math.log(4) ** 0.25]
    assert scales[[5, 7, 9]] == pytest.approx(expected, abs=1e-5)
    of_both = token_scales_by_idf(model, csr_matrix(weights), general=True)
    assert of_both[5] > 0.0, "few general passages hold it"


def test_scores_are_those_of_scaled_tokens_and_of_words(model, twelve_documents):
    query = ["the bird sings in zorvex"]
    texts = [each.full_text for each in twelve_documents]
    plain = encode(model, query, "query"), encode(model, texts, "document")
    words = add_exact_words(model, lambda: twelve_documents, WordOptions(heaviest=None))
    squares = csr_matrix(np.diag(model.token_scales_of() ** 2))
    of_words = products(words.queries(query, model.tokenizer), words.documents(twelve_documents))
    found = products(query_vectors(model, query), document_vectors(model, twelve_documents))
    expected = (plain[0] @ squares @ plain[1].T + of_words).toarray()
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-4, atol=1e-5)


def test_the_heaviest_weights_are_so_before_they_are_scaled(model, twelve_documents):
    """A document then keeps the same tokens, whatever the scales are, unless one counts for nothing."""
    add_exact_words(model, lambda: twelve_documents, WordOptions(heaviest=5))
    scales = model.token_scales_of()
    plain = heaviest(
        encode(model, [each.full_text for each in twelve_documents], "document", scales=False), 5
    )
    kept, _ = split(document_vectors(model, twelve_documents), FIRST_WORD)
    assert (only(kept, np.arange(model.vocabulary_size)) != scaled(plain, scales)).nnz == 0
    collection = Collection(tuple(twelve_documents), (), {})
    again = encode_unscaled(model, collection).with_scales(model, scales)
    assert (again.documents != document_vectors(model, twelve_documents)).nnz == 0


def test_what_weighs_tokens_already_stays(model, twelve_documents):
    own = np.full(model.vocabulary_size, 0.5, np.float32)
    model.token_scales = own
    add_exact_words(model, lambda: twelve_documents, WordOptions())
    assert model.token_scales is own
    model.token_scales, model.words = None, None
    model.query_side = QuerySide(np.ones(model.vocabulary_size, np.float32), 32)
    add_exact_words(model, lambda: twelve_documents, WordOptions())
    assert model.token_scales is None and model.words is not None


def test_only_domain_leaves_general_language_out(model, twelve_documents):
    mixed, own = (
        add_exact_words(model, lambda: twelve_documents, WordOptions(only_domain=only)).settings
        for only in (False, True)
    )
    word = max(general_shares("en"), key=lambda each: general_shares("en")[each] if each in own.idf else 0.0)
    assert own.general == 0.0 and own.idf[word] > mixed.idf[word]


def test_words_count_as_much_as_weights_where_the_index_holds_one_corpus_alone(model, twelve_documents):
    def share(**options):
        return add_exact_words(model, lambda: twelve_documents, WordOptions(**options)).settings.share

    assert [share(), share(only_domain=True), share(only_domain=True, share=0.25)] == [SHARE, 1.0, 0.25]
    words = add_exact_words(model, lambda: twelve_documents, WordOptions(share=0.75))
    shares = [
        updated(words, lambda: twelve_documents, WordOptions(**options)).settings.share
        for options in ({}, {"share": 0.25}, {"only_domain": True})
    ]
    assert shares == [0.75, 0.25, 1.0]


def test_new_statistics_leave_vectors_of_documents_alone(model, twelve_documents):
    words = add_exact_words(model, lambda: twelve_documents, WordOptions())
    more = [*twelve_documents, Document("n", "gatrocraptic birds")]
    later = updated(words, lambda: more, WordOptions())
    assert later.settings.idf != words.settings.idf and "gatrocrapt" in later.settings.idf
    assert later.checksum == words.checksum
    assert (later.documents(more) != words.documents(more)).nnz == 0


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ([], "has no documents"),
        (["the of and", "to in"], "no word besides stop words"),
        (["...", "--"], "no word"),
    ],
)
def test_a_corpus_without_words_is_refused(model, texts, problem):
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    with pytest.raises(InputError, match=problem):
        add_exact_words(model, lambda: documents, WordOptions(language="en" if texts else None))
    assert model.words is None and model.token_scales is None


@pytest.mark.parametrize(
    "texts", [["pump", "valve"], ["ERR-1 ERR-2", "pump_a7"], ["\u6771\u4eac", "\u732b\u304c"]]
)
def test_odd_corpora_have_words(model, texts):
    documents = [
        Document(str(number), text, title="" if number else texts[0]) for number, text in enumerate(texts)
    ]
    words = add_exact_words(model, lambda: documents, WordOptions())
    rows, _ = top_k(query_vectors(model, [texts[1]]), document_vectors(model, documents), 1)[0]
    assert rows.tolist() == [1] and math.isfinite(words.settings.scale)


def found_by(model, documents, query: str) -> str:
    """The id of the document that a query finds first, by exact words alone."""
    words = model.words
    scores = products(words.queries([query], model.tokenizer), words.documents(documents)).toarray()[0]
    return documents[int(scores.argmax())].document_id if scores.max() > 0 else ""


@pytest.mark.parametrize(
    ("texts", "query", "language"),
    [
        (["mbwa anakimbia nyumbani", "paka analala nyumbani"], "paka", NONE),  # Swahili has no stems
        (["ERR-4012 pump_a7", "ERR-4013 pump_a8"], "err-4013", NONE),  # identifiers alone
        (["pump", "valve"], "valve", NONE),  # one word a document
        (["der Motor und die Pumpe sind in dem Haus", "das Ventil ist auf dem Dach"], "Ventile", "de"),
    ],
)
def test_odd_corpora_are_searched_by_their_words(model, texts, query, language):
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    add_exact_words(model, lambda: documents, WordOptions())
    assert model.words.settings.language == language
    assert found_by(model, documents, query) == "1"


def test_documents_without_a_title_are_weighed_by_their_text_alone(model, twelve_documents):
    half = [
        Document(each.document_id, each.text, title="zorvex reports" if number % 2 else "")
        for number, each in enumerate(twelve_documents)
    ]
    add_exact_words(model, lambda: half, WordOptions())
    assert model.words.settings.mean_title_words == 2.0
    plain = [Document(each.document_id, each.text) for each in twelve_documents]
    with_titles, without = (model.words.documents(each) for each in (half, plain))
    assert (with_titles[::2] != without[::2]).nnz == 0
    assert found_by(model, half, "reports") in {each.document_id for each in half[1::2]}


def test_words_of_another_model_are_cut_by_the_tokenizer_that_has_them(tmp_path, twelve_documents):
    """Statistics belong to a corpus: in another model's folder they are right, and pieces are its own."""
    first, other = (
        SparseEncoder.load(str(build(tmp_path / family, family))) for family in ("bert", "roberta")
    )
    add_exact_words(first, lambda: twelve_documents, WordOptions())
    first.save(tmp_path / "first")
    other.save(tmp_path / "other")
    shutil.copy(tmp_path / "first" / EXACT_WORDS_FILE, tmp_path / "other")
    loaded = SparseEncoder.load(str(tmp_path / "other"))
    assert loaded.words.settings == first.words.settings
    assert (loaded.words.documents(twelve_documents) != first.words.documents(twelve_documents)).nnz == 0
    for model in (first, loaded):
        pieces = len(model.tokenizer.backend_tokenizer.encode(" zorvex", add_special_tokens=False).ids)
        weight = model.words.queries(["zorvex"], model.tokenizer)[0, column_of("zorvex")]
        settings = model.words.settings
        factor = settings.pieces if pieces > 1 else 1.0
        assert weight == pytest.approx(model.words.weight * settings.idf["zorvex"] * factor, rel=1e-5)


def test_fragments_are_as_long_as_questions(twelve_documents):
    pieces = fragments([*twelve_documents, Document("s", "one"), Document("e", "")])
    assert len(pieces) == 14 and pieces[-2:] == ["one", ""]
    assert max(len(each.split()) for each in pieces) <= 12 and fragments(twelve_documents) == pieces[:12]


# -- saved ------------------------------------------------------------------------------------------


def test_a_saved_model_has_its_words(hybrid, tmp_path):
    hybrid.save(tmp_path / "m")
    loaded = SparseEncoder.load(str(tmp_path / "m"))
    assert loaded.words.settings == hybrid.words.settings
    documents = [Document("1", "a bird sings", title="pump")]
    assert (document_vectors(loaded, documents) != document_vectors(hybrid, documents)).nnz == 0
    travelled = pickle.loads(pickle.dumps(hybrid.words))
    assert travelled.settings == hybrid.words.settings


@pytest.mark.parametrize(
    "change",
    [
        {"language": "xx"},
        {"idf": {"pump": "much"}},
        {"mean_words": 0.0},
        {"format_version": 2},
        {"share": -1.0},
        {"idf": {"pump": -1.0}},
        {"idf": {"pump": float("nan")}},
    ],
)
def test_a_damaged_file_is_one_line(hybrid, tmp_path, change):
    hybrid.save(tmp_path / "m")
    path = tmp_path / "m" / EXACT_WORDS_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ModelError, match=re.escape(EXACT_WORDS_FILE)):
        SparseEncoder.load(str(tmp_path / "m"))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_of_models_has_words(family, tmp_path, twelve_documents):
    model = SparseEncoder.load(str(build(tmp_path / family, family)))
    add_exact_words(model, lambda: twelve_documents, WordOptions())
    vectors = document_vectors(model, twelve_documents)
    found = products(query_vectors(model, ["zorvex"]), vectors)
    assert vectors.shape == (12, WIDTH) and found.nnz and math.isfinite(model.words.weight)
    inside = model.tokenizer.backend_tokenizer.encode("a server of", add_special_tokens=False).tokens
    whole = any("server" in token for token in inside)
    query = query_vectors(model, ["server"])
    factor = 1.0 if whole else 2.0
    expected = model.words.weight * model.words.settings.idf["server"] * factor
    assert query[0, column_of("server")] == pytest.approx(expected, rel=1e-5)
