"""HTML and Markdown: no word that a reader sees is lost, code stays whole, and crafted files are refused in time."""

import sys
import time

import pytest

from sparse_adapt.collection.readers import Document, documents_at, read_documents
from sparse_adapt.errors import InputError, MissingExtraError
from sparse_adapt.plugins.files.markup import text_of_markdown, text_of_page, without_markup


@pytest.mark.parametrize(
    ("page", "title", "text"),
    [
        ("<html><head><title>T &amp; U</title></head><body><p>a</p>b</body></html>", "T & U", "a b"),
        ("<html><head><title>T</title><meta charset=x>\n<p>no end of head</p>", "T", "no end of head"),
        ("<title>T</title><body><noscript><p>open</p><p>to the end</p>", "T", "open to the end"),
        ("<svg><title>icon</title><path d='M 0'/></svg><p>words</p>", "", "words"),
        ("<p>in<b>line</b>d H<sub>2</sub>O</p><ul><li>a<li>b</ul><td>c</td>d", "", "inlined H2O a b cd"),
        ("<script>if (a<b) x('</p>')</script><style>p{}</style>seen<template>no</template>", "", "seen"),
        ("<pre>cat &lt;&lt;EOF &gt; f\n&lt;Days&gt;</pre>", "", "cat <<EOF > f <Days>"),
        ("<button>press</button><textarea>typed</textarea>", "", "[ press ] [ typed ]"),
        ("<!-- a --><p title='x > y'>b<!-- c --></p>caf&eacute; R&D", "", "b café R&D"),
    ],
)
def test_pages(page, title, text):
    assert text_of_page(page, "a.html") == (title, text)


def test_xhtml_closes_elements_that_html_does_not():
    page = '<html><head><script src="a"/><title/></head><body><br/>words</body></html>'
    assert text_of_page(page, "a.xhtml", xml=True) == ("", "words")


@pytest.mark.parametrize(
    ("source", "title", "text"),
    [
        ('# Rules<a name="rules"></a>\n\nSome *text*\n', "Rules", "Some text"),
        ("---\ntitle: 'A: b'\ntags: [x]\n---\n# A heading\n\nc", "A: b", "A heading\nc"),
        ("---\ntitle: Same\n---\n# Same\n\nc", "Same", "c"),
        ("---\n{{ no }}: yaml: x\n---\nb", "", "b"),
        ("Set\n===\n\na\nb", "Set", "a\nb"),
        ('+++\ntitle = "Flux gate"\nstatus = "Deprecated"\n+++\n\nb', "Flux gate", "b"),
        ("+++\ntitle = broken: still\n+++\nb", "broken: still", "b"),
        ("+++\nb", "", "+++\nb"),
        ('{"title": "Flux gate", "status": {"a": [1]}}\n\nb', "Flux gate", "b"),
        ('{"a": 1}\n\nb', "", '{"a": 1}\nb'),
        ("---\ntitle: Flux gate: how it works\nstatus: Deprecated\n---\n\nb", "Flux gate: how it works", "b"),
        ("---\nTitle: Yes\n...\nb", "Yes", "b"),
        ("---\ntitle: 1.10\ndate: 0000-00-00\n---\nb", "1.10", "b"),
        ("---\r\ntitle: >\r\n  Flux\r\n  gate\r\n---\r\nb", "Flux gate", "b"),
        ("---\n---\nb", "", "b"),
        ("---\n\nSome words.\n\n---\n\nb", "", "Some words.\nb"),  # a file that begins with a rule
        ("---\n\nNote: some words.\n\n---\nb", "", "Note: some words.\nb"),
        ("---\nSome words\n---\nb", "", "Some words\nb"),
        ("---\nb", "", "b"),
        (
            "Set the <title> of a page, and its <textarea>. Say a<b and c>d.",
            "",
            "Set the <title> of a page, and its <textarea>. Say a<b and c>d.",
        ),
        ("<title> names a page, </title> ends it.\n\n*b*", "", "<title> names a page, </title> ends it.\nb"),
        ("<textarea> is a tag.", "", "<textarea> is a tag."),
        (
            "the <a> tag, an <a name='x'> anchor, <kbd>x</kbd>, <img src='a'>",
            "",
            "the <a> tag, an  anchor, x,",
        ),
        ("<div>\n\n# b\n\n</div>\n\n<center>\nc\n\nd", "", "b\nc\nd"),
        ("no heading\n\n# Later", "", "no heading\nLater"),
        (
            "Use `<NoncurrentDays>` or <NoncurrentDays>30</NoncurrentDays>.",
            "",
            "Use <NoncurrentDays> or <NoncurrentDays>30</NoncurrentDays>.",
        ),
        ("```xml\n<Days>3</Days>\n```\n\n    cat <<EOF > f\n", "", "<Days>3</Days>\ncat <<EOF > f"),
        ("<Days>\n3\n\n<div>in <b>a</b> block</div>\n\n<!-- no -->\nend", "", "<Days> 3\nin a block\nend"),
        ("[link](http://x) ![a picture](p.png) &copy; a<br>b \\*", "", "link a picture © a b *"),
        ("| a | b |\n|---|---|\n| c | ~~d~~ |\n\n- e\n- f", "", "a\nb\nc\nd\ne\nf"),
        ("vector<int> and a<b, p<0.05", "", "vector<int> and a<b, p<0.05"),
    ],
)
def test_markdown(source, title, text):
    assert text_of_markdown(source, "a.md") == (title, text)


