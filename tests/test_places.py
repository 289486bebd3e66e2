"""Corpora that are compressed, lie elsewhere, or hold more ids than anyone would keep in memory."""

import bz2
import gzip
import lzma
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from sparse_adapt.collection import lines
from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.collection.lines import read_lines
from sparse_adapt.collection.readers import count_documents, read_documents, read_judgements, read_queries
from sparse_adapt.collection.streams import UniqueAmongMany
from sparse_adapt.errors import InputError, MissingExtraError

LINES = '{"_id": "d1", "title": "T", "text": "café"}\n{"_id": "d2", "text": ""}\n'
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
NAMES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "Zstandard"}


def many(count: int) -> bytes:
    """Text that no compression takes into one block at the first."""
    return "".join(f'{{"_id": "{n}", "text": "{n * 7919 % 100_003} words"}}\n' for n in range(count)).encode()


def problem_of(read: Callable[[str], Iterator[object]], source: str | Path) -> str:
    with pytest.raises(InputError) as caught:
        list(read(str(source)))
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.fixture
def bucket() -> Iterator[str]:
    """A folder of fsspec's own file system in memory, as another machine's would be."""
    memory = fsspec.filesystem("memory")
    yield "memory://bucket"
    if memory.exists("/bucket"):
        memory.rm("/bucket", recursive=True)


def put(address: str, content: bytes) -> str:
    with fsspec.open(address, "wb") as file:
        file.write(content)
    return address


# -- compressed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", PACK)
def test_any_compression_is_read_as_it_would_be_without(ending, tmp_path):
    (tmp_path / f"corpus.jsonl{ending}").write_bytes(PACK[ending](LINES.encode()))
    (tmp_path / f"corpus.tsv{ending}").write_bytes(PACK[ending](b"d1\tone\n"))
    found = list(read_documents(tmp_path))
    assert [document.full_text for document in found] == ["T café", ""]
    assert found == list(read_documents(tmp_path / f"corpus.jsonl{ending}"))
    assert next(read_documents(tmp_path / f"corpus.tsv{ending}")).text == "one"


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))), st.integers(1, 3)
)
def test_every_line_survives_every_compression(tmp_path_factory, lines, frames):
    folder = tmp_path_factory.mktemp("packed")
    text = "".join(f"x{line}\n" for line in lines).encode()
    for ending, pack in PACK.items():
        path = folder / f"a{ending}"
        size = -(-len(text) // frames) or 1
        parts = [pack(text[start : start + size]) for start in range(0, len(text), size)]
        path.write_bytes(b"".join(parts) or pack(b""))
        assert [line for _, line in read_lines(path)] == [f"x{line}" for line in lines]


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("kept", [0.5, 0.98])
def test_a_compressed_file_that_was_cut_short_is_named_with_the_line(ending, kept, tmp_path):
    packed = PACK[ending](many(20_000))
    path = tmp_path / f"corpus.jsonl{ending}"
    path.write_bytes(packed[: int(len(packed) * kept)])
    problem = problem_of(read_documents, path)
    assert problem.startswith(f"{path}:")
    assert f"broken {NAMES[ending]} (" in problem
    assert problem.endswith("; copy or compress it again")


@pytest.mark.parametrize("ending", PACK)
def test_a_file_of_another_kind_than_its_name_says(ending, tmp_path):
    path = tmp_path / f"corpus.jsonl{ending}"
    path.write_bytes(LINES.encode())
    assert f"{path}:1: broken {NAMES[ending]} (" in problem_of(read_documents, path)
    plain = tmp_path / "corpus.jsonl"
    plain.write_bytes(PACK[ending](LINES.encode()))
    assert f"{plain}:1: is compressed; let its name end in {ending} or" in problem_of(read_documents, plain)


@pytest.mark.parametrize("ending", [".lz4", ".zip", ".7z"])
def test_a_compression_that_nobody_reads_is_named(ending, tmp_path):
    path = tmp_path / f"corpus.jsonl{ending}"
    path.write_bytes(b"something")
    assert problem_of(read_documents, path) == (
        f"{path}: {ending} files aren't read; decompress it, or compress it as one of .gz, .bz2, .xz, .zst"
    )


def test_without_its_package_zstandard_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "corpus.jsonl.zst").write_bytes(zstandard.compress(LINES.encode()))
    with pytest.raises(MissingExtraError, match=r"pip install 'sparse-adapt\[remote\]'"):
        list(read_documents(tmp_path / "corpus.jsonl.zst"))


# -- elsewhere -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", *PACK])
def test_a_remote_collection_is_read_like_a_folder(ending, bucket, tmp_path):
    pack = PACK.get(ending, bytes)
    put(f"{bucket}/beir/corpus.jsonl{ending}", pack(LINES.encode()))
    put(f"{bucket}/beir/queries.jsonl{ending}", pack(b'{"_id": "q1", "text": "what"}\n'))
    put(
        f"{bucket}/beir/candidates.jsonl{ending}",
        pack(b'{"query_id": "q1", "query": "what", "doc_ids": ["d1"], "teacher_scores": [1.5]}\n'),
    )
    put(f"{bucket}/beir/qrels/test.tsv{ending}", pack(b"q1\td1\t1\n"))
    assert [document.document_id for document in read_documents(f"{bucket}/beir")] == ["d1", "d2"]
    assert next(read_documents(f"{bucket}/beir/corpus.jsonl{ending}")).text == "café"
    assert next(read_queries(f"{bucket}/beir/")).text == "what"
    assert read_judgements(f"{bucket}/beir/qrels/test.tsv{ending}") == {"q1": {"d1": 1}}
    assert next(read_candidates(f"{bucket}/beir/candidates.jsonl{ending}")).document_ids == ("d1",)


