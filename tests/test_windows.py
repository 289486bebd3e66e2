"""Long documents by windows: exact, in every command that encodes, and refused where they can't be."""

import json

import numpy as np
import pytest
from conftest import refused
from families import byte_level, modern_byte_level, uncased_unigram, unigram, wordpiece
from formed import PROMPTS, theirs_of, written
from scipy.sparse import csr_matrix

import sparse_adapt as sa
from diagnostics.matches import explain
from sparse_adapt.collection.readers import Document, write_documents
from sparse_adapt.errors import ConfigError, InputError, ModelError
from sparse_adapt.files.place import Place
from sparse_adapt.model import windows
from sparse_adapt.model.reading import Reading, Windows, windows_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.windows import _begins, _spans, cut_up, heaviest
from sparse_adapt.pipeline.request import Request
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.vectors.manifest import ModelStamp, stamp_of_model
from sparse_adapt.retrieve.vectors.shards import encode_corpus

LONG = "the server logs what the client of the database sees, and a backup copies it every night. " * 6
TEXTS = [LONG, "a saw", "", "zorvex " * 40, "unbrokenandfarlongerthanawindow" * 3]
FORMS = {
    "usual": {},
    "sum": {"pooling": {"pooling_strategy": "sum"}},
    "prompts": {"prompts": PROMPTS},
    "limit": {"max_active_dims": 12},
}


@pytest.mark.parametrize("name", FORMS)
def test_a_document_has_the_largest_weights_of_its_windows(name, tiny_model, tmp_path):
    model = SparseEncoder.load(written(theirs_of(tiny_model, **FORMS[name]), tmp_path / "model"))
    limit, windows = model.form.entries, windows_of(24, 6)
    model.read_by(windows)
    found = encode(model, TEXTS, "document")
    for row, text in enumerate(TEXTS):
        parts, _ = cut_up([text], model.tokenizer, windows, model.form.prompt("document"))
        with model.without_windows():
            expected = encode(model, parts, "document").toarray().max(axis=0)
        row_found = found[row].toarray()[0]
        active = row_found > 0
        np.testing.assert_allclose(row_found[active], expected[active], rtol=1e-5)
        assert active.sum() == (expected > 0).sum() or active.sum() == limit
    assert len(cut_up(TEXTS, model.tokenizer, windows)[0]) > 10


def test_a_short_text_and_a_query_are_read_as_before(tiny_model):
    model = SparseEncoder.load(tiny_model)
    before = encode(model, ["a saw"], "document"), encode(model, [LONG], "query")
    model.read_by(windows_of(24))
    after = encode(model, ["a saw"], "document"), encode(model, [LONG], "query")
    assert all((one != other).nnz == 0 for one, other in zip(before, after, strict=True))


def test_windows_end_with_words_and_overlap_by_whole_ones():
    begins = _begins([0, 0, 1, 2, 2, 2, 3, 4, 5, 5])
    assert _spans(begins, 4, 2) == [(0, 3), (2, 6), (6, 10)]
    assert _spans(begins, 4, 0) == [(0, 3), (3, 7), (7, 10)]
    assert _spans(_begins([0] * 7), 3, 1) == [(0, 3), (3, 6), (6, 7)]  # one word that no window holds
    assert _spans(_begins([]), 3, 1) == [(0, 0)]


@pytest.mark.parametrize("made", [wordpiece, byte_level, modern_byte_level, unigram, uncased_unigram])
def test_stretches_change_no_window(made, monkeypatch):
    tokenizer = made()
    texts = [*TEXTS, "", "a  b \n c " * 30, "the server, the client. " * 20]
    expected = cut_up(texts, tokenizer, Windows(12, 4))
    monkeypatch.setattr(windows, "STRETCH", 40)
    monkeypatch.setattr(windows, "STRETCHES_AT_ONCE", 3)
    seen: list[int] = []
    real = type(tokenizer).__call__
    monkeypatch.setattr(
        type(tokenizer),
        "__call__",
        lambda self, texts, **rest: seen.extend(map(len, texts)) or real(self, texts, **rest),
    )
    parts, owners = cut_up(texts, tokenizer, Windows(12, 4))
    assert parts == expected[0] and owners.tolist() == expected[1].tolist()
    assert sorted(seen)[-2] <= 40 < len(LONG)  # but for the word that has no space


def test_every_token_lies_in_a_window(tiny_model):
    tokenizer, texts = SparseEncoder.load(tiny_model).tokenizer, TEXTS[:4]
    for tokens, overlap in ((8, 0), (8, 4), (24, 6), (64, 32)):
        parts, owners = cut_up(texts, tokenizer, Windows(tokens, overlap))
        read = [tokenizer(part)["input_ids"] for part in parts]
        assert max(map(len, read)) <= tokens
        for row, text in enumerate(texts):
            said = {token for ids, owner in zip(read, owners, strict=True) if owner == row for token in ids}
            assert said == set(tokenizer(text, truncation=False)["input_ids"])


