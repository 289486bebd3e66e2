"""Workbooks, data frames and PDF files, small ones."""

from pathlib import Path

import openpyxl
import pyarrow
from pyarrow import parquet

Rows = list[list[object]]


def workbook(path: Path, *sheets: Rows) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet {number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def frame(path: Path, rows: Rows) -> Path:
    """A Parquet file: the first row names the columns."""
    names, *values = rows
    columns = {str(name): [row[place] for row in values] for place, name in enumerate(names)}
    parquet.write_table(pyarrow.table(columns), path)
    return path


def pdf(*lines: str) -> bytes:
    """A file of one page, written by hand."""
    shown = b"\n".join(b"(" + line.encode("latin-1") + b") Tj T*" for line in lines)
    stream = b"BT /F1 12 Tf 14 TL 40 700 Td " + shown + b" ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /MediaBox [0 0 600 800] "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (On zorvex) >>",
    ]
    content, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"xref\n0 7\n0000000000 65535 f \n%strailer << /Size 7 /Root 1 0 R /Info 6 0 R >>\n" % table
    return content + end + b"startxref\n%d\n%%%%EOF\n" % len(content)