def test_a_file_address_is_a_path(tmp_path):
    (tmp_path / "corpus.jsonl").write_text(LINES, encoding="utf-8")
    address = f"file://{tmp_path}"
    assert list(read_documents(address)) == list(read_documents(tmp_path))
    assert count_documents(address) == 2


def test_what_lies_elsewhere_is_not_counted_first(bucket):
    assert count_documents(put(f"{bucket}/corpus.jsonl", LINES.encode())) is None


def test_remote_errors_are_one_line(bucket):
    put(f"{bucket}/notes.txt", b"d1\ttext\n")
    cut = put(f"{bucket}/cut.jsonl.gz", gzip.compress(many(20_000))[:-5000])
    assert problem_of(read_documents, f"{bucket}/missing.jsonl").endswith(
        "missing.jsonl: no such file; check the address"
    )
    assert problem_of(read_documents, bucket) == (
        f"{bucket}: holds no corpus.jsonl (found: cut.jsonl.gz, notes.txt); give a BEIR folder or the file itself"
    )
    assert problem_of(read_documents, cut).startswith(f"{cut}:")
    assert "broken gzip" in problem_of(read_documents, cut)
    bad = put(f"{bucket}/bad.jsonl", b'{"_id": "d1"}\n')
    assert problem_of(read_documents, bad) == f'{bad}:1: needs a string "text" (keys found: _id)'
    packed = problem_of(read_documents, put(f"{bucket}/corpus.jsonl.lz4", b"x"))
    assert ".lz4 files aren't read" in packed


def test_an_unknown_protocol_is_refused():
    problem = problem_of(read_documents, "gopher2://host/corpus.jsonl")
    assert problem.startswith(
        "gopher2://host/corpus.jsonl: fsspec can't open it (Protocol not known: gopher2"
    )
    assert problem.endswith("check what stands before ://")


def test_a_protocol_whose_package_is_missing_says_what_to_install(monkeypatch):
    for package, address in (("s3fs", "s3://bucket/corpus.jsonl"), ("gcsfs", "gs://bucket/corpus.jsonl")):
        monkeypatch.setitem(sys.modules, package, None)
        problem = problem_of(read_documents, address)
        assert problem.startswith(f"{address}: ")
        assert problem.endswith(f"needs a package that is not installed: pip install {package}")


def test_without_fsspec_an_address_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(
        MissingExtraError, match=r"fsspec is not installed: pip install 'sparse-adapt\[remote\]'"
    ):
        list(read_documents("s3://bucket/corpus.jsonl"))


def test_a_connection_that_breaks_is_an_error_with_its_line(bucket, monkeypatch):
    address = put(f"{bucket}/corpus.jsonl", many(20_000))
    opened = type(fsspec.filesystem("memory")).open

    def no_answer(*_: object) -> bytes:
        raise RuntimeError("no answer")

    def breaking(self, path, mode="rb", **rest):
        file = opened(self, path, mode, **rest)
        monkeypatch.setattr(type(file), "readline", no_answer, raising=False)
        return file

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "open", breaking)
    assert "can't be read (no answer)" in problem_of(read_documents, address)


# -- ids of more documents than memory holds -----------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([str(number) for number in range(40)]), max_size=60),
    st.integers(1, 9),
    st.sampled_from([hash, len, lambda _: 7]),
)
def test_a_second_use_is_found_however_far_apart_and_whatever_collides(ids, recent, hashed):
    numbered = list(enumerate(ids, start=1))
    unique = UniqueAmongMany("file", "id", lambda: iter(numbered), recent=recent, hashed=hashed)
    expected = next((line for line, identifier in numbered if identifier in ids[: line - 1]), None)
    try:
        for line, identifier in numbered:
            unique.add(identifier, line)
        unique.settle()
    except InputError as error:
        first = ids.index(ids[expected - 1]) + 1
        told = f'file:{expected}: duplicate id "{ids[expected - 1]}" (first on line {first})'
        assert str(error).startswith(told)
    else:
        assert expected is None
        assert sum(map(len, unique.runs)) == len(ids)


def test_a_corpus_names_both_lines_of_an_id_used_long_ago(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(many(70_000) + b'{"_id": "5", "text": "again"}\n')
    assert problem_of(read_documents, path) == (
        f'{path}:70001: duplicate document id "5" (first on line 6); remove or rename one of them'
    )


@pytest.mark.parametrize("ending", [".zst", ".gz", ".xz"])
def test_a_few_bytes_that_stand_for_many_are_unpacked_a_little_at_a_time(tmp_path, monkeypatch, ending):
    bomb = zstandard.compress(bytes(1 << 28)) if ending == ".zst" else PACK[ending](bytes(1 << 24))
    (tmp_path / f"corpus.jsonl{ending}").write_bytes(bomb)
    monkeypatch.setattr(lines, "LONGEST_LINE", 1 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r":1: a line of over 1,048,576 bytes; break it"):
            list(read_documents(tmp_path / f"corpus.jsonl{ending}"))
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
