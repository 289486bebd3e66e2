"""A checksum changes with whatever is read at a place; the marker of a folder says which files are gone or changed."""

import shutil

import pytest

from sparse_adapt.files.marker import (
    MARKER_FILE,
    checksum,
    checksum_of_bytes,
    checksum_of_texts,
    faults,
    mark,
    marker_of,
    remove,
    strangers,
    vouch,
)


@pytest.fixture
def folder(tmp_path):
    """A result with a file, a folder, and within it a result of its own."""
    inner = tmp_path / "run" / "stages" / "1-extend"
    inner.mkdir(parents=True)
    (inner / "weights").write_text("weights")
    vouch(inner)
    (tmp_path / "run" / "report").write_text("report")
    (tmp_path / "run" / "stages" / "note").write_text("note")
    vouch(tmp_path / "run")
    return tmp_path / "run"


def test_each_marker_lists_the_files_of_its_folder(folder):
    marker = marker_of(folder)
    assert marker is not None
    assert set(marker.sha256) == {"report", "stages/note", f"stages/1-extend/{MARKER_FILE}"}
    assert marker.sha256["report"] == checksum(folder / "report")
    assert strangers(folder) == list(faults(folder)) == []


@pytest.mark.parametrize("name", ["report", "stages/note", "stages/1-extend/weights"])
def test_a_file_that_changed_or_went_is_named(folder, name):
    path = folder / name
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    assert [(fault.path, fault.problem) for fault in faults(folder)] == [(path, "isn't what was written")]
    path.unlink()
    assert [(fault.path, fault.problem) for fault in faults(folder)] == [(path, "is gone")]
    assert list(faults(folder, only=("other",))) == []


@pytest.mark.parametrize("name", ["mine", "stages/mine", "stages/1-extend/mine", "other/mine"])
def test_a_file_that_no_marker_lists_is_a_stranger(folder, name):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("mine")
    assert strangers(folder) == [folder / name]


def test_a_result_that_was_put_into_another_is_a_stranger(folder):
    (folder / "other").mkdir()
    vouch(folder / "other")
    assert strangers(folder) == [folder / "other" / MARKER_FILE]


def test_without_a_marker_everything_is_a_stranger(folder):
    (folder / MARKER_FILE).unlink()
    assert marker_of(folder) is None
    assert {path.name for path in strangers(folder)} == {"report", "stages"}


@pytest.mark.parametrize("name", ["../outside", "/outside", "in/../../outside", ""])
def test_a_marker_that_names_what_lies_outside_is_none(folder, name):
    (folder / MARKER_FILE).write_text(
        f'{{"format": "sparse-adapt", "format_version": 1, "sha256": {{"{name}": "{"0" * 64}"}}}}'
    )
    assert marker_of(folder) is None


def test_some_files_may_be_vouched_for_alone(folder):
    vouch(folder, [folder / "report"])
    assert strangers(folder) == [folder / "stages" / "1-extend" / MARKER_FILE, folder / "stages" / "note"]


def test_a_folder_is_removed_whole(folder):
    (folder / "link").symlink_to(folder.parent)
    mark(folder)
    remove(folder)
    assert list(folder.parent.iterdir()) == []


# -- checksums --------------------------------------------------------------------------------------


def test_a_file_counts_by_its_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"one\n")
    (tmp_path / "b").write_bytes(b"one\n")
    assert checksum(tmp_path / "a") == checksum(tmp_path / "b") == checksum_of_bytes(b"one\n")
    (tmp_path / "b").write_bytes(b"one")
    assert checksum(tmp_path / "a") != checksum(tmp_path / "b")


def test_a_folder_counts_by_the_names_and_bytes_of_its_files(tmp_path):
    folder = tmp_path / "folder"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "b").write_text("2")
    (folder / "a").write_text("1")
    before = checksum(folder)
    shutil.copytree(folder, tmp_path / "copy")
    assert checksum(tmp_path / "copy") == before
    (folder / "a").rename(folder / "c")
    renamed = checksum(folder)
    (folder / "in" / "b").write_text("3")
    assert len({before, renamed, checksum(folder)}) == 3


@pytest.mark.parametrize(
    "name", ["model.safetensors", "tokenizer.json", "config.json", "tokenizer_config.json"]
)
def test_a_model_counts_by_weights_tokenizer_and_configuration(tiny_model, tmp_path, name):
    shutil.copytree(tiny_model, tmp_path / "model")
    path = tmp_path / "model" / name
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert checksum(tmp_path / "model") != checksum(tiny_model)


def test_a_model_does_not_count_by_how_it_came_to_be(tiny_model, tmp_path):
    shutil.copytree(tiny_model, tmp_path / "model")
    for name in ("stage.json", "history.jsonl", "README.md"):
        (tmp_path / "model" / name).write_text("{}")
    assert checksum(tmp_path / "model") == checksum(tiny_model)
    (tmp_path / "model" / "1_SpladePooling").mkdir()
    (tmp_path / "model" / "1_SpladePooling" / "config.json").write_text("{}")
    assert checksum(tmp_path / "model") != checksum(tiny_model)


def test_where_one_text_ends_and_the_next_begins_counts():
    apart, joined = checksum_of_texts(["ab", "c"]), checksum_of_texts(["a", "bc"])
    assert len({apart, joined, checksum_of_texts(["abc"])}) == 3
    assert checksum_of_texts(["ab", "c"]) == apart
