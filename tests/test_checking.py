"""What `check` reads beside a corpus, and what it says of what doesn't fit."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import refused

import sparse_adapt as sa
from sparse_adapt.api.checking import check
from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import InputError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.adapt import reading_sentence
from sparse_adapt.pipeline.preparing import model_to_adapt
from sparse_adapt.pipeline.request import Request
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.pipeline.words import WordOptions, add_exact_words
from sparse_adapt.report.messages import forget_unread, note_cut, note_told, tell_unread


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


def test_documents_in_memory_are_checked(tiny_model):
    found = check(["who owns zorvex", " ", " ".join(["zorvex"] * 300)], tiny_model)
    assert found.counts == {"documents": 3} and found.then == []
    wordless, cut = found.notes
    assert wordless.startswith("3 documents in memory: 1 of 3 documents hold no text")
    assert "1 of 3 documents is longer" in cut


def test_what_a_model_reads_of_the_documents_is_said(tiny_model, tmp_path, sparse_adapt):
    long, short = " ".join(["zorvex"] * 40), "who owns zorvex"
    (tmp_path / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "{n}", "text": "{t}"}}\n' for n, t in enumerate([long, short]))
    )
    model = sa.load(tiny_model, device="cpu", max_tokens=16)
    model.save(tmp_path / "model")
    model.encoder.tokenizer.backend_tokenizer.no_truncation()
    counts = [len(model.encoder.tokenizer.backend_tokenizer.encode(each).ids) for each in (long, short)]
    found = check(str(tmp_path), tmp_path / "model")
    told = f"{tmp_path / 'model'} reads the first 16 tokens of a document, {(16 + counts[1]) / sum(counts):.0%} of all "
    told += "tokens (1 of 2 documents is longer)"
    words = "exact words (sparse-adapt words) cover every document whole, and --windows 16 reads it whole"
    assert counts[1] < 16 and found.remarks == [f"{told}; {words}"]
    ran = sparse_adapt("check", tmp_path, "--model", tmp_path / "model")
    assert ran.status == 0 and told in ran.err
    sa.add_words(tmp_path / "model", tmp_path, tmp_path / "hybrid", device="cpu")
    told = told.replace(str(tmp_path / "model"), str(tmp_path / "hybrid"))
    remarks = check(str(tmp_path), tmp_path / "hybrid").remarks
    assert remarks == [f"{told}; its exact words cover every document whole"]
    assert len(check(str(tmp_path), tiny_model).remarks) == (sum(counts) - counts[1] > 64)
    model = sa.load(tiny_model, device="cpu", max_tokens=16, windows=16, overlap=2)
    model.save(tmp_path / "windows")
    assert check(str(tmp_path), tmp_path / "windows").remarks == [], "all windows are read"


def test_nothing_is_said_of_cut_texts_where_exact_words_read_them_whole(tiny_model, capfd):
    """Neither of a baseline beside it, which has none."""
    baseline, model = (SparseEncoder.load(str(tiny_model)) for _ in range(2))
    long, document = "zorvex " * 100, Document("1", "zorvex")
    add_exact_words(model, lambda: [document], WordOptions(language="none"))
    for encoder, said in ((model, False), (baseline, True)):
        forget_unread()
        encoder.tokenize([long])
        tell_unread()
        assert ("longer than" in capfd.readouterr().err) == said
    forget_unread()
    for encoder in (baseline, model):
        encoder.tokenize([long])
    tell_unread()
    assert capfd.readouterr().err == ""


def test_an_adaptation_says_beforehand_what_is_read_and_what_covers_the_rest(tiny_model, capfd):
    documents = [Document("1", "zorvex " * 100), Document("2", "a")]
    request = Request(corpus="corpus", model=str(tiny_model))

    def said_of(asked, texts=documents):
        return reading_sentence(asked, model_to_adapt(asked), texts)

    said = said_of(request)
    assert said.startswith("the model reads the first 64 tokens of a document, ")
    assert said.endswith("(1 of 2 documents is longer); exact words cover every document whole")
    alone = replace(request, settings=AdaptSettings(stages=("rank",)))
    assert said_of(alone).endswith("; --windows reads the rest")
    assert said_of(request, documents[1:]) == ""
    windows = replace(request, settings=AdaptSettings(windows=32))
    assert said_of(windows) == ""
    for tell, end in ((True, ""), (False, "1 text is longer than the 64 tokens")):
        forget_unread()
        if tell:
            note_told()
        note_cut("zorvex", 40, 64)
        tell_unread()
        assert capfd.readouterr().err.startswith(end) and bool(end) != tell
