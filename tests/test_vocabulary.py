"""New words in tokenizers: every way that was seen to go wrong, one by one, and rows of their own."""

import json
import shutil
import time
from pathlib import Path

import pytest
import torch
from families import build, byte_level, uncased_unigram, unigram, wordpiece
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from torch.testing import assert_close
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from diagnostics.matches import explain
from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ModelError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import names_of
from sparse_adapt.model.vocabulary import Extension, TermError, extend, normalise
from sparse_adapt.retrieve.vectors.manifest import token_names
from sparse_adapt.terms.mining import Term

REAL = "splade-tiny"
CONTEXTS = ("{}", "we use {} every day", "({}), of course", "with {}.", "{}: see {}!", 'a "{}" b')


def terms(*texts: str) -> list[Term]:
    return [Term(text, "jargon") for text in texts]


def extended(source: str | Path, *texts: str) -> tuple[SparseEncoder, Extension]:
    encoder = SparseEncoder.load(source)
    return encoder, extend(encoder, terms(*texts))


def pieces(encoder: SparseEncoder, text: str) -> list[str]:
    return encoder.tokenizer.convert_ids_to_tokens(
        encoder.tokenizer(text, add_special_tokens=False)["input_ids"]
    )


# -- the traps, one by one -----------------------------------------------------------------------


def test_an_added_word_is_not_found_inside_others():
    encoder, _ = extended(REAL, "kubectl", "max_connections")
    assert pieces(encoder, "mykubectl") == pieces(SparseEncoder.load(REAL), "mykubectl")
    assert "max_connections" not in pieces(encoder, "amax_connections max_connectionsb")


def test_any_case_of_a_term_is_found_where_the_model_folds_case():
    for term in ("kubectl", "Max_Connections", "OAuth2"):
        encoder, _ = extended(REAL, term)
        for spelling in (term, term.upper(), term.lower(), term.title()):
            assert pieces(encoder, spelling) == [term.lower()]


KNOWN = ("hello", "Hello", "##ing", "[unused12]", "[MASK]", "the", ".")


def test_words_that_are_tokens_already_are_skipped_and_named():
    encoder, alone = SparseEncoder.load(REAL), SparseEncoder.load(REAL)
    extension = extend(encoder, terms("the", "zorvex", *KNOWN))
    extend(alone, terms("zorvex"))
    assert extension.known == ("the", *KNOWN)
    assert [token.term for token in extension.new_tokens] == ["zorvex"]
    assert encoder.tokenizer.backend_tokenizer.to_str() == alone.tokenizer.backend_tokenizer.to_str()
    assert torch.equal(encoder.input_rows, alone.input_rows)


def test_a_model_that_knows_every_term_stays_as_it_is():
    encoder = SparseEncoder.load(REAL)
    before = encoder.tokenizer.backend_tokenizer.to_str()
    assert extend(encoder, terms(*KNOWN)).known == KNOWN
    assert encoder.tokenizer.backend_tokenizer.to_str() == before
    assert (encoder.vocabulary_size, encoder.new_tokens) == (30_522, ())


def test_a_term_does_not_hijack_words_that_hold_it():
    encoder, _ = extended(REAL, "kubectl", "gatro", "repl", "zorv")
    base = SparseEncoder.load(REAL)
    for word in ("othello", "replenish", "replication", "replica", "reply", "underreplicated"):
        assert pieces(encoder, word) == pieces(base, word)


def test_spellings_that_normalise_to_the_same_token_are_folded():
    encoder, extension = extended(REAL, "K8s", "k8s", "Zorvéx", "K8S", "zorvex")
    assert [token.term for token in encoder.new_tokens] == ["K8s", "Zorvéx"]
    assert [token.token for token in encoder.new_tokens] == ["k8s", "zorvex"]
    assert extension.folded == {"k8s": "K8s", "K8S": "K8s", "zorvex": "Zorvéx"}
    assert encoder.vocabulary_size == 30_522 + 2 == len(encoder.tokenizer)
    assert all(encoder.tokenizer.convert_tokens_to_ids(t.token) == t.token_id for t in encoder.new_tokens)


def test_a_cased_tokenizer_keeps_spellings_apart(tmp_path):
    encoder, extension = extended(build(tmp_path / "m", "roberta"), "Zorvex", "zorvex")
    assert extension.folded == {}
    ids = {token.term: token.token_id for token in encoder.new_tokens}
    assert encoder.tokenizer("a zorvex, Zorvex")["input_ids"][2:-1:2][-1] == ids["Zorvex"]
    assert ids["zorvex"] in encoder.tokenizer("a zorvex")["input_ids"]


