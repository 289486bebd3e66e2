"""Markup as TREC writes it: a tag of the grammar counts where one may stand, and no word of a field is lost."""

import time

import pytest

from sparse_adapt.collection.readers import Document, Query, read_documents, read_queries
from sparse_adapt.errors import InputError


def put(folder, content, name="c.trec"):
    (folder / name).write_text(content)
    return folder / name


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        (
            "<top>\n<num> 1\n<title> effect size p<0.05 with n>30\n<desc> x\n</top>",
            "effect size p<0.05 with n>30",
        ),
        ("<top>\n<num> 1\n<title> vector<int> iterator\n<smry> x\n</top>", "vector<int> iterator"),
        (
            "<top>\n<num> 1\n<title> curl /users/<id> returns 404\n<desc> x\n</top>",
            "curl /users/<id> returns 404",
        ),
        (
            "<top>\n<num> 1\n<title> the <title> of a <DOC> in a <top>\n</top>",
            "the <title> of a <DOC> in a <top>",
        ),
        ("<top>\n<num> 1\n<title> what </top> ends\n</top>", "what </top> ends"),
        ("<top>\n<num> 1\n<title> two\nlines\n<desc> x\n</top>", "two lines"),
        ("<top><num>1<title>all in a line</top>", "all in a line"),
        ('<topic number="1"><title><![CDATA[a <b> & &amp;]]></title></topic>', "a <b> & &amp;"),
        ('<topic number="1">only &lt;3 words</topic>', "only <3 words"),
        ("<topic id='1'><title>in <i>vi</i>vo x</title><other>y</other></topic>", "in vivo x"),
        ("<topic id='1'><desc>a <query>b</query> c</desc></topic>", "a b c"),
        ("<queries><query>\n<qid>1</qid>\n<content>what</content>\n</query></queries>", "what"),
        ("<!-- <top> -->\n<DOC><DOCNO>1</DOCNO><TEXT>what<!-- x --></TEXT></DOC>", "what"),
    ],
)
def test_topics(tmp_path, topic, text):
    assert list(read_queries(put(tmp_path, topic))) == [Query("1", text)]


@pytest.mark.plugins("files")
@pytest.mark.parametrize(
    ("body", "document"),
    [
        (  # the older disks: headline, paragraphs closed and not, what stands beside the text
            "<DOCNO> FT-1 </DOCNO>\n<DATE>1994</DATE>\n<HEADLINE>\n<P>Two &amp; two</P>\n</HEADLINE>\n"
            "<TEXT>\n<P>one, p<0.05\n<P>\nin&hyph;line\n</TEXT>\n<TEXT>two</TEXT>\n",
            Document("FT-1", "one, p<0.05 in-line two", "Two & two"),
        ),
        (  # a title within elements that the grammar doesn't know
            "<DOCNO>F</DOCNO>\n<HEADER>\n<H3> <TI> A title </TI></H3>\n</HEADER>\n<TEXT>a <F P=1>b</F></TEXT>",
            Document("F", "a b", "A title"),
        ),
        (  # names of fields within a field, at the beginning of a line too
            "<DOCNO>1</DOCNO>\n<TEXT>\nfirst\n<TITLE>inner</TITLE>\nuse <text> or <head>\n<HEAD>\nlast\n</TEXT>",
            Document("1", "first inner use <text> or <head> <HEAD> last"),
        ),
        (
            "<DOCNO>1</DOCNO>\n<HL> one\n<HEAD> two\n<LP>\nlead\n<TEXT>\nbody\n",
            Document("1", "one lead body", "two"),
        ),
        ("<DOCNO>1</DOCNO>\n<LP> lead </LP>\nbetween\n<NOTE>said</NOTE>", Document("1", "lead")),
        (
            "<DOCNO>1</DOCNO>\nno fields, <b>bold</b> and /a/<id>\n<NOTE>said</NOTE>",
            Document("1", "no fields, bold and /a/<id> said"),
        ),
        (  # tables of the newspapers: rules that nothing closes are marks
            "<DOCNO>L</DOCNO>\n<TEXT>\n<TABLE CWL='1'><ROWRULE>\n<TABLEROW><TABLECELL CHJ='L'>Oil</TABLECELL>\n"
            "<CELLRULE><TABLECELL>7</TABLECELL></TABLEROW>\n<ROWRULE>\n</TABLE>\n<TR><TD>Gas<TD>8\nuse <id>\n</TEXT>",
            Document("L", "Oil 7 Gas 8 use <id>"),
        ),
        (  # a page behind its header
            "<DOCNO>W2</DOCNO><DOCHDR>http://x</DOCHDR><html><head><title>T</title><script>x < 3</script></head>"
            "<body><p>A&nbsp;<b>b</b></p><div>c</div></body></html>",
            Document("W2", "A b c", "T"),
        ),
    ],
)
def test_documents(tmp_path, body, document):
    assert list(read_documents(put(tmp_path, f"<DOC>\n{body}</DOC>\n<DOC><DOCNO>2</DOCNO> x</DOC>"))) == [
        document,
        Document("2", "x"),
    ]


def test_documents_whose_id_and_title_are_attributes(tmp_path):
    text = '<doc id="12" url="http://x/?a=1" title="Tom &amp; Jerry">\nTom & Jerry\n\nA cat\n</doc>\n'
    assert list(read_documents(put(tmp_path, text))) == [Document("12", "Tom & Jerry A cat", "Tom & Jerry")]


def test_what_is_left_out_is_said(tmp_path, capfd):
    path = put(tmp_path, "stray words\n<DOC><DOCNO>1</DOCNO><DATE>now</DATE><TEXT>a</TEXT></DOC>\nmore\n")
    assert list(read_documents(path)) == [Document("1", "a")]
    said = capfd.readouterr().err
    assert f"{path}: 2 lines stand in no document, and are left out\n" in said
    assert f"{path}: what stands beside the texts is left out (date)\n" in said


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("<DOC>\n<TEXT>a</TEXT></DOC>", r":1: needs a <DOCNO> \(found: text\)"),
        ("<DOC>\n<DOCNO>1</DOCNO>\n<DOC>\n", ":3: a document starts here and that of line 1 has no end"),
        ("<DOC>\n<DOCNO>1</DOCNO>\n", ":1: this document has no end"),
        ("words\n", "holds no documents"),
    ],
)
def test_what_is_broken_is_refused(tmp_path, content, problem):
    with pytest.raises(InputError, match=problem):
        list(read_documents(put(tmp_path, content)))


def test_an_entry_without_an_end_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("sparse_adapt.collection.trec.LONGEST_LINE", 1000)
    with pytest.raises(InputError, match=r":1: an entry of over 1,000 signs; add the missing </doc>"):
        list(read_documents(put(tmp_path, "<DOC>\n" + "word\n" * 1000)))


@pytest.mark.parametrize(
    "stray",
    [
        "<text>",
        "<text>\n",
        "</text>",
        "<num>",
        "<a ",
        "<!--",
        "<![CDATA[",
        "x <doc>",
        "x </doc>x",
        "<b></b>",
        "a=",
        " ",
    ],
)
def test_time_is_linear_in_the_bytes(tmp_path, stray):
    """What takes the square of it needs minutes."""
    path = put(tmp_path, f"<DOC>\n<DOCNO>1</DOCNO><TEXT>a\n{stray * 100_000}</TEXT>\n</DOC>\n")
    start = time.process_time()
    assert next(read_documents(path)).document_id == "1"
    assert time.process_time() - start < 5
