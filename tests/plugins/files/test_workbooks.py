"""Workbooks, data frames and PDF files: read as the same rows in CSV are, or refused in one line."""

import sys
import zipfile

import pytest
from office import Rows, frame, pdf, workbook

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


def test_the_sheet_and_the_row_where_the_table_begins_are_found_and_named(tmp_path, capfd):
    cover: Rows = [["Terms of the house"], [None], ["version", 3]]
    table: Rows = [[None], [None, "Our glossary"], [None, "Begriff", "Nr", "Bedeutung"], [None, "a", 7, 2.0]]
    path = workbook(tmp_path / "g.xlsx", cover, table)
    assert read_dictionary(path) == [Definition("a", "2")]
    assert capfd.readouterr().err == (
        f"{path}: sheet 'sheet 1': line 3 taken for headings ('Begriff' as term, 'Bedeutung' as definition); "
        "left out: the columns 'Nr' and 1 rows above\n"
    )


@each_kind
def test_mistakes_are_named_by_their_row(tmp_path, ending):
    path = WRITE[ending](tmp_path / f"g{ending}", [["id", "text"], ["a", "b"], [None, "c"]])
    with pytest.raises(InputError, match=rf':{3 if ending == ".xlsx" else 2}: needs a string "_id"'):
        list(read_documents(path))


@each_kind
@pytest.mark.parametrize("content", [b"", b"PK", b"text", None])
def test_what_is_none_is_refused_in_one_line(tmp_path, ending, content):
    path = WRITE[ending](tmp_path / f"corpus{ending}", [["_id", "text"], ["a", "b"]])
    path.write_bytes(path.read_bytes()[:-40] if content is None else content)
    with pytest.raises(
        InputError, match=r": broken (XLSX|PARQUET) file \(.+\); save or copy it again$"
    ) as caught:
        list(read_documents(path))
    assert "\n" not in str(caught.value)


def packed_with(path, name, content):
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, content)
    return path


def sheet_of(path, rows):
    """A workbook whose sheet says what it wants: cells by their places, in rows of any numbers."""
    workbook(path, [["_id", "text"]])
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    cells = "".join(
        f'<row r="{number}">'
        + "".join(f'<c r="{c}{number}" t="inlineStr"><is><t>{t}</t></is></c>' for c, t in row.items())
        + "</row>"
        for number, row in rows.items()
    )
    begin = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    parts["xl/worksheets/sheet1.xml"] = f"{begin}{cells}</sheetData></worksheet>".encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return path


HEAD, FIRST = {"A": "_id", "B": "text"}, {"A": "a", "B": "b"}


def test_a_workbook_that_stands_for_gigabytes_is_not_unpacked(tmp_path):
    path = workbook(tmp_path / "corpus.xlsx", [["_id", "text"], ["a", "b"]])
    packed_with(path, "xl/more.xml", b" " * 20_000_000)
    assert path.stat().st_size < 30_000
    bound = "of at most 67,108,864 and 100 times its own size; save it as CSV, which has no bound"
    with pytest.raises(InputError, match=rf"unfolds to 20,\d+,\d+ bytes, {bound}"):
        list(read_documents(path))


@pytest.mark.parametrize(
    "rows",
    [
        {1: HEAD, 2: FIRST, 1_048_577: FIRST},
        {1: HEAD, 2: FIRST, 10**12: FIRST},
        {1: {**HEAD, "ALM": "far"}, 2: FIRST},
    ],
    ids=["a row too many", "a row that no sheet has", "a column far out"],
)
def test_what_stands_far_out_is_refused_with_the_bound(tmp_path, rows):
    with pytest.raises(InputError, match="sheet 'sheet 0' has over 1,048,576 rows or 1,000 columns; delete"):
        list(read_documents(sheet_of(tmp_path / "corpus.xlsx", rows)))


def test_rows_and_columns_within_the_bounds_may_be_far_apart(tmp_path):
    path = sheet_of(tmp_path / "c.xlsx", {1: HEAD, 5: FIRST, 1_048_576: {"A": "z", "B": "y"}})
    assert list(read_documents(path)) == [Document("a", "b"), Document("z", "y")]
    with pytest.raises(InputError, match=":5: has 27 cells for 2 columns"):
        list(read_documents(sheet_of(path, {1: HEAD, 5: {**FIRST, "AA": "far"}})))


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