def test_a_word_that_would_break_ordinary_words_is_matched_whole_only():
    encoder, extension = extended(REAL, "repl", "kubectl")
    assert "replenish" in extension.guarded["repl"]
    assert "kubectl" not in extension.guarded
    assert pieces(encoder, "a repl session") == ["a", "repl", "session"]
    assert pieces(encoder, "(repl)") == ["(", "repl", ")"]
    assert pieces(encoder, "replenish") == pieces(SparseEncoder.load(REAL), "replenish")


def test_a_longer_token_of_the_vocabulary_protects_ordinary_words(tiny_model):
    """`certif` begins `certificates`, but a model that has `certificates` never gets so far as to break it."""
    encoder = SparseEncoder.load(REAL)
    assert "certificates" in encoder.tokenizer.get_vocab()
    extension = extend(encoder, terms("certif"))
    assert "certificates" not in extension.guarded.get("certif", ())


def test_inflections_of_a_plain_word_keep_it():
    encoder, _ = extended(REAL, "kubectl", "gatrocraptic")
    assert pieces(encoder, "kubectls") == ["kubectl", "##s"]
    assert pieces(encoder, "gatrocrapticism")[0] == "gatrocraptic"


def test_words_with_signs_are_one_token():
    texts = ("max_connections", "agent-package", "c++", ".net", "il-2/il-2r", "node.js", "k8s@home")
    encoder, _ = extended(REAL, *texts)
    for text in texts:
        for context in CONTEXTS:
            assert pieces(encoder, context.format(text, text)).count(text) == context.count("{}"), context
    assert pieces(encoder, "c++11")[0] == "c"
    assert pieces(encoder, "asp.net")[-1] != ".net"


def test_an_underscore_does_not_hide_a_plain_word():
    encoder, _ = extended(REAL, "kubectl")
    assert pieces(encoder, "my_kubectl") == ["my", "_", "kubectl"]
    assert pieces(encoder, "kubectl_server") == ["kubectl", "_", "server"]


def test_a_plural_compound_still_holds_its_plain_word():
    encoder, _ = extended(REAL, "nodezq", "nodezq-pool")
    assert pieces(encoder, "nodezq") == ["nodezq"]
    assert pieces(encoder, "a nodezq-pool.") == ["a", "nodezq-pool", "."]
    assert pieces(encoder, "nodezq-pools") == ["nodezq", "-", "pools"]


@pytest.mark.parametrize("text", ["", "  ", "\t\n", "\u200b", "\u0301", "\x00"])
def test_a_term_that_normalises_to_nothing_is_refused(text):
    encoder = SparseEncoder.load(REAL)
    with pytest.raises(TermError, match="normalises to nothing"):
        extend(encoder, terms("zorvex", text))
    assert encoder.new_tokens == ()


def test_very_long_terms_are_tokens_too():
    """WordPiece gives up on words of more than 100 letters."""
    long = ["x" * 100 + "q", "z" * 5000, "-".join(["zorvex"] * 40)]
    encoder, _ = extended(REAL, *long)
    for text in long:
        assert pieces(encoder, f"a {text} b") == ["a", text, "b"]


def test_a_term_of_several_words_is_one_token():
    encoder, _ = extended(REAL, "Zorvex  field\tkit")
    assert [token.token for token in encoder.new_tokens] == ["zorvex field kit"]
    assert pieces(encoder, "the zorvex field kit, and a zorvex field") == [
        *("the", "zorvex field kit", ",", "and", "a"),
        *pieces(SparseEncoder.load(REAL), "zorvex field"),
    ]


