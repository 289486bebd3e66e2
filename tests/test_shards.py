"""Shards: whole, continued after a kill, and refused when they aren't what their manifest says."""

import itertools
import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from forking import forked, kill_this
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import InputError
from sparse_adapt.files.marker import checksum_of_bytes
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.vectors import shards
from sparse_adapt.retrieve.vectors.folder import join_blocks, open_vectors, read_manifest, read_shards
from sparse_adapt.retrieve.vectors.manifest import read_format, read_tokens, stamp_of_model, token_names
from sparse_adapt.retrieve.vectors.shards import check_encoded, encode_corpus, encode_vectors


def encode_dying(model: SparseEncoder, documents: list[Document], place: Path, when: int) -> None:
    """Five documents a shard; dies at the n-th write of manifest or journal or, n negative, after n documents."""
    writes = itertools.count(1)

    def dying(write: Callable[..., None]) -> Callable[..., None]:
        def write_or_die(*given: object) -> None:
            if next(writes) == when:
                kill_this()
            write(*given)

        return write_or_die

    def stream() -> Iterator[Document]:
        for number, document in enumerate(documents):
            if number == -when:
                kill_this()
            yield document

    shards.write_json, shards.note = dying(shards.write_json), dying(shards.note)
    encode_corpus(model, stream(), Place(place, resume=True), documents_a_shard=5)


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> SparseEncoder:
    return SparseEncoder.load(tiny_model)


@pytest.fixture
def whole(model, twelve_documents, tmp_path) -> Path:
    encode_corpus(model, twelve_documents, Place(tmp_path / "whole", resume=True), documents_a_shard=5)
    return tmp_path / "whole"


@pytest.fixture
def unfinished(whole: Path, tmp_path: Path) -> Path:
    """The place of a run that was stopped after its second of three shards."""
    partial = tmp_path / "stopped.partial"
    shutil.copytree(whole, partial)
    manifest = json.loads((partial / "manifest.json").read_text())
    noted = [json.dumps(shard) + "\n" for shard in manifest["shards"]]
    (partial / "shards.jsonl").write_text("".join([noted[1], noted[0], noted[2][:-7]]))  # cut by a kill
    manifest |= {"complete": False, "rows": 0, "nonzeros": 0, "shards": []}
    (partial / "manifest.json").write_text(json.dumps(manifest))
    for name in ("shard-00002.jsonl.tmp", ".shard-00002.jsonl.0123456789abcdef.partial"):
        (partial / name).write_text("half a")
    return tmp_path / "stopped"


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_shards_hold_what_encode_returns_in_the_order_of_the_documents(model, twelve_documents, whole):
    block = join_blocks(read_shards(whole))
    expected = [
        encode(model, [d.full_text for d in twelve_documents[start : start + 5]], "document")
        for start in (0, 5, 10)
    ]
    assert block.ids == [document.document_id for document in twelve_documents]
    assert np.array_equal(block.vectors.toarray(), np.vstack([part.toarray() for part in expected]))
    assert [shard.rows for shard in read_manifest(whole).shards] == [5, 5, 2]
    assert sorted(content(whole)) == [
        "manifest.json",
        *(f"shard-0000{number}.{kind}" for number in range(3) for kind in ("jsonl", "safetensors")),
        "sparse-adapt.json",
        "tokens.json",
    ]


def test_an_export_needs_no_model_to_name_a_dimension(model, whole):
    vectors = open_vectors(whole)
    assert read_format(whole) == "vectors"
    assert vectors.tokens == token_names(model)
    assert vectors.tokens[2:5] == ["[CLS]", "[SEP]", "[MASK]"]


@settings(max_examples=25, deadline=None)
@given(data=st.data(), rows=st.integers(1, 9), width=st.integers(1, 6), a_shard=st.integers(1, 4))
def test_any_matrix_survives_with_its_empty_rows(model, tmp_path_factory, data, rows, width, a_shard):
    cells = st.sampled_from([0.0, 0.0, 0.1, 1.5, 3.0e-7])
    dense = np.array(
        data.draw(st.lists(st.lists(cells, min_size=width, max_size=width), min_size=rows, max_size=rows))
    )
    dense = np.hstack([dense, np.zeros((rows, model.vocabulary_size - width))]).astype(np.float32)
    folder = tmp_path_factory.mktemp("shards") / "vectors"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            shards,
            "document_vectors",
            lambda model, documents, **_: csr_matrix(dense[[int(each.text) for each in documents]]),
        )
        encode_corpus(
            model,
            [Document(f"d{n}", str(n)) for n in range(rows)],
            Place(folder, resume=True),
            documents_a_shard=a_shard,
        )
    block = join_blocks(read_shards(folder))
    assert np.array_equal(block.vectors.toarray(), dense)
    assert block.vectors.nnz == np.count_nonzero(dense) == read_manifest(folder).nonzeros


def test_documents_are_read_one_shard_ahead_at_most(model, twelve_documents, tmp_path):
    taken = 0

    def stream():
        nonlocal taken
        for document in twelve_documents:
            taken += 1
            yield document

    blocks = iter(encode_vectors(model, stream(), documents_a_block=5).blocks)
    assert taken == 0
    assert [(len(next(blocks).ids), taken) for _ in range(2)] == [(5, 5), (5, 10)]


