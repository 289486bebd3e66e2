"""A step is done once, and again where anything that it was made from is another: any layout, any compression."""

import bz2
import gzip
import json
import lzma
import shutil
from pathlib import Path

import pytest
import zstandard
from office import frame, workbook

from sparse_adapt.collection.examples import CANDIDATE_FILES
from sparse_adapt.collection.readers import DOCUMENT_FILES, QUERY_FILES
from sparse_adapt.collection.sources import of_collection
from sparse_adapt.errors import InputError
from sparse_adapt.files.marker import checksum_of_bytes
from sparse_adapt.files.place import absolute, portable, source_in
from sparse_adapt.files.steps import (
    Source,
    Step,
    carry_out,
    changed,
    from_record,
    is_same,
    of_path,
    stamp,
    to_record,
)
from sparse_adapt.model.folder import of_model

PACKED = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
DOCUMENTS = {"jsonl": '{{"_id": "a", "text": "{}"}}\n', "tsv": "a\t{}\n", "csv": "_id,text\na,{}\n"}


class Work:
    """A step that counts how often it is done."""

    def __init__(self, folder: Path, **sources: object) -> None:
        self.folder, self.sources, self.times = folder, sources, 0

    def do(self) -> str:
        self.times += 1
        (self.folder / "made").write_text("made")
        return "made"

    def carry_out(self) -> bool:
        """Whether it was done now."""
        before = self.times
        done, was_before = carry_out(Step("work", self.sources, ["made", "absent"], self.do), self.folder)
        assert (done.message, done.made) == ("made", ("made",))
        assert was_before == (self.times == before)
        return not was_before


def test_a_step_is_done_once_and_its_record_says_from_what(tmp_path):
    (tmp_path / "source").write_text("text")
    work = Work(tmp_path, corpus=of_path(tmp_path / "source"), seed=3, name=of_path("splade"), nothing=None)
    assert [work.carry_out(), work.carry_out()] == [True, False]
    record = json.loads((tmp_path / "steps" / "work.json").read_text())
    assert record["made_from"] == {
        "corpus": {"path": "../source", "sha256": checksum_of_bytes(b"text")},
        "seed": 3,
        "name": {"path": "splade"},
        "nothing": None,
    }


@pytest.mark.parametrize("named", ["file", "folder"])
@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_an_edited_corpus_is_noticed(tmp_path, kind, packed, named):
    folder, run = tmp_path / "corpus", tmp_path / "run"
    folder.mkdir()
    run.mkdir()
    file = folder / f"corpus.{kind}{packed}"
    file.write_bytes(PACKED[packed](DOCUMENTS[kind].format("one").encode()))
    source = str(file if named == "file" else folder)
    work = Work(run, corpus=of_collection(source, DOCUMENT_FILES))
    assert [work.carry_out(), work.carry_out()] == [True, False]
    (folder / "queries.jsonl").write_text("{}")  # isn't read
    assert not work.carry_out()
    file.write_bytes(PACKED[packed](DOCUMENTS[kind].format("two").encode()))
    assert [work.carry_out(), work.carry_out()] == [True, False]


@pytest.mark.parametrize(
    ("names", "name"),
    [
        (CANDIDATE_FILES, "candidates.jsonl"),
        (CANDIDATE_FILES, "candidates.jsonl.gz"),
        (QUERY_FILES, "queries.tsv"),
    ],
)
def test_an_edited_file_of_a_folder_is_noticed(tmp_path, names, name):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / name).write_bytes(b"before")
    work = Work(tmp_path, given=of_collection(folder, names))
    assert [work.carry_out(), work.carry_out()] == [True, False]
    (folder / name).write_bytes(b"after")
    assert work.carry_out()


@pytest.mark.parametrize("name", ["corpus.parquet", "corpus.xlsx"])
@pytest.mark.parametrize("named", ["file", "folder"])
def test_an_edited_table_is_noticed(tmp_path, name, named):
    folder = tmp_path / "corpus"
    folder.mkdir()
    write = frame if name.endswith(".parquet") else workbook
    path = write(folder / name, [["_id", "text"], ["a", "one"]])
    work = Work(tmp_path, corpus=of_collection(path if named == "file" else folder, DOCUMENT_FILES))
    assert [work.carry_out(), work.carry_out()] == [True, False]
    write(path, [["_id", "text"], ["a", "two"]])
    assert [work.carry_out(), work.carry_out()] == [True, False]