@pytest.mark.parametrize(
    "family", ["bert", "mpnet", "roberta", "modernbert", "xlm-roberta", "deberta-v2-narrow"]
)
def test_a_phrase_is_its_token_over_any_white_space(family, tmp_path):
    """In the tokenizer that trains, the saved one as transformers loads it, and the raw file alike."""
    encoder, _ = extended(build(tmp_path / "m", family), "zorvex", "vexel quorn", "quorn-vexel")
    encoder.save(tmp_path / "saved")
    readers = (
        lambda text: encoder.tokenizer(text)["input_ids"],
        lambda text: AutoTokenizer.from_pretrained(tmp_path / "saved")(text)["input_ids"],
        lambda text: Tokenizer.from_file(str(tmp_path / "saved" / "tokenizer.json")).encode(text).ids,
    )
    expected = readers[0]("the vexel quorn and a quorn-vexel of the zorvex")
    new = [token.token_id for token in encoder.new_tokens]
    assert [each for each in expected if each in new] == [new[1], new[2], new[0]]
    for space in ("  ", "\n", "\r\n", "\t", "\u00a0", " \n\n ", "\u2009"):
        text = f"the vexel{space}quorn and a quorn\u2011vexel of the zorvex"
        assert [read(text) for read in readers] == [expected] * 3, repr(space)
    again = SparseEncoder.load(tmp_path / "saved")
    extend(again, terms("next phrase"))
    state = json.loads(again.tokenizer.backend_tokenizer.to_str())
    assert state["normalizer"] == json.loads(encoder.tokenizer.backend_tokenizer.to_str())["normalizer"]


@pytest.mark.parametrize(
    "text", ["東京", "Tokyo東京", "キーワード", "привет", "שלום", "กรุงเทพ", "한국어", "😀😀"]
)
@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "deberta-v2-narrow"])
def test_terms_in_any_script_are_one_token(text, family, tmp_path):
    encoder, _ = extended(build(tmp_path / "m", family), text)
    new = encoder.new_tokens[0]
    for context in CONTEXTS:
        ids = encoder.tokenizer(context.format(text, text))["input_ids"]
        assert ids.count(new.token_id) == context.count("{}"), context


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "deberta-v2-narrow"])
def test_a_term_is_found_within_a_sentence_of_a_script_without_spaces(family, tmp_path):
    encoder, _ = extended(build(tmp_path / "m", family), "東京", "キーワード", "กรุงเทพ", "Tokyo東京")
    ids = {token.term: token.token_id for token in encoder.new_tokens}
    for term, text in {
        "東京": "私は東京に住む",
        "キーワード": "このキーワードは",
        "กรุงเทพ": "ในกรุงเทพมหา",
    }.items():
        assert ids[term] in encoder.tokenizer(text)["input_ids"]
    assert ids["Tokyo東京"] not in encoder.tokenizer("my-xTokyo東京")["input_ids"]


def test_signs_that_the_model_cannot_spell_start_from_the_unknown_row(tiny_model):
    encoder, _ = extended(tiny_model, "日本語")
    new = encoder.new_tokens[0]
    assert set(new.pieces) == {encoder.tokenizer.unk_token_id}
    assert torch.equal(encoder.input_rows[new.token_id], encoder.input_rows[encoder.tokenizer.unk_token_id])


# -- extending twice, ids, files -----------------------------------------------------------------


@pytest.mark.parametrize("source", [REAL, "roberta", "xlm-roberta"])
def test_a_second_extension_keeps_every_id_and_every_row(source, tmp_path):
    place = source if source == REAL else build(tmp_path / "m", source)
    encoder, _ = extended(place, "zorvex", "max_connections", "repl")
    text = "zorvex zorvexs max_connections repl quuxly foo-barz"
    first = {token.term: token.token_id for token in encoder.new_tokens}
    size, rows = encoder.vocabulary_size, encoder.output_rows.detach().clone()
    inputs = encoder.input_rows.detach().clone()
    encoder.save(tmp_path / "once")
    again = SparseEncoder.load(tmp_path / "once")
    extend(again, terms("quuxly", "foo-barz", "frobnicate"))
    second = {token.term: token.token_id for token in again.new_tokens}
    assert {term: second[term] for term in first} == first
    assert sorted(second.values()) == list(range(again.old_size, again.vocabulary_size))
    assert again.old_size == encoder.old_size
    assert torch.equal(again.output_rows[:size], rows)
    assert torch.equal(again.input_rows[:size], inputs)
    new = {second["quuxly"], second["foo-barz"]}
    assert [i for i in again.tokenize([text])[0] if i in first.values()] == [
        i for i in encoder.tokenize([text])[0] if i in first.values()
    ]
    assert new <= set(again.tokenize([text])[0])
    again.save(tmp_path / "twice")
    raw = Tokenizer.from_file(str(tmp_path / "twice" / "tokenizer.json"))
    assert raw.encode(text).ids == again.tokenize([text])[0]
    assert extend(again, terms("zorvex")).known == ("zorvex",)