def test_the_end_of_a_name_says_what_a_text_is(tmp_path, capfd):
    for name, text in {
        "b/page.html": "<html><head><title>T</title></head><body><p>a</p>b</body></html>",
        "a.md": "# Title\n\nSome *text* with `<b>`\n",
        "c.txt": "# no title, <b>no</b> page\n",
        "d.RST": "Title\n=====\n<p>\n",
        ".git/e.txt": "hidden",
        "picture.png": "no",
        "x": "no",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(read_documents(tmp_path)) == [
        Document("a.md", "Some text with <b>", "Title"),
        Document("b/page.html", "a b", "T"),
        Document("c.txt", "# no title, <b>no</b> page"),
        Document("d.RST", "Title\n=====\n<p>"),
    ]
    assert documents_at(tmp_path) == tmp_path
    said = capfd.readouterr().err
    assert "no corpus.jsonl, so its text, Markdown, HTML and PDF files are read" in said
    assert f"{tmp_path}: 2 files of other kinds are left out (1 .png, 1 no ending)\n" in said


def test_a_field_is_text_whatever_it_holds(tmp_path, capfd):
    lines = ['{"_id": "1", "text": "<div>One&nbsp;two</div>"}', '{"_id": "2", "text": "a <Days> tag"}']
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    texts = [document.text for document in read_documents(tmp_path / "c.jsonl")]
    assert texts == ["<div>One&nbsp;two</div>", "a <Days> tag"]
    assert "1 texts hold tags of HTML, which are read as they stand" in capfd.readouterr().err


@pytest.mark.parametrize("target", ["out/secret.txt", "out", "nothing"])
def test_links_out_of_a_folder_are_refused_and_named(tmp_path, target):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret.txt").write_text("secret")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a")
    (tmp_path / "in" / "b.txt").symlink_to("a.txt")
    assert [document.text for document in read_documents(tmp_path / "in")] == ["a", "a"]
    (tmp_path / "in" / "c.txt").symlink_to(tmp_path / target)
    with pytest.raises(
        InputError, match=r"in/c\.txt: a link that leads out of the folder, or nowhere; copy the file"
    ):
        list(read_documents(tmp_path / "in"))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<p>The <b>server</b> sends<br>a <a href='x'>log</a>.", "The server sends a log."),
        (
            "Use <code>cp <source> x</code> &amp; <em>a<b</em>, <img src='p.png'/>wait",
            "Use cp <source> x & a<b, wait",
        ),
        ("cp <source>  <target>, a<b and c>d; List<object>", None),
        ("#include <time.h> // <input>, <days>3</days>, R&amp;D", None),
        ("<b>" * 100_000, None),
        ("<b>x</b>" * 20_000, "x" * 20_000),
    ],
)
def test_html_goes_and_what_looks_like_it_stays(text, left):
    start = time.process_time()
    assert without_markup(text, "a.jsonl") == (text if left is None else left)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("markup", "problem"),
    [
        ("<div>" * 100_000 + "x", "over 20,000 tags have no end"),
        ("<a><b>" * 100_000 + "x", "over 20,000 tags have no end"),
        ("<p " + " ".join(f"a{number}='>'" for number in range(100_000)) + ">x", "over 10,000 attributes"),
        (
            "<p " + " ".join(f"a{number}=1" for number in range(100_000)) + ">x",
            "over 10,000 attributes",
        ),
        ("<!-- c -->" * 100_000 + "x", "x"),
        ("<!-- " * 100_000, ""),
        ("<p><td>" * 100_000 + "x", "x"),
        ("<div>a</div>" * 100_000, "a " * 100_000),
        ("<path d='" + "M 0 1 " * 100_000 + "'>x", "x"),
    ],
)
def test_crafted_pages_take_no_time(markup, problem):
    start = time.process_time()
    try:
        assert text_of_page(markup, "a.html").text == problem.strip()
    except InputError as error:
        assert problem and problem in str(error)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("package", ["resiliparse.parse.html", "markdown_it"])
def test_a_missing_package_says_what_to_install(monkeypatch, package):
    from sparse_adapt.plugins.files.markup import _markdown

    _markdown.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"is not installed: pip install 'sparse-adapt\[files\]'"):
        text_of_markdown("# a\n\n<p>b</p>", "a.md")
