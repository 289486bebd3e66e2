"""Terms beside their pieces: where a text says them, what stays as it was, which folders are read, what is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import refused
from dense_models import tiny_dense
from families import build

import sparse_adapt as sa
from diagnostics.figures import measure_usage
from diagnostics.matches import explain
from diagnostics.token import diagnose
from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ConfigError, ModelError
from sparse_adapt.files.marker import MARKER_FILE
from sparse_adapt.model.entries import ENTRIES_FILE
from sparse_adapt.model.health import unreachable
from sparse_adapt.model.query_side import QuerySide
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import TermError, extend
from sparse_adapt.objectives.texts import Texts
from sparse_adapt.pipeline.plan import make_plan, plan_text
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.vectors.manifest import stamp_of_model, token_names
from sparse_adapt.stages.extend import Extend
from sparse_adapt.stages.warmup import Warmup, warmup
from sparse_adapt.terms.mining import Term

REAL = "splade-tiny"
KEYS = ("access key", "access key ID", "kubectl")
SIZE = 30_522


def beside(source: str | Path, *texts: str) -> SparseEncoder:
    """A model that was given terms beside their pieces."""
    encoder = SparseEncoder.load(source)
    extend(encoder, [Term(text, "jargon") for text in texts], "beside")
    return encoder


def said(encoder: SparseEncoder, *texts: str) -> list[list[str]]:
    """The terms that each text says."""
    return [
        [token.term for token, says in zip(encoder.new_tokens, row, strict=True) if says]
        for row in encoder.new_tokens_said(encoder.tokenize(texts))
    ]


@pytest.fixture(scope="module")
def keys() -> SparseEncoder:
    """The bundled model with three terms, of which one holds another."""
    return beside(REAL, *KEYS)


@pytest.fixture
def taught(tiny_model: Path, tmp_path: Path) -> Path:
    """The tiny model with "zorvex" and "access key", whose rows activate texts that say "server", in a folder."""
    encoder = beside(tiny_model, "zorvex", "access key")
    with torch.no_grad():
        encoder.output_rows[-2:] = encoder.output_rows[encoder.tokenizer.convert_tokens_to_ids("server")]
        encoder.output_bias[-2:] = torch.tensor([1.5, -40.0])
    encoder.save(tmp_path / "taught")
    return tmp_path / "taught"


# -- what an extension changes, and what it leaves ---------------------------------------------------


def test_the_tokenizer_and_every_old_row_stay_those_of_the_base_model(keys):
    base = SparseEncoder.load(REAL)
    assert keys.tokenizer.backend_tokenizer.to_str() == base.tokenizer.backend_tokenizer.to_str()
    assert torch.equal(keys.input_rows[:SIZE], base.input_rows)
    assert torch.equal(keys.output_bias[:SIZE], base.output_bias)
    assert [token.token_id for token in keys.new_tokens] == [SIZE, SIZE + 1, SIZE + 2]
    assert [token.token for token in keys.new_tokens] == ["access key", "access key id", "kubectl"]
    assert keys.tokens[SIZE:] == token_names(keys)[SIZE:] == ["access key", "access key id", "kubectl"]
    assert keys.names_of([SIZE + 2, 1996, SIZE]) == ("kubectl", "the", "access key")


def test_a_row_begins_as_the_mean_of_its_pieces(keys):
    token = keys.new_tokens[0]
    assert keys.names_of(token.pieces) == ("access", "key")
    mean = keys.output_rows[list(token.pieces)].double().mean(dim=0).float()
    assert torch.equal(keys.output_rows[SIZE], mean)


def test_a_text_without_an_active_term_keeps_the_vector_of_the_base_model_bit_for_bit(tiny_model, taught):
    model, base = SparseEncoder.load(taught), SparseEncoder.load(tiny_model)
    texts = ["the server sends a log", "zorvex", "a saw", ""]
    now, before = encode(model, texts, "document"), encode(base, texts, "document")
    assert (now[:, : base.vocabulary_size] != before).nnz == 0
    assert now[0, base.vocabulary_size] > 0.0  # "server" activates "zorvex"
    assert now[:, base.vocabulary_size + 1].nnz == 0


# -- where a text says a term ------------------------------------------------------------------------


def test_terms_of_which_one_holds_the_other_are_both_said(keys):
    assert said(keys, "an access key ID", "an access key", "access the key", "accesskey id") == [
        ["access key", "access key ID"],
        ["access key"],
        [],
        [],
    ]


def test_the_longest_of_them_stands_for_its_pieces_in_the_sources_of_synthetic_texts(keys):
    texts = Texts(keys, ["my access key id and access key"])
    and_, my = keys.tokenizer.convert_tokens_to_ids(["and", "my"])
    first, last = keys.tokenizer.cls_token_id, keys.tokenizer.sep_token_id
    assert texts.sources == [[first, my, SIZE + 1, and_, SIZE, last]]
    assert texts.ids == [keys.tokenize(["my access key id and access key"])[0]]
    assert texts.says.tolist() == [[True, True, False]]
    assert texts.comparable([0])[0, : texts.first].sum() == texts.first  # no piece is free to change


def test_a_term_is_said_in_any_case_in_the_plural_and_between_signs_and_nowhere_inside_a_word(keys):
    yes = (
        "Kubectl",
        "KUBECTL.",
        "(kubectl)",
        "kubectls",
        "two access\n keys",
        "kubectl-plugin",
        "access key's",
    )
    no = ("mykubectl", "kubectlish", "kubect", "access keyboard", "access", "")
    assert all(said(keys, *yes)) and not any(said(keys, *no))


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta"])
def test_other_tokenizers_say_a_term_at_the_beginning_and_after_a_space(family, tmp_path):
    encoder = beside(build(tmp_path / "m", family), "zorvex", "pool zorvex")
    yes = ("zorvex", "a zorvex", "a zorvex.", "(zorvex)", "a pool zorvex")
    assert all("zorvex" in each for each in said(encoder, *yes))
    assert said(encoder, "a pool zorvex") == [["zorvex", "pool zorvex"]]
    assert not any(said(encoder, "azorvex", "a zorvexing", "a 1zorvex", "pool"))


def test_places_of_a_term_are_those_of_its_pieces(keys):
    ids = keys.tokenize(["an access key id, an access key"])[0]
    assert keys.places_of(SIZE, ids) == [range(2, 4), range(7, 9)]
    assert keys.places_of(SIZE + 1, ids) == [range(2, 5)]
    assert keys.places_of(ids[1], ids) == [range(1, 2), range(6, 7)]


# -- words that are no term, and terms that no piece says --------------------------------------------


def test_a_stop_word_and_any_other_token_of_the_model_are_skipped(keys):
    encoder = SparseEncoder.load(REAL)
    extension = extend(encoder, [Term(text, "") for text in ("the", "server", "zorvex", "Zorvex")], "beside")
    assert extension.known == ("the", "server")
    assert extension.folded == {"Zorvex": "zorvex"}
    assert [token.term for token in encoder.new_tokens] == ["zorvex"]
    assert extend(encoder, [Term("zorvex", "")], "beside").known == ("zorvex",)
    assert encoder.vocabulary_size == SIZE + 1


def test_a_term_of_thirty_words_is_said_and_one_longer_than_a_text_is_refused(tiny_model):
    thirty = " ".join(["server", "log"] * 15)
    encoder = beside(tiny_model, thirty)
    assert said(encoder, f"the {thirty} refuses", thirty[:-4]) == [[thirty], []]
    with pytest.raises(TermError, match=r"has 70 pieces, where 62 of a text are read; shorten it"):
        beside(tiny_model, " ".join(["server"] * 70))


def test_a_term_that_the_tokenizer_has_no_pieces_for_has_a_token_in_their_place():
    encoder = beside(REAL, "☃☃", "kubectl")
    assert [(token.token, token.beside) for token in encoder.new_tokens] == [("☃☃", False), ("kubectl", True)]
    assert said(encoder, "a ☃☃ melts", "a ☂☂ opens", "kubectl") == [["☃☃"], [], ["kubectl"]]
    with pytest.raises(ModelError, match="no token can replace those of 'zorvex'"):
        extend(encoder, [Term("zorvex", "")], "replace")


def test_models_that_could_not_activate_such_a_term_are_refused(tiny_model, tmp_path, sparse_adapt):
    model = sa.load(tiny_model, device="cpu")
    model.encoder.query_side = QuerySide(np.ones(200, np.float32), 12)
    model.save(tmp_path / "table")
    (tmp_path / "terms.json").write_text('["zorvex"]')
    for place in (tmp_path / "table", tiny_dense(tiny_model, tmp_path / "dense")):
        options = ["--model", place, "--terms", tmp_path / "terms.json", "--pieces", "beside"]
        line = refused(sparse_adapt("extend", *options, "-o", tmp_path / "out"))
        assert line.startswith(f"error: {place}: ") and "let terms replace their pieces" in line


# -- folders -----------------------------------------------------------------------------------------


def test_a_folder_keeps_entries_in_a_file_of_their_own(keys, tmp_path):
    keys.save(tmp_path / "m")
    stored = json.loads((tmp_path / "m" / ENTRIES_FILE).read_text())
    assert stored["entries"][1] == {
        "dimension": SIZE + 1,
        "name": "access key id",
        "term": "access key ID",
        "category": "jargon",
        "pieces": list(keys.new_tokens[1].pieces),
    }
    assert json.loads((tmp_path / "m" / "vocabulary.json").read_text())["new_tokens"] == []
    again = SparseEncoder.load(tmp_path / "m")
    assert again.new_tokens == keys.new_tokens and len(again.tokenizer) == SIZE
    texts = ["an access key id", "the server"]
    assert (encode(again, texts, "query") != encode(keys, texts, "query")).nnz == 0
    assert (
        stamp_of_model(again).vocabulary_sha256 != stamp_of_model(SparseEncoder.load(REAL)).vocabulary_sha256
    )


def test_sentence_transformers_reads_the_same_vectors(taught):
    from sentence_transformers import SparseEncoder as Theirs

    texts = ["the server sends a log", "zorvex"]
    theirs = Theirs(str(taught), device="cpu").encode(texts).to_dense().numpy()
    np.testing.assert_allclose(
        theirs, encode(SparseEncoder.load(taught), texts, "document").toarray(), atol=1e-5
    )


def test_a_folder_made_with_replacement_is_read_as_before(extended):
    encoder = SparseEncoder.load(extended)
    assert encoder.entries is None and [token.beside for token in encoder.new_tokens] == [False]
    assert said(encoder, "zorvex", "server") == [["zorvex"], []]


def changed(path: Path, **values: object) -> None:
    stored = json.loads(path.read_text())
    stored["entries"][0] |= values
    path.write_text(json.dumps(stored))
    (path.parent / MARKER_FILE).unlink()


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"dimension": 150}, "'zorvex' has dimension 150, where the tokenizer's end at 200"),
        ({"dimension": 202}, "has dimension 202"),
        ({"dimension": -1}, "dimension: Input should be greater than or equal to 1"),
        ({"dimension": "200"}, "dimension: Input should be a valid integer"),
        ({"pieces": [5, 6]}, "'zorvex' has other pieces by this tokenizer"),
        ({"pieces": []}, "pieces: Tuple should have at least 1 item"),
        ({"name": "server"}, "'server' has other pieces by this tokenizer"),
        ({"name": ""}, "name: String should have at least 1 character"),
        ({"weight": 1.0}, "weight: Extra inputs are not permitted"),
        ({"name": "access key", "pieces": None}, "pieces: Input should be a valid array"),
    ],
)
def test_a_damaged_file_of_entries_is_one_line(taught, values, problem, sparse_adapt):
    changed(taught / ENTRIES_FILE, **values)
    line = refused(sparse_adapt("explain", "a server", "--model", taught))
    assert f"{ENTRIES_FILE}: " in line and problem in line and "repeat the extension" in line


@pytest.mark.parametrize("content", ["", "[]", "{", '{"format": "words"}', "[" * 100_000])
def test_a_file_that_holds_no_entries_is_one_line(taught, content, sparse_adapt):
    (taught / ENTRIES_FILE).write_text(content)
    (taught / MARKER_FILE).unlink()
    assert ENTRIES_FILE in refused(sparse_adapt("explain", "a server", "--model", taught))


def test_entries_of_another_tokenizer_are_refused(keys, taught, tmp_path):
    keys.save(tmp_path / "m")
    shutil.copy(tmp_path / "m" / ENTRIES_FILE, taught / ENTRIES_FILE)
    (taught / MARKER_FILE).unlink()
    with pytest.raises(ModelError, match="where the tokenizer's end at 200 and the model's at 202"):
        SparseEncoder.load(taught)


# -- stages ------------------------------------------------------------------------------------------


def test_one_mask_stands_for_all_pieces_of_a_term(keys):
    rates = {"mask_rate": 1e-9, "new_mask_rate": 1.0 - 1e-9, "labeller": "none", "steps": 1}
    task = warmup(keys, ["my access key id and access key"], Warmup.model_validate(rates))
    masked, labels = task._mask(list(task.texts.parts(0)), np.random.default_rng(0))
    mask, first, last = (getattr(keys.tokenizer, f"{name}_token_id") for name in ("mask", "cls", "sep"))
    and_, my = keys.tokenizer.convert_tokens_to_ids(["and", "my"])
    assert masked == [first, my, mask, and_, mask, last]
    assert labels == [-1, -1, SIZE + 1, -1, SIZE, -1]
    unmasked = task._mask(list(task.texts.parts(0)), NoChance())
    assert unmasked == (task.texts.ids[0], [-1] * 9)


class NoChance:
    """A generator whose chances are never below a rate."""

    def random(self, count: int) -> np.ndarray:
        return np.ones(count)


def test_a_stage_that_hands_pieces_over_to_tokens_refuses_it(
    taught, zorvex_collection, tmp_path, sparse_adapt
):
    ran = sparse_adapt("preserve", "--model", taught, "--corpus", zorvex_collection, "-o", tmp_path / "out")
    assert "has terms beside their pieces, which the stage preserve can't teach" in refused(ran)


def test_a_run_file_says_where_terms_stand(zorvex_collection, tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(f'corpus = "{zorvex_collection}"\nstages = ["extend"]\n[extend]\npieces = "beside"\n')
    plan = read_plan(path)
    assert plan.settings["extend"] == Extend(pieces="beside") and not plan.trained
    (tmp_path / "again.toml").write_text(plan_text(plan))
    assert read_plan(tmp_path / "again.toml") == plan
    path.write_text(path.read_text().replace("beside", "inside"))
    with pytest.raises(ConfigError, match=r"run.toml:4: \[extend\] pieces .*found: \"inside\""):
        read_plan(path)


def test_published_recipes_replace_pieces(zorvex_collection):
    plan = make_plan(str(zorvex_collection), preset="published")
    assert plan.settings["extend"] == Extend(pieces="replace")


def test_an_adaptation_refuses_stages_that_cannot_teach_it(tiny_model, zorvex_collection, tmp_path):
    given = {"model": tiny_model, "stages": ("extend", "preserve", "rank"), "teacher": "bm25"}
    with pytest.raises(ConfigError, match="the stage preserve knows a term by its token alone"):
        sa.adapt(str(zorvex_collection), tmp_path / "run", extend={"pieces": "beside"}, **given)
    with pytest.raises(ConfigError, match="extend: pieces should be 'beside' or 'replace'"):
        sa.adapt(str(zorvex_collection), tmp_path / "run", extend={"pieces": "inside"}, **given)


def test_the_usual_stages_teach_it(tiny_model, zorvex_collection, tmp_path):
    short = {"steps": 3, "batch_size": 4, "device": "cpu", "labeller": "none"}
    model = sa.train("extend", tiny_model, terms=["zorvex"], pieces="beside", out=tmp_path / "0")
    for stage in ("warmup", "dictionary", "distill"):
        given = {"dictionary": zorvex_collection} if stage == "dictionary" else {}
        given = {"candidates": zorvex_collection} if stage == "distill" else given
        model = sa.train(stage, model, zorvex_collection, out=tmp_path / stage, **given, **short)
    base = SparseEncoder.load(tiny_model)
    assert len(model.encoder.tokenizer) == len(base.tokenizer) and model.terms == ["zorvex"]
    assert not torch.equal(
        model.encoder.output_rows[200], SparseEncoder.load(tmp_path / "0").output_rows[200]
    )


# -- what tells of it --------------------------------------------------------------------------------


def test_diagnose_reads_the_logits_of_a_term_at_its_pieces(taught, twelve_documents):
    model = SparseEncoder.load(taught)
    report = diagnose("Zorvex", model, twelve_documents)
    assert report.vocabulary["token_ids"] == (200,)
    assert report.vocabulary["beside"] and report.vocabulary["single"] and report.vocabulary["new"]
    assert report.corpus["holding"] == 3
    (section,) = report.logits
    places = [each["position"] for each in section["positions"] if each["occurrence"]]
    ids = model.tokenize([report.text])[0]
    assert places == [place for said in model.places_of(200, ids) for place in said] and len(places) >= 6
    hidden = model.hidden(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.long))[0]
    logits = (hidden @ model.output_rows[200] + model.output_bias[200]).tolist()
    assert [each["logit"] for each in section["positions"]] == pytest.approx(logits, abs=1e-4)


def test_explain_tells_a_term_that_a_query_says_from_one_that_it_means(taught):
    model = SparseEncoder.load(taught)
    documents = [Document("a", "the server sends a zorvex"), Document("b", "a saw")]
    tokens = {each.token: each for each in explain("a server", model, documents).tokens}
    assert tokens["zorvex"].new and tokens["zorvex"].expansion
    tokens = {each.token: each for each in explain("the server of zorvex", model, documents).tokens}
    assert tokens["zorvex"].new and not tokens["zorvex"].expansion


def test_usage_and_health_know_it_by_its_pieces(taught, twelve_documents):
    model = SparseEncoder.load(taught)
    texts = [document.full_text for document in twelve_documents]
    usage = measure_usage(model, texts, encode(model, texts, "document"))
    assert [(each.token, each.documents_with) for each in usage.tokens] == [("zorvex", 3), ("access key", 0)]
    assert not {200, 201} & set(unreachable(model))


def test_the_card_says_that_texts_are_read_as_before(taught, tmp_path):
    sa.load(taught, device="cpu").save(tmp_path / "saved")
    card = (tmp_path / "saved" / "README.md").read_text()
    assert "2 new terms, with an output row and a bias each; texts are read by their pieces as before" in card


def test_saved_vectors_name_its_dimension(taught, zorvex_collection, tmp_path, sparse_adapt):
    ran = sparse_adapt("encode", "--model", taught, "--corpus", zorvex_collection, "-o", tmp_path / "v")
    assert ran.status == 0, ran.err
    assert json.loads((tmp_path / "v" / "tokens.json").read_text())[200:] == ["zorvex", "access key"]