def test_new_tokens_stand_in_the_order_of_their_ids():
    """Whoever reads a column of the new rows reads the token at that place."""
    encoder, extension = extended(REAL, "max_connections", "zorvex", "repl", "kubectl")
    assert [token.token_id for token in encoder.new_tokens] == [30_522, 30_523, 30_524, 30_525]
    assert [token.token for token in encoder.new_tokens] == ["zorvex", "kubectl", "max_connections", "repl"]
    assert extension.new_tokens == encoder.new_tokens


def test_no_terms_change_nothing():
    encoder, extension = extended(REAL)
    assert extension.new_tokens == ()
    assert encoder.vocabulary_size == 30_522
    assert encoder.old_size == 30_522


def test_ids_with_gaps_are_refused(tiny_model, tmp_path):
    import json

    folder = Path(shutil.copytree(tiny_model, tmp_path / "gap"))
    state = json.loads((folder / "tokenizer.json").read_text())
    state["model"]["vocab"].pop("server")  # its id stays empty, as with double lines of some vocab.txt
    (folder / "tokenizer.json").write_text(json.dumps(state))
    for _ in range(8):  # which of two tokens with one id is told is chance
        encoder = SparseEncoder.load(folder)
        with pytest.raises(ModelError, match="gaps"):
            extend(encoder, terms("zorvex"))
        assert encoder.new_tokens == ()


def test_special_tokens_and_settings_of_the_tokenizer_survive(tmp_path):
    encoder = SparseEncoder.load(build(tmp_path / "m", "roberta"))
    encoder.tokenizer.add_special_tokens({"additional_special_tokens": ["<zq>"]})
    encoder.masked_lm.resize_token_embeddings(len(encoder.tokenizer))
    before = encoder.tokenizer
    extend(encoder, terms("zorvex"))
    encoder.save(tmp_path / "saved")
    after = AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert after.all_special_tokens == before.all_special_tokens
    assert after.special_tokens_map == before.special_tokens_map
    assert after.model_input_names == before.model_input_names
    assert (after.padding_side, after.truncation_side) == (before.padding_side, before.truncation_side)
    flags = {str(token): (token.lstrip, token.special) for token in before.added_tokens_decoder.values()}
    kept = {str(token): (token.lstrip, token.special) for token in after.added_tokens_decoder.values()}
    assert {name: kept[name] for name in flags} == flags


def test_saved_truncation_does_not_depend_on_earlier_use(tmp_path):
    encoder, _ = extended(REAL, "zorvex")
    encoder.save(tmp_path / "fresh")
    encoder.tokenizer(["a b", "c"], truncation=True, max_length=3, padding="max_length")
    encoder.save(tmp_path / "used")
    fresh, used = ((tmp_path / name / "tokenizer.json").read_bytes() for name in ("fresh", "used"))
    assert fresh == used


# -- rows and pieces -----------------------------------------------------------------------------


def test_pieces_are_what_the_base_model_makes_of_the_term():
    encoder, _ = extended(REAL, "gatrocraptic", "max_connections", "Tokyo東京")
    base = SparseEncoder.load(REAL)
    for token in encoder.new_tokens:
        assert list(token.pieces) == base.tokenizer(token.term, add_special_tokens=False)["input_ids"]


