"""Each reader beside a parser that somebody else wrote: the same texts from the same file, whatever they hold."""

import html
import io
import json
from pathlib import Path

import ir_measures
import pandas
import pytest
from bs4 import BeautifulSoup
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as some
from lxml import etree

from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.collection.readers import read_documents, read_judgements, read_queries, read_run
from sparse_adapt.errors import InputError

SIGNS = some.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2028\u2029\ufeff")
WORDS = some.text(SIGNS, min_size=1, max_size=20).map(str.strip).filter(str)
XML = WORDS.filter(lambda text: not any(ord(sign) in (0xFFFE, 0xFFFF) for sign in text))
IDS = some.from_regex(r"[A-Za-z0-9_.:-]{1,12}", fullmatch=True)
TEXTS = some.dictionaries(IDS, some.tuples(WORDS, WORDS), min_size=1, max_size=6)
often = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("files")


def found(path: Path) -> dict[str, tuple[str, str]]:
    """Documents as we read them."""
    return {each.document_id: (each.title, each.text) for each in read_documents(path)}


def told(frame: pandas.DataFrame) -> dict[str, tuple[str, str]]:
    """Documents as pandas reads them."""
    return {row._1: (row.title, row.text) for row in frame.rename(columns={"_id": "_1"}).itertuples()}


@often
@given(texts=TEXTS)
def test_tables_as_pandas_reads_them(place, texts):
    rows = [{"_id": each, "title": title, "text": text} for each, (title, text) in texts.items()]
    frame = pandas.DataFrame(rows, dtype="string")
    as_text = {"dtype": "string", "keep_default_na": False}
    lines = place / "c.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert found(lines) == told(pandas.read_json(lines, lines=True, dtype=False, convert_dates=False))
    frame.to_csv(place / "c.csv", index=False)
    assert found(place / "c.csv") == told(pandas.read_csv(place / "c.csv", **as_text))
    frame.to_parquet(place / "c.parquet")
    assert found(place / "c.parquet") == told(pandas.read_parquet(place / "c.parquet"))


@settings(often, max_examples=8)
@given(texts=TEXTS)
def test_workbooks_as_pandas_reads_them(place, texts):
    assume(not any(cell.startswith("=") for row in texts.values() for cell in row))  # a formula
    rows = [{"_id": f"d{each}", "title": title, "text": text} for each, (title, text) in texts.items()]
    pandas.DataFrame(rows).to_excel(place / "c.xlsx", index=False)
    frame = pandas.read_excel(place / "c.xlsx", dtype=str, keep_default_na=False)
    trimmed = {each: (title.strip(), text.strip()) for each, (title, text) in told(frame).items()}
    assert found(place / "c.xlsx") == trimmed


def test_a_formula_that_no_program_has_computed_is_no_text(place):
    pandas.DataFrame([{"_id": "d1", "title": "", "text": "=0"}]).to_excel(place / "c.xlsx", index=False)
    with pytest.raises(InputError, match=r'c\.xlsx:2: needs a string "text"'):
        found(place / "c.xlsx")


@often
@given(judged=some.dictionaries(some.tuples(IDS, IDS), some.integers(-2, 3), min_size=1, max_size=8))
def test_judgements_and_runs_as_ir_measures_reads_them(place, judged):
    qrels, run = place / "qrels.txt", place / "results.run"
    qrels.write_text(
        "".join(f"{query} 0 {document} {grade}\n" for (query, document), grade in judged.items())
    )
    theirs = {
        (each.query_id, each.doc_id): each.relevance for each in ir_measures.read_trec_qrels(str(qrels))
    }
    ours = {
        (query, document): grade
        for query, of in read_judgements(qrels).items()
        for document, grade in of.items()
    }
    assert ours == theirs == judged
    run.write_text(
        "".join(f"{query} Q0 {document} 1 {grade / 4} x\n" for (query, document), grade in judged.items())
    )
    scored = {(each.query_id, each.doc_id): each.score for each in ir_measures.read_trec_run(str(run))}
    assert {
        (query, each): score for query, of in read_run(run).items() for each, score in of.items()
    } == scored


@often
@given(texts=some.dictionaries(IDS, XML, min_size=1, max_size=6))
def test_topics_and_documents_as_lxml_reads_them(place, texts):
    topics = etree.Element("topics")
    for each, text in texts.items():
        topic = etree.SubElement(topics, "topic", number=each)
        etree.SubElement(topic, "title").text = text
    path = place / "topics.xml"
    path.write_bytes(etree.tostring(topics, encoding="utf-8"))
    theirs = {each.get("number"): single(each.findtext("title")) for each in etree.parse(path).iter("topic")}
    assert {query.query_id: query.text for query in read_queries(path)} == theirs


@often
@given(texts=some.dictionaries(XML, XML, min_size=1, max_size=5))
def test_glossaries_as_lxml_reads_them(place, texts):
    body = etree.Element("martif")
    for term, definition in texts.items():
        entry = etree.SubElement(body, "termEntry")
        of = etree.SubElement(entry, "langSet", {"{http://www.w3.org/XML/1998/namespace}lang": "en"})
        etree.SubElement(of, "descrip", type="definition").text = definition
        etree.SubElement(etree.SubElement(of, "tig"), "term").text = term
    path = place / "g.tbx"
    path.write_bytes(etree.tostring(body, encoding="utf-8"))
    theirs = {
        (single(each.findtext(".//term")), single(each.findtext(".//descrip")))
        for each in etree.parse(path).iter("termEntry")
    }
    assert {(each.term, each.definition) for each in read_dictionary(path)} == theirs


@pytest.mark.plugins("files")
@often
@given(parts=some.lists(WORDS, min_size=1, max_size=5))
def test_pages_as_beautiful_soup_reads_them(parts):
    from sparse_adapt.plugins.files.markup import text_of_page

    page = "".join(f"<p>{html.escape(part)}</p>\n" for part in parts)
    theirs = BeautifulSoup(f"<html><body>{page}</body></html>", "html.parser").get_text()
    assert text_of_page(f"<html><body>{page}</body></html>", "a.html").text == single(theirs)


def single(text: str | None) -> str:
    """With single spaces."""
    return " ".join(io.StringIO(text or "").read().split())