@pytest.mark.plugins("files")
@pytest.mark.parametrize("name", ["a.txt", "in/b.md", "c.html", "d.pdf"])
def test_an_edited_text_of_a_folder_is_noticed_and_what_isnt_read_isnt(tmp_path, name):
    """A file named as a model's configuration doesn't make a model of the folder."""
    folder = tmp_path / "texts"
    (folder / "in").mkdir(parents=True)
    for each in ("config.json", "package.json", name):
        (folder / each).write_text("before")
    work = Work(tmp_path, corpus=of_collection(folder, DOCUMENT_FILES))
    assert [work.carry_out(), work.carry_out()] == [True, False]
    (folder / "package.json").write_text("after")
    assert not work.carry_out()
    (folder / name).write_text("after")
    assert [work.carry_out(), work.carry_out()] == [True, False]


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_model_replaced_in_its_folder_is_noticed(tmp_path, tiny_model, name):
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    work = Work(tmp_path, model=of_model(str(model)))
    assert [work.carry_out(), work.carry_out()] == [True, False]
    (model / name).write_bytes((model / name).read_bytes() + b"\n")
    assert Work(tmp_path, model=of_model(str(model))).carry_out()  # as another command sees it


def test_names_stand_for_themselves_and_an_alias_for_its_package():
    assert of_collection("beir/scifact/test", DOCUMENT_FILES) == Source("beir/scifact/test")
    bundled = of_collection("gatrocraptic", DOCUMENT_FILES)
    assert bundled.place is not None and str(bundled.place).endswith("corpus.jsonl")
    assert stamp(bundled)["path"] == "gatrocraptic"
    assert len(stamp(of_model("splade-tiny"))["sha256"]) == 64
    assert stamp(of_model("hub:nobody/has-this-model")) == {"path": "hub:nobody/has-this-model"}


def test_a_source_that_moved_is_the_same_and_one_that_went_is_named(tmp_path):
    (tmp_path / "here").write_text("text")
    held = stamp(of_path(tmp_path / "here"))
    (tmp_path / "here").rename(tmp_path / "there")
    assert is_same(held, stamp(of_path(tmp_path / "there")))
    assert not is_same(held, stamp(of_path(tmp_path / "here")))
    with pytest.raises(InputError, match=r"here: can't be read \(No such file"):
        stamp(Source("here", tmp_path / "here"))


def test_what_is_missing_or_killed_halfway_is_done_again(tmp_path):
    work = Work(tmp_path, seed=1)
    work.carry_out()
    (tmp_path / "made").unlink()
    assert work.carry_out()

    def killed() -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(Step("work", {"seed": 2}, ["made"], killed), tmp_path)
    assert work.carry_out(), "its record was of what is half made anew"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"message": 3}', b"\xff\xfe"])
def test_a_record_that_nobody_can_read_counts_as_none(tmp_path, content):
    work = Work(tmp_path, seed=1)
    work.carry_out()
    (tmp_path / "steps" / "work.json").write_bytes(content)
    assert [work.carry_out(), work.carry_out()] == [True, False]


def test_a_renamed_run_is_done_still(tmp_path):
    run = tmp_path / "run.partial"
    run.mkdir()
    (run / "source").write_text("text")
    assert Work(run, own=of_path(run / "source")).carry_out()
    run.rename(tmp_path / "run")
    assert not Work(tmp_path / "run", own=of_path(tmp_path / "run" / "source")).carry_out()
    assert "partial" not in (tmp_path / "run" / "steps" / "work.json").read_text()


def test_a_stamp_is_the_same_by_its_checksum_else_by_its_path(tmp_path):
    (tmp_path / "file").write_text("text")
    now = stamp(of_path(tmp_path / "file"))
    assert is_same({"path": str(tmp_path / "file")}, now)
    for before in (None, now["sha256"], {"path": str(tmp_path / "other")}, {}, 3):
        assert not is_same(before, now), before
    assert is_same({"path": "owner/name", "sha256": "of the cache"}, {"path": "owner/name"})


def test_what_changed_is_said_in_words(tmp_path):
    before = {"model": {"path": "m", "sha256": "1"}, "settings": {"seed": 1, "steps": 2}}
    assert changed(before, before) == ""
    assert changed(before, {**before, "model": {"path": "n", "sha256": "2"}}) == "another model (m)"
    again = {**before, "model": {"path": "m", "sha256": "2"}}
    assert changed(before, again) == "the model m, which changed since"
    assert changed(before, {**before, "settings": {"seed": 3, "steps": 2}}) == "other settings (seed)"
    assert changed(before, {**before, "corpus": {"path": "c"}}) == "no corpus"
    assert changed({**before, "corpus": {"path": "c"}}, before) == "other corpus (c)"


def test_paths_within_a_run_are_told_from_the_record(tmp_path):
    run = tmp_path / "run"
    (run / "1-extend").mkdir(parents=True)
    (run / "2-warmup").mkdir()
    model, folder = str(run / "1-extend"), run / "2-warmup"
    assert portable(model, folder, run) == "../1-extend"
    assert portable(str(folder), folder, run) == "./."
    assert portable(model, folder, None) == portable(model, folder, folder) == model
    assert portable("splade-tiny", folder, run) == "splade-tiny"
    for source in (model, str(folder), "splade-tiny", "hub:owner/name", str(tmp_path / "elsewhere")):
        assert source_in(portable(source, folder, run), folder) == absolute(source)
        stamps = {"model": {"path": absolute(source), "sha256": "1"}, "seed": 3}
        assert from_record(to_record(stamps, folder, run), folder) == stamps