def test_rows_by_hand(tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    base_input, base_bias = encoder.input_rows.detach().clone(), encoder.output_bias.detach().clone()
    extend(encoder, terms("zo-x"))
    ids = [encoder.tokenizer.convert_tokens_to_ids(piece) for piece in ("z", "##o", "-", "x")]
    new = encoder.new_tokens[0]
    assert new.pieces == tuple(ids)
    z, o, dash, x = (base_input[i].double() for i in ids)
    assert_close(encoder.input_rows[200].double(), (z + o + dash + x) / 4)
    assert_close(encoder.output_bias[200], base_bias[ids].sum() / 4)


TEXTS = (
    "Set max_connections (zorvex) before the pool is full.",
    "zorvex",
    "A Zorvex, a kubectl-zorvex and k8s.",
    "no such words here",
    "",
    "the zorvex of the server " * 200,
)


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet", "electra"])
def test_old_tokenization_is_that_of_the_base_model(family, tmp_path):
    folder = build(tmp_path / "m", family)
    base = SparseEncoder.load(folder)
    encoder, _ = extended(folder, "zorvex", "kubectl", "max_connections", "k8s")
    assert [encoder.old_tokenization(ids) for ids in encoder.tokenize(TEXTS)] == base.tokenize(TEXTS)
    real_base = SparseEncoder.load(REAL)
    real, _ = extended(REAL, "zorvex", "kubectl", "max_connections", "k8s")
    assert [real.old_tokenization(ids) for ids in real.tokenize(TEXTS)] == real_base.tokenize(TEXTS)


@pytest.mark.parametrize("family", ["roberta", "modernbert", "xlm-roberta"])
def test_old_tokenization_is_that_of_the_base_model_between_spaces(family, tmp_path):
    folder = build(tmp_path / "m", family)
    base = SparseEncoder.load(folder)
    encoder, _ = extended(folder, "zorvex", "max_connections")
    texts = ["Set max_connections before zorvex is full", "the zorvex of the server " * 200]
    assert [encoder.old_tokenization(ids) for ids in encoder.tokenize(texts)] == base.tokenize(texts)


def test_two_thousand_terms_are_added_within_seconds():
    from wordfreq import top_n_list

    encoder = SparseEncoder.load(REAL)
    words = [word for word in top_n_list("en", 40_000)[25_000:] if word.isalpha() and word.isascii()]
    plain = [word for word in words if len(pieces(encoder, word)) > 1][:1500]
    compounds = [f"{left}-{right}" for left, right in zip(plain[:500], plain[500:], strict=False)]
    started = time.monotonic()
    extension = extend(encoder, terms(*plain, *compounds))
    assert time.monotonic() - started < 30  # 1 s on an idle machine
    assert len(extension.new_tokens) == 2000
    for word in (*plain, *compounds):
        assert pieces(encoder, f"the {word} of") == ["the", word, "of"]


# -- any term ------------------------------------------------------------------------------------

TOKENIZERS = {
    "wordpiece": wordpiece,
    "byte-level": byte_level,
    "unigram": unigram,
    "uncased-unigram": uncased_unigram,
}
ANY_TERM = st.one_of(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12),
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Cn", "Co"]), min_size=1, max_size=8),
)


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SparseEncoder]:
    """One model per kind of tokenizer; they are extended and put back."""
    families = {"wordpiece": "bert", "byte-level": "roberta", "unigram": "xlm-roberta"}
    families["uncased-unigram"] = "deberta-v2-narrow"
    place = tmp_path_factory.mktemp("bases")
    return {
        kind: SparseEncoder.load(build(place / kind, family, spare=16)) for kind, family in families.items()
    }


@pytest.mark.parametrize("kind", TOKENIZERS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(texts=st.lists(ANY_TERM, min_size=1, max_size=3, unique=True))
def test_any_accepted_term_is_one_id_between_spaces(kind, texts, bases):
    encoder = bases[kind]
    tokenizer = encoder.tokenizer
    try:
        extension = extend(encoder, terms(*texts))
    except TermError:
        assume(False)
    try:
        for token in extension.new_tokens:
            for context in ("{}", "of {} in", "{} of {}", "in the {}"):
                ids = encoder.tokenizer(context.format(token.term, token.term))["input_ids"]
                assert ids.count(token.token_id) == context.count("{}"), (token, context)
            assert normalise(tokenizer, token.token) == token.token
            assert token.token_id >= len(tokenizer)
    finally:
        encoder.tokenizer, encoder.new_tokens = tokenizer, ()


def test_the_fixtures_are_fast_tokenizers_of_four_kinds():
    models = {kind: make() for kind, make in TOKENIZERS.items()}
    assert all(isinstance(tokenizer, PreTrainedTokenizerFast) for tokenizer in models.values())
    assert {type(tokenizer.backend_tokenizer.model).__name__ for tokenizer in models.values()} == {
        "WordPiece",
        "BPE",
        "Unigram",
    }


def test_a_token_has_one_name_everywhere(tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    terms = ["王者荣耀", "max_connections", "zorvex"]
    extend(encoder, [Term(text, "") for text in terms])
    ids = {new.term: new.token_id for new in encoder.new_tokens}
    assert names_of(encoder.tokenizer, ids.values()) == tuple(ids)
    assert {encoder.tokens[ids[term]] for term in terms} == set(terms)
    assert [token_names(encoder)[token_id] for token_id in ids.values()] == list(ids)
    whole = names_of(encoder.tokenizer, range(encoder.vocabulary_size))
    assert list(whole) == encoder.tokens
    found = explain("王者荣耀", encoder, [Document("1", "王者荣耀 and zorvex")])
    assert {token.token for token in found.tokens} & set(terms) or found.inactive
    assert " " not in "".join([token.token for token in found.tokens] + list(found.inactive))
