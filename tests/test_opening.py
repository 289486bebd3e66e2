"""A file that becomes another while it is read is named; a pipe is read to its end."""

import gzip
import json
import os
from pathlib import Path
from threading import Thread

import pytest

from sparse_adapt.collection.readers import read_documents
from sparse_adapt.errors import InputError

LINES = "".join(json.dumps({"_id": f"{number}", "text": f"{number} text"}) + "\n" for number in range(50_000))
TABLE = "_id,text\n" + "".join(f"{number},{number} {'a text ' * 50}\n" for number in range(5_000))


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz", "corpus.csv"])
@pytest.mark.parametrize("how", ["appended", "replaced", "gone", "touched"])
def test_a_file_that_changes_while_it_is_read(tmp_path, name, how):
    content = (TABLE if name.endswith("csv") else LINES).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    documents = iter(read_documents(path))
    next(documents)
    change(path, how)
    with pytest.raises(
        InputError, match=f"^{path}: changed while it was read; run it again once the file is whole$"
    ):
        list(documents)


def change(path: Path, how: str) -> None:
    if how == "appended":
        more = b"more,a text\n" if path.suffix == ".csv" else b'{"_id": "more", "text": "a text"}\n'
        with path.open("ab") as file:
            file.write(gzip.compress(more) if path.suffix == ".gz" else more)
    elif how == "replaced":
        other = path.with_name(f"other-{path.name}")
        other.write_bytes(path.read_bytes())
        other.replace(path)
    elif how == "gone":
        path.unlink()
    else:
        os.utime(path, (1, 1))


def test_a_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    Thread(target=lambda: pipe.write_text(LINES), daemon=True).start()
    assert len(list(read_documents(pipe))) == 50_000
