"""Files as others publish them, each against what stands in it by hand."""

import pytest

from sparse_adapt.collection.readers import Document, Query, read_documents, read_judgements, read_queries
from sparse_adapt.errors import InputError
from sparse_adapt.terms.mining import Term, read_terms


def put(folder, name, content):
    (folder / name).write_text(content)
    return folder / name


def test_posts_of_stackexchange(tmp_path, capfd):
    rows = (
        '<?xml version="1.0" encoding="utf-8"?>\n<posts>\n'
        '  <row Id="4" PostTypeId="1" Title="a &lt; b?" Body="&lt;p&gt;Use '
        '&lt;code&gt;&amp;lt;id&amp;gt;&lt;/code&gt;.&lt;/p&gt;" />\n'
        '  <row Id="7" PostTypeId="2" ParentId="4" Body="&lt;p&gt;No&lt;/p&gt;&lt;p&gt;way&lt;/p&gt;" />\n'
        '  <row Id="9" PostTypeId="5" Body="a wiki" />\n</posts>\n'
    )
    path = put(tmp_path, "Posts.xml", rows)
    assert list(read_documents(path)) == [Document("4", "Use <id>.", "a < b?"), Document("7", "No way")]
    assert "1 posts are no question and no answer, and are left out" in capfd.readouterr().err
    with pytest.raises(InputError, match=r":1: broken XML"):
        list(read_documents(put(tmp_path, "Posts.xml", '<row Id="4" <\n')))


def test_smart(tmp_path, capfd):
    text = ".I 1\n.T\nflow past\na plate .\n.A\nlight\n.W\nthe flow\n.I x ample\n.I 2\n.T\nonly a title\n.K\npumps\n"
    path = put(tmp_path, "cran.all", text)
    assert list(read_documents(path)) == [
        Document("1", "the flow .I x ample", "flow past a plate ."),
        Document("2", "", "only a title", "pumps"),
    ]
    assert f"{path}: the fields .A are left out\n" in capfd.readouterr().err
    asked = put(tmp_path, "MED.QRY", ".I 1\n.W\nwhat flow\n.I 2\n.W\nwhich\n")
    assert list(read_queries(asked)) == [Query("1", "what flow"), Query("2", "which")]
    with pytest.raises(InputError, match=":1: words outside a field"):
        list(read_documents(put(tmp_path, "x.all", "1 what\n")))


def test_documents_of_ms_marco_and_of_wikiextractor(tmp_path):
    path = put(tmp_path, "docs.tsv", "D1\thttp://x\tA title\tA body\nD2\thttp://y\t\tb\n")
    assert list(read_documents(path)) == [Document("D1", "A body", "A title"), Document("D2", "b")]
    path = put(tmp_path, "wiki_00", '<doc id="12" url="http://x" title="T">\nT\n\na\n</doc>\n')
    assert list(read_documents(path)) == [Document("12", "T a", "T")]


@pytest.mark.parametrize(
    "content",
    [
        "query_id,doc_id,relevance\nq,d1,2\nq,d2,0\n",
        "q,d1,2\nq,d2,0\n",
        "q,0,d1,2\nq,0,d2,0\n",
        "rel;docno;qid\n2;d1;q\n0;d2;q\n",
    ],
)
def test_judgements_in_a_csv(tmp_path, content):
    assert read_judgements(put(tmp_path, "qrels.csv", content)) == {"q": {"d1": 2, "d2": 0}}


def test_a_grade_that_is_no_number_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"qrels\.csv:2: needs a number as grade \(found: good\)"):
        read_judgements(put(tmp_path, "qrels.csv", "qid,docid,rel\nq,d,good\n"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("terms.txt", "kubectl\n\n  OAuth2 \nrate limit\n"),
        ("terms.csv", "kubectl\nOAuth2\nrate limit\n"),
        ("terms.csv", "Begriff;Nr\nkubectl;1\nOAuth2;2\nrate limit;3\n"),
        ("terms.json", '["kubectl", "OAuth2", "rate limit"]'),
    ],
)
def test_terms_of_any_shape(tmp_path, name, content):
    terms = {term.text: term.category for term in read_terms(put(tmp_path, name, content))}
    assert terms == {"kubectl": "jargon", "OAuth2": "acronyms", "rate limit": "jargon"}


def test_terms_of_a_table_keep_their_categories(tmp_path):
    path = put(tmp_path, "t.csv", "term,category\nkubectl,tools\nOAuth2,\n")
    assert read_terms(path) == [Term("kubectl", "tools"), Term("OAuth2", "acronyms")]
    with pytest.raises(InputError, match=r':3: duplicate term "a" \(first on line 1\)'):
        read_terms(put(tmp_path, "t.txt", "a\nb\na\n"))
    with pytest.raises(InputError, match="holds an empty term"):
        read_terms(put(tmp_path, "t.json", '["a", ""]'))