def test_the_heaviest_of_several_rows_by_hand():
    rows = csr_matrix(np.array([[1.0, 0, 2], [0, 3, 1], [0, 0, 0], [5, 0, 0]], np.float32))
    found = heaviest(rows, np.array([0, 0, 1, 3]), 4)
    assert found.toarray().tolist() == [[1, 3, 2], [0, 0, 0], [0, 0, 0], [5, 0, 0]]


def test_vectors_say_by_what_windows_they_were_read(tiny_model, tmp_path):
    model = SparseEncoder.load(tiny_model)
    plain = stamp_of_model(model)
    assert "windows" not in plain.model_dump()  # as folders were before there were any
    model.read_by(Windows(24, 6))
    read = stamp_of_model(model)
    assert read.model_dump()["windows"] == "24/6" and ModelStamp.model_validate(read.model_dump()) == read
    assert read.fits(plain) and not read.reads_as(plain)  # queries meet them; shards don't mix
    documents = [Document(str(row), text) for row, text in enumerate(TEXTS)]
    encode_corpus(model, documents, Place(tmp_path / "out", resume=True))
    with pytest.raises(InputError, match="are of another model"):
        from sparse_adapt.retrieve.vectors.shards import check_encoded

        check_encoded(tmp_path / "out", plain, documents)


def test_a_model_saves_its_windows(tiny_model, tmp_path):
    model = SparseEncoder.load(tiny_model)
    model.read_by(Windows(24, 6))
    model.save(tmp_path / "saved")
    assert SparseEncoder.load(tmp_path / "saved").windows == Windows(24, 6)
    assert sa.load(tmp_path / "saved", "cpu", windows=0).encoder.windows is None
    path = tmp_path / "saved" / "vocabulary.json"
    (tmp_path / "saved" / ".sparse-adapt.json").unlink(missing_ok=True)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"windows": {"tokens": "many"}}))
    with pytest.raises(ModelError, match=r"its windows are|by its checksum"):
        SparseEncoder.load(tmp_path / "saved")


def test_explain_says_in_which_window_a_token_is_active(tiny_model):
    model = SparseEncoder.load(tiny_model)
    documents = [Document("long", f"{LONG} zorvex"), Document("short", "a saw and a plane")]
    query = "who owns zorvex"
    assert "window" not in json.dumps(explain(query, model, documents).to_dict())
    model.read_by(windows_of(24, 6))
    match = next(each for each in explain(query, model, documents).matches if each.document_id == "long")
    parts, _ = cut_up([documents[0].full_text], model.tokenizer, model.windows)
    assert match.windows == len(parts) > 2
    with model.without_windows():
        vectors = encode(model, parts, "document").toarray()
    for part in match.contributions:
        assert vectors[part.window - 1, part.token_id] == pytest.approx(part.document_weight, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--windows", "9999"], "windows of 9,999 tokens, but the model reads"),
        (["--windows", "16", "--overlap", "9"], "repeats half of the one before at most"),
        (["--windows", "4"], "a window has 8 tokens at least"),
        (["--overlap", "8"], "an overlap is of windows"),
    ],
)
def test_windows_that_can_t_be_are_one_line_and_nothing_is_written(
    options, problem, tiny_model, zorvex_collection, tmp_path, sparse_adapt
):
    out = tmp_path / "out"
    words = ["encode", "--model", tiny_model, "--corpus", zorvex_collection, "-o", out, "--device", "cpu"]
    assert problem in refused(sparse_adapt(*words, *options))
    assert not out.exists() and not out.with_name("out.partial").exists()


def test_a_dense_model_reads_no_windows(tiny_model, tmp_path):
    from dense_models import tiny_dense

    with pytest.raises(ConfigError, match="a dense model reads no windows"):
        sa.load(tiny_dense(tiny_model, tmp_path / "dense"), "cpu", windows=16)


def test_commands_take_windows(tiny_model, tmp_path, sparse_adapt):
    corpus = tmp_path / "corpus.jsonl"
    write_documents(corpus, [Document("long", f"{LONG} zorvex"), Document("short", "a saw")])
    own = ["--model", tiny_model, "--windows", "24", "--overlap", "6"]
    assert sparse_adapt("encode", *own, "--corpus", corpus, "-o", tmp_path / "vectors").status == 0
    manifest = json.loads((tmp_path / "vectors" / "manifest.json").read_text())
    assert manifest["model"]["windows"] == "24/6"
    told = sparse_adapt("explain", "zorvex", *own, "--corpus", corpus)
    assert "window " in told.out and " of " in told.out
    assert sparse_adapt("search", "zorvex", *own, "--corpus", corpus).status == 0
    cut = sparse_adapt("explain", "zorvex", "--model", tiny_model, "--max-tokens", "8", "--corpus", corpus)
    assert cut.status == 0


def test_adapt_is_asked_for_windows_and_says_so_again(tiny_model):
    settings = AdaptSettings(windows=64, overlap=8)
    request = Request(corpus="corpus", model=str(tiny_model), settings=settings)
    assert "--windows 64 --overlap 8" in request.command()
    assert request.reading == Reading(windows=64, overlap=8)
    assert Request.of_plain(request.plain()).settings == settings
