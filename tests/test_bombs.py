"""Small files that stand for large ones are refused before they fill the memory or keep a processor busy."""

import bz2
import gzip
import lzma
import time

import pytest

from sparse_adapt.collection import lines
from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.collection.readers import read_documents, read_queries
from sparse_adapt.errors import InputError

MANY = 8 << 20
PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("c.jsonl.gz", b"\n" * MANY, ":1000001: over 1,000,000 blank lines in a row"),
        ("c.tsv.bz2", b"\n" * 2_000_000, ":1000001: over 1,000,000 blank lines in a row"),
        (
            "c.jsonl.gz",
            b'{"_id":"1","text":"' + b"a" * MANY + b'"}',
            "50 times its own size; decompress it to read it",
        ),
        ("c.jsonl.xz", b'{"_id":"1","x":[' + b"[]," * MANY + b'[]],"text":"a"}', "50 times its own size"),
        ("c.jsonl.gz", b'{"_id":"1","text":"a"}\n' * 400_000, ':2: duplicate document id "1"'),
        (
            "c.trec.gz",
            b"<DOC><DOCNO>1</DOCNO><TEXT>a</TEXT></DOC>\n" * 200_000,
            ':2: duplicate document id "1"',
        ),
        ("c.trec.gz", b"<DOC>\n" + b"<TEXT>\n" * 2_000_000, "50 times its own size"),
        ("c.json.gz", b"[" + b"{}," * MANY + b"{}]", "50 times its own size"),
        ("c.json", b"[" + b" " * (1 << 26) + b"]", ":1: a line of over 33,554,432 bytes"),
    ],
)
def test_bombs_are_refused_with_their_bound(tmp_path, name, content, problem):
    path = tmp_path / name
    path.write_bytes(PACK.get(name.rpartition(".")[2], bytes)(content))
    start = time.process_time()
    with pytest.raises(InputError, match=problem):
        list(read_documents(path))
    assert time.process_time() - start < 20


def test_a_file_that_is_read_whole_has_a_bound(tmp_path, monkeypatch):
    assert lines.LARGEST == 1 << 26
    monkeypatch.setattr(lines, "LARGEST", 1 << 16)
    (tmp_path / "c.json").write_bytes(b"[\n" + b"1,\n" * (22 << 10) + b"2]")
    with pytest.raises(InputError, match="is over 65,536 signs long, and is read whole"):
        list(read_documents(tmp_path / "c.json"))


def test_what_texts_unfold_to_is_read(tmp_path):
    rows = "".join(
        f'{{"_id": "{number}", "text": "{number * 7919 % 1009} words"}}\n' for number in range(150_000)
    )
    assert len(rows) > 1 << 22
    (tmp_path / "q.jsonl.gz").write_bytes(gzip.compress(rows.encode()))
    assert sum(1 for _ in read_queries(tmp_path / "q.jsonl.gz")) == 150_000


def test_entries_that_come_again_are_counted_not_held(tmp_path, capfd):
    (tmp_path / "g.jsonl").write_text('{"term": "a", "definition": "b"}\n' * 5)
    assert len(read_dictionary(tmp_path / "g.jsonl")) == 1
    assert "4 entries come again, and are left out (a, a, a, ...)" in capfd.readouterr().err