def test_progress_counts_every_document_once(model, twelve_documents, tmp_path, unfinished):
    heard: list[int] = []
    encode_corpus(
        model, twelve_documents, Place(unfinished, resume=True), documents_a_shard=5, progress=heard.append
    )
    assert sum(heard) == 12


@pytest.mark.parametrize(
    "when", [-3, 1, *(pytest.param(each, marks=pytest.mark.nightly) for each in (-7, 2, 3, 5))]
)
def test_a_killed_run_continues_to_the_same_bytes(when, model, twelve_documents, whole, tmp_path):
    """Killed in the second and first shard, and before each kind of write: manifest, journal, whole manifest."""
    place = tmp_path / "killed"
    killed = forked(lambda: encode_dying(model, twelve_documents, place, when))
    assert killed.status == -signal.SIGKILL, killed.messages
    assert not place.exists()
    encode_corpus(model, twelve_documents, Place(place, resume=True), documents_a_shard=5)
    assert content(place) == content(whole)


def test_a_continued_run_encodes_only_what_is_missing(
    model, twelve_documents, unfinished, whole, monkeypatch
):
    encoded, own = [], shards.document_vectors
    monkeypatch.setattr(
        shards,
        "document_vectors",
        lambda model, documents, **rest: encoded.extend(documents) or own(model, documents, **rest),
    )
    encode_corpus(model, twelve_documents, Place(unfinished, resume=True), documents_a_shard=5)
    assert encoded == twelve_documents[10:]
    assert content(unfinished) == content(whole)


def test_a_run_of_another_model_is_not_continued(tiny_model, twelve_documents, unfinished):
    other = SparseEncoder.load(tiny_model)
    with torch.no_grad():
        other.output_bias[7] += 0.5
    with pytest.raises(InputError, match=r"manifest\.json: the unfinished run is of another model .*delete"):
        encode_corpus(other, twelve_documents, Place(unfinished, resume=True), documents_a_shard=5)


def test_a_run_over_other_documents_is_not_continued(model, twelve_documents, unfinished):
    changed = [*twelve_documents[:7], Document("d08", "a word more"), *twelve_documents[8:]]
    with pytest.raises(InputError, match=r"shard-00001\.jsonl: the unfinished run encoded other documents"):
        encode_corpus(model, changed, Place(unfinished, resume=True), documents_a_shard=5)
    with pytest.raises(InputError, match="encoded other documents"):
        encode_corpus(model, twelve_documents[:6], Place(unfinished, resume=True), documents_a_shard=5)


def test_finished_vectors_are_taken_for_a_corpus_only_if_they_are_of_it(
    model, tiny_model, twelve_documents, whole
):
    heard: list[int] = []
    assert (
        check_encoded(whole, stamp_of_model(model), twelve_documents, progress=heard.append).rows
        == sum(heard)
        == 12
    )
    more = [*twelve_documents, *(Document(f"x{number}", "more") for number in range(3))]
    for others in (twelve_documents[:10], twelve_documents[1:], more, []):
        with pytest.raises(InputError, match="encoded other documents"):
            check_encoded(whole, stamp_of_model(model), others)
    other = SparseEncoder.load(tiny_model)
    with torch.no_grad():
        other.output_bias[7] += 0.5
    with pytest.raises(InputError, match=r"manifest\.json: these vectors are of another model"):
        check_encoded(whole, stamp_of_model(other), twelve_documents)


def test_a_run_with_other_shards_is_not_continued(model, twelve_documents, unfinished):
    with pytest.raises(InputError, match="has 5 documents a shard"):
        encode_corpus(model, twelve_documents, Place(unfinished, resume=True), documents_a_shard=6)


@pytest.mark.parametrize("name", ["shard-00001.safetensors", "shard-00000.jsonl"])
def test_a_damaged_shard_is_neither_continued_nor_read(name, model, twelve_documents, unfinished, whole):
    for folder in (whole, unfinished.with_name("stopped.partial")):
        damaged = bytearray((folder / name).read_bytes())
        damaged[-2] ^= 1
        (folder / name).write_bytes(damaged)
    with pytest.raises(InputError, match=f"{name}: has changed"):
        join_blocks(read_shards(whole))
    with pytest.raises(InputError, match=f"{name}: has changed"):
        encode_corpus(model, twelve_documents, Place(unfinished, resume=True), documents_a_shard=5)


def test_a_missing_shard_is_named(whole):
    (whole / "shard-00002.safetensors").unlink()
    with pytest.raises(InputError, match=r"shard-00002\.safetensors: named by its manifest"):
        join_blocks(read_shards(whole))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"complete": False}, "run the same encode command again"),
        ({"format_version": 2}, r"format_version: Input should be 1"),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"rows": "12"}, "rows: Input should be a valid integer"),
        ({"model": None}, "model: "),
    ],
)
def test_a_manifest_that_is_not_ours_is_refused(change, problem, whole):
    path = whole / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=problem):
        join_blocks(read_shards(whole))


