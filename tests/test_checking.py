"""What `check` reads beside a corpus, and what it says of what doesn't fit."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import refused

import sparse_adapt as sa
from sparse_adapt.api.checking import check
from sparse_adapt.errors import InputError


@pytest.fixture
def folder(zorvex_collection, tmp_path) -> Path:
    shutil.copytree(zorvex_collection, tmp_path / "mine")
    return tmp_path / "mine"


def test_every_file_of_a_known_name_is_read_from_the_folder_and_beside_the_file(folder):
    found = check(str(folder))
    judged = {"judgements of test": 7, "judgements of train": 8}
    assert found.counts == {
        "documents": 12,
        "queries": 6,
        **judged,
        "candidates": 3,
        "terms": 1,
        "dictionary": 1,
    }
    assert found.remarks == []
    beside = check(str(folder / "corpus.jsonl"))
    assert (beside.counts, beside.remarks) == (found.counts, [])


def test_a_bad_grade_is_named_with_its_line(sparse_adapt, folder):
    with (folder / "qrels" / "train.tsv").open("a") as file:
        file.write("q1\td01\tgood\n")
    for named in (folder, folder / "corpus.jsonl"):
        assert "train.tsv:10: needs a number as grade (found: good)" in refused(sparse_adapt("check", named))


def test_what_is_judged_and_not_there_is_said(sparse_adapt, folder):
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq4\td03\t1\nq9\tnowhere\t1\n")
    ran = sparse_adapt("check", folder, "--json")
    assert json.loads(ran.out)["judgements of test"] == 2
    assert (
        "test.tsv: 1 of 2 judged documents aren't in the corpus ('nowhere'), and count as not found"
        in ran.err
    )
    assert "test.tsv: 1 of 2 judged queries aren't among the queries ('q9'), and are left out" in ran.err


def test_files_of_other_names_are_nobody_s_business(folder):
    (folder / "queries.md").write_text("# notes")
    (folder / "terms.txt").write_text("my notes")
    assert check(str(folder)).counts["queries"] == 6
    (folder / "queries.jsonl").write_text("{")
    with pytest.raises(InputError, match=r"queries\.jsonl:1: broken JSON"):
        check(str(folder))


def test_documents_that_a_model_reads_in_part_are_counted(tiny_model, tmp_path, sparse_adapt):
    long, short = " ".join(["zorvex"] * 40), "who owns zorvex"
    (tmp_path / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "{n}", "text": "{t}"}}\n' for n, t in enumerate([long, short]))
    )
    model = sa.load(tiny_model, device="cpu", max_tokens=16)
    model.save(tmp_path / "model")
    model.encoder.tokenizer.backend_tokenizer.no_truncation()
    whole = len(model.encoder.tokenizer.backend_tokenizer.encode(long).ids)
    found = check(str(tmp_path), tmp_path / "model")
    told = f"1 of 2 documents are longer than the 16 tokens that {tmp_path / 'model'} reads; "
    told += f"it reads {16 / whole:.0%} of them"
    assert found.remarks == [f"{told}, and all with --windows 16"]
    ran = sparse_adapt("check", tmp_path, "--model", tmp_path / "model")
    assert ran.status == 0 and told in ran.err
    assert check(str(tmp_path), tiny_model).remarks == []
    model = sa.load(tiny_model, device="cpu", max_tokens=16, windows=16, overlap=2)
    model.save(tmp_path / "windows")
    assert check(str(tmp_path), tmp_path / "windows").remarks == [], "all windows are read"
