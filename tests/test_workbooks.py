"""Workbooks, data frames and PDF files: read as the same rows in CSV are, or refused in one line."""

import sys
import zipfile

import pytest
from office import Rows, frame, pdf, workbook

from sparse_adapt.collection import tables
from sparse_adapt.collection.glossary import Definition, read_dictionary
from sparse_adapt.collection.readers import Document, Query, read_documents, read_queries
from sparse_adapt.collection.texts import read_loose
from sparse_adapt.errors import InputError, MissingExtraError, SparseAdaptError

WRITE = {".xlsx": workbook, ".parquet": frame}
each_kind = pytest.mark.parametrize("ending", WRITE)


@each_kind
def test_documents_and_queries(tmp_path, ending):
    rows: Rows = [["docid", "contents", "title"], [1, "a, b", "T"], [2, "c", None]]
    path = WRITE[ending](tmp_path / f"corpus{ending}", rows)
    assert list(read_documents(path)) == [Document("1", "a, b", "T"), Document("2", "c")]
    assert list(read_documents(tmp_path)) == list(read_documents(path))
    asked = WRITE[ending](tmp_path / f"asked{ending}", [["qid", "question"], ["1", "who?"]])
    assert list(read_queries(asked)) == [Query("1", "who?")]


@each_kind
def test_glossaries(tmp_path, ending):
    rows: Rows = [
        ["Word", "Meaning", "Example"],
        ["zorvex", "who signs", "a zorvex; the zorvex"],
        ["b", "c", None],
    ]
    expected = [Definition("zorvex", "who signs", ("a zorvex", "the zorvex")), Definition("b", "c")]
    assert read_dictionary(WRITE[ending](tmp_path / f"glossary{ending}", rows)) == expected


def test_a_column_of_lists_holds_examples(tmp_path):
    rows: Rows = [["term", "definition", "examples"], ["a", "b", ["c; d", "e"]]]
    assert read_dictionary(frame(tmp_path / "g.parquet", rows)) == [Definition("a", "b", ("c; d", "e"))]


def test_of_several_sheets_the_first_is_read_and_that_is_said(tmp_path, capfd):
    path = workbook(tmp_path / "g.xlsx", [[None], ["term", "definition"], ["a", 2.0]], [["other"]])
    assert read_dictionary(path) == [Definition("a", "2")]
    assert capfd.readouterr().err == f"{path}: of 2 sheets the first is read (sheet 0)\n"


@each_kind
def test_mistakes_are_named_by_their_row(tmp_path, ending):
    path = WRITE[ending](tmp_path / f"g{ending}", [["term", "definition"], ["a", "b"], ["c", None]])
    with pytest.raises(InputError, match=rf':{3 if ending == ".xlsx" else 2}: needs a string "definition"'):
        read_dictionary(path)


@each_kind
@pytest.mark.parametrize("content", [b"", b"PK", b"text", None])
def test_what_is_none_is_refused_in_one_line(tmp_path, ending, content):
    path = WRITE[ending](tmp_path / f"corpus{ending}", [["_id", "text"], ["a", "b"]])
    path.write_bytes(path.read_bytes()[:-40] if content is None else content)
    with pytest.raises(
        InputError, match=r": broken (workbook|Parquet file) \(.+\); save or copy it again$"
    ) as caught:
        list(read_documents(path))
    assert "\n" not in str(caught.value)


def test_a_workbook_that_stands_for_gigabytes_is_not_unpacked(tmp_path, monkeypatch):
    path = workbook(tmp_path / "corpus.xlsx", [["_id", "text"], ["a", "b"]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/more.xml", b" " * 3_000_000)
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(tables, "LARGEST", 1_000_000)
    with pytest.raises(
        InputError, match=r"is 3,\d+,\d+ bytes when unpacked, of at most 1,000,000; save it as CSV"
    ):
        list(read_documents(path))


def test_pdf_files_among_texts(tmp_path, capfd):
    (tmp_path / "a.txt").write_text("published")
    (tmp_path / "b.pdf").write_bytes(pdf("A zorvex decides", "what a team spends."))
    (tmp_path / "c.pdf").write_bytes(pdf())
    assert list(read_documents(tmp_path)) == [
        Document("a.txt", "published"),
        Document("b.pdf", "A zorvex decides\nwhat a team spends.", "On zorvex"),
        Document("c.pdf", "", "On zorvex"),
    ]
    assert (
        f"{tmp_path}: 1 PDF files hold no text; scanned pages have to be recognised" in capfd.readouterr().err
    )


@pytest.mark.parametrize("content", [b"", b"%PDF-1.4", b"text", pdf("a")[:200]])
def test_a_broken_pdf_is_one_line(tmp_path, content):
    (tmp_path / "b.pdf").write_bytes(content)
    with pytest.raises(InputError, match=r"b\.pdf: broken PDF \(.+\); print it to PDF again$"):
        list(read_loose(tmp_path))


@pytest.mark.parametrize(
    ("package", "name"), [("openpyxl", "c.xlsx"), ("pyarrow.parquet", "c.parquet"), ("pypdf", "c.pdf")]
)
def test_a_missing_package_says_what_to_install(tmp_path, monkeypatch, package, name):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"any")
    with pytest.raises(MissingExtraError, match=r"is not installed: pip install 'sparse-adapt\[files\]'"):
        list(read_documents(tmp_path if name.endswith(".pdf") else tmp_path / name))


def test_a_pdf_by_itself_is_no_collection(tmp_path):
    (tmp_path / "b.pdf").write_bytes(pdf("a"))
    with pytest.raises(SparseAdaptError):
        list(read_documents(tmp_path / "b.pdf"))