def test_a_manifest_whose_counts_are_wrong_is_refused(whole):
    path = whole / "manifest.json"
    manifest = json.loads(path.read_text())
    first, second = manifest["shards"][:2]
    first["nonzeros"] += 1
    path.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="counts other vectors than its shards hold"):
        join_blocks(read_shards(whole))
    second["nonzeros"] -= 1
    path.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"shard-00000\.safetensors: isn't the 5 vectors"):
        join_blocks(read_shards(whole))
    first["rows"], second["rows"] = 6, 4
    path.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"shard-00000\.safetensors: isn't a shard of 6 vectors"):
        join_blocks(read_shards(whole))


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["shard-00000", "shard-00002"], "doesn't name each of its shards once"),  # one was dropped
        (["shard-00000", "shard-00000", "shard-00002"], "doesn't name each of its shards once"),
        (["shard-00000", "../elsewhere/shard-00001", "shard-00002"], r"shards\.1\.name: String should match"),
        (["shard-00000", "/etc/passwd", "shard-00002"], r"shards\.1\.name: String should match"),
        (["shard-00000", "shard-00001\n", "shard-00002"], r"shards\.1\.name: String should match"),
    ],
)
def test_shards_that_are_missing_doubled_or_elsewhere_are_refused(whole, names, problem):
    manifest = json.loads((whole / "manifest.json").read_text())
    kept = manifest["shards"][:1] * 3 if len(set(names)) < len(names) else manifest["shards"]
    shards = [{**shard, "name": name} for shard, name in zip(kept, names, strict=False)]
    counts = {key: sum(shard[key] for shard in shards) for key in ("rows", "nonzeros")}
    (whole / "manifest.json").write_text(json.dumps({**manifest, **counts, "shards": shards}))
    with pytest.raises(InputError, match=problem):
        join_blocks(read_shards(whole))


def test_ids_that_arent_text_are_refused(whole):
    manifest = json.loads((whole / "manifest.json").read_text())
    for content in (b'1\n2\n"c"\n"d"\n"e"\n', b"\xff\n" * 5, b"[" * 100_000 + b"\n"):
        (whole / "shard-00000.jsonl").write_bytes(content)
        manifest["shards"][0]["ids_sha256"] = checksum_of_bytes(content)
        (whole / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(InputError, match=r"shard-00000\.safetensors: isn't"):
            join_blocks(read_shards(whole))


@pytest.mark.parametrize("line", ["{}", "[]", '"\\ud800"', "\x00", '{"name": "../a"}'])
def test_a_journal_that_isnt_one_is_refused(model, twelve_documents, unfinished, line):
    journal = unfinished.with_name("stopped.partial") / "shards.jsonl"
    journal.write_text(f"{line}\n")
    with pytest.raises(InputError, match=r"shards\.jsonl:1: not a file that this version reads"):
        encode_corpus(model, twelve_documents, Place(unfinished, resume=True), documents_a_shard=5)


def test_broken_json_and_no_folder_are_refused(whole, tmp_path):
    (whole / "manifest.json").write_text("{")
    with pytest.raises(InputError, match="Invalid JSON"):
        join_blocks(read_shards(whole))
    with pytest.raises(InputError, match="make one with: sparse-adapt encode"):
        join_blocks(read_shards(tmp_path / "nowhere"))


def test_other_tokens_than_the_manifest_names_are_refused(whole):
    tokens = json.loads((whole / "tokens.json").read_text())
    (whole / "tokens.json").write_text(json.dumps([*tokens[1:], tokens[0]]))
    with pytest.raises(InputError, match=r"tokens\.json: isn't the vocabulary"):
        read_tokens(whole, read_manifest(whole).model)


def test_an_empty_corpus_leaves_nothing(model, tmp_path):
    with pytest.raises(InputError, match="no documents to encode"):
        encode_corpus(model, [], Place(tmp_path / "vectors", resume=True))
    assert list(tmp_path.iterdir()) == []


def test_a_stamp_follows_weights_and_vocabulary_and_nothing_else(model, tiny_model, tmp_path):
    model.save(tmp_path / "saved")
    assert stamp_of_model(SparseEncoder.load(tmp_path / "saved")).fits(stamp_of_model(model))
    assert stamp_of_model(model, "mine").name == "mine"
    other = SparseEncoder.load(tiny_model)
    other.tokenizer.add_tokens(["zorvex"])
    assert stamp_of_model(other).fits(stamp_of_model(model))  # no row for it, so no dimension
    other.masked_lm.resize_token_embeddings(201, mean_resizing=False)
    assert stamp_of_model(other).vocabulary_sha256 != stamp_of_model(model).vocabulary_sha256


def test_a_row_without_a_token_has_a_name(tiny_model):
    padded = SparseEncoder.load(tiny_model)
    padded.masked_lm.resize_token_embeddings(202, mean_resizing=False)
    assert token_names(padded)[199:] == [token_names(padded)[199], "[unnamed200]", "[unnamed201]"]
