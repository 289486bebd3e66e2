"""Pages in HTML: nothing that a file holds becomes markup."""

import re
from html.parser import HTMLParser

import pytest

from sparse_adapt.errors import InputError
from sparse_adapt.plugins.pages.html import fragment, read_page, served, written
from sparse_adapt.report.sections import (
    Bar,
    BarList,
    CommandText,
    Facts,
    Field,
    Fold,
    Heat,
    Listing,
    Prose,
    RankedDocument,
    Ranking,
    Rankings,
    Section,
    TableRows,
    Warm,
    WebForm,
    WebPage,
    untitled,
)
from sparse_adapt.report.tables import Column, Table

HOSTILE = "<script>alert(1)</script>\"'&\x1b[2J\u202eevil{{ 7 * 7 }}"
SHOWN = "&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;&amp;\\x1b[2J\\u202eevil{{ 7 * 7 }}"


class Tags(HTMLParser):
    """Which elements a page has."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.open = []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def every_part(text):
    table = Table(
        text, (Column("a", text, "text"), Column("b", "b")), [{"a": text, "b": 2, "to": "#x"}], text
    )
    found = RankedDocument(text, text, "1.0", True, [Bar(text, text, 0.5, text, True)], "#x")
    return [
        Prose(text, "good"),
        Listing([Prose(text, "bad")]),
        Facts([(text, text)]),
        TableRows(table, {"a": "to"}),
        Heat(text, [Warm(text, 0.5, text, marked=True)], text),
        BarList(text, [Bar(text, text, 2.0)], text),
        Rankings([Ranking(text, [found], text), Ranking(text, [])]),
        CommandText(text),
        Fold(text, [Prose(text)], open=True, name="x"),
        WebForm(
            "/x",
            [Field("a", text, text), Field("b", text, "1", (0, 2, 1)), Field("c", "", text, hidden=True)],
            text,
        ),
    ]


@pytest.fixture
def page():
    return WebPage(
        HOSTILE, [Section("x", HOSTILE, every_part(HOSTILE), HOSTILE)], HOSTILE, HOSTILE, [(HOSTILE, "#x")]
    )


def test_every_string_of_every_part_is_escaped(page):
    text = written(page)
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert "script" not in {tag for tag, _ in tags.seen}
    assert "\x1b" not in text and "\u202e" not in text
    assert "49" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
    assert text.count(SHOWN) > 25


def test_a_page_needs_no_other_file_and_no_inline_style(page):
    tags = Tags()
    tags.feed(written(page))
    assert not [tag for tag, attributes in tags.seen if "style" in attributes or "src" in attributes]
    assert "link" not in {tag for tag, _ in tags.seen}
    assert {attributes["href"] for tag, attributes in tags.seen if tag == "a"} == {"#x", "#content"}
    policy = next(a["content"] for t, a in tags.seen if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_a_served_page_names_its_style_sheet_and_script(page):
    text = served(page, "/style.css", "/explore.js")
    assert '<link rel="stylesheet" href="/style.css">' in text
    assert '<script src="/explore.js" defer></script>' in text
    assert "<style>" not in text


def test_a_fragment_for_a_notebook_has_its_style_and_no_page():
    text = fragment(untitled("a < b"))
    assert "<html" not in text and "a &lt; b" in text and ".sparse-adapt" in text


@pytest.mark.parametrize(("warmth", "shade"), [(-1.0, 0), (0.0, 0), (0.44, 4), (1.0, 10), (3.0, 10)])
def test_shades_are_tenths(warmth, shade):
    assert Warm("a", warmth).shade == shade


def test_a_page_is_known_by_its_title(tmp_path, page):
    path = tmp_path / "page.html"
    path.write_text(written(page))
    assert "script" in read_page(path)
    path.write_text("<title>mine</title>")
    with pytest.raises(InputError, match=r"page\.html: not a page of sparse-adapt"):
        read_page(path)


def test_every_table_has_a_name_of_its_own():
    columns = (Column("a", "stage", "text"), Column("b", "time", unit="s")), (Column("a", "a", "text"),)
    tables = [Table("Stages", columns[0], []), *(Table("", each, []) for each in columns)]
    text = written(WebPage("t", [Section("s", "S", [TableRows(each) for each in tables])]))
    assert re.findall(r'role="region" .*?aria-label="(.*?)"', text) == ["Stages", "stage, time (s)", "a"]
