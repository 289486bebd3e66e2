"""A checksum changes with anything that is read at a place, and with nothing else."""

import shutil

import pytest

from sparse_adapt.files.marker import checksum, checksum_of_bytes, checksum_of_texts


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
