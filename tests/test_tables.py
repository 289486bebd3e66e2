"""Tables as people have them: what parts the cells, which row is the headings, which column stands for what."""

import csv
import io
import time
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from office import workbook

import sparse_adapt as sa
from sparse_adapt.cli import main
from sparse_adapt.collection.arguments import Corpus, definitions_of, queries_of
from sparse_adapt.collection.glossary import Definition, read_dictionary
from sparse_adapt.collection.readers import (
    Document,
    Query,
    read_documents,
    read_judgements,
    read_queries,
)
from sparse_adapt.collection.sheets import delimiter_of
from sparse_adapt.errors import ConfigError, InputError, SparseAdaptError

PLAIN = [Definition("Zorvex", "wer zahlt, wann"), Definition("Glimfe", "ein Boot, klein")]


def put(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.csv", "Begriff;Definition\nZorvex;wer zahlt, wann\nGlimfe;ein Boot, klein\n"),
        ("g.csv", "Begriff;Definition, kurz\nZorvex;wer zahlt, wann\nGlimfe;ein Boot, klein\n"),
        ("g.csv", "sep=;\nBegriff;Definition\nZorvex;wer zahlt, wann\nGlimfe;ein Boot, klein\n"),
        ("g.csv", 'Term|Meaning\nZorvex|"wer zahlt, wann"\nGlimfe|ein Boot, klein\n'),
        ("g.csv", "Term\tMeaning\nZorvex\twer zahlt, wann\nGlimfe\tein Boot, klein\n"),
        ("g.csv", "Term;Meaning\rZorvex;wer zahlt, wann\rGlimfe;ein Boot, klein\r"),
        ("g.csv", "\ufeffterm,definition\r\nZorvex,\"wer zahlt, wann\"\r\nGlimfe,\"ein Boot, klein\"\r\n"),
        ("g.csv", "Glossar 3.1,,\n\nNr.,Abkürzung,Beschreibung\n1,Zorvex,\"wer zahlt, wann\"\n"
                  "2,Glimfe,\"ein Boot, klein\"\n"),
        ("g.tsv", "acronym\tExpansion\nZorvex\twer zahlt, wann\nGlimfe\tein Boot, klein\n"),
    ],
)  # fmt: skip
def test_the_same_glossary_in_many_dialects(tmp_path, name, content):
    assert read_dictionary(put(tmp_path, name, content)) == PLAIN


def test_a_comma_in_the_headings_parts_no_cells():
    rows = ["Begriff;Definition, kurz", "Zorvex;wer zahlt, wann", "Glimfe;ein Boot, klein"]
    assert delimiter_of(rows) == ";"
    assert delimiter_of(["a,b;c", "d,e;f", "g,h"]) == ","


cells = st.text(st.sampled_from('ab, ;|"é\n'), min_size=1).filter(lambda text: text == text.strip() != "")


@given(st.lists(cells, min_size=1), st.sampled_from(",;|\t"))
def test_what_a_csv_writer_wrote_is_read_back(tmp_path_factory, texts, delimiter):
    written = io.StringIO()
    rows = [[str(number), text] for number, text in enumerate(texts)]
    csv.writer(written, delimiter=delimiter).writerows([["id", "text"], *rows])
    path = put(tmp_path_factory.getbasetemp(), "c.csv", written.getvalue())
    assert [[each.document_id, each.text] for each in read_documents(path)] == rows


def test_quotes_of_a_tsv_are_letters_and_join_no_rows(tmp_path):
    path = put(tmp_path, "corpus.tsv", 'id\ttext\n1\t"a screen of 5" wide\n2\tb "c"\n')
    assert list(read_documents(path)) == [Document("1", '"a screen of 5" wide'), Document("2", 'b "c"')]


def test_a_cell_may_be_long(tmp_path):
    text = "word " * 40_000
    path = put(tmp_path, "corpus.csv", f"id,text\n1,{text}\n")
    assert list(read_documents(path)) == [Document("1", text.strip())]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("sku,name,description\n1,Pump,quiet\n2,Saw,loud\n", [("1", "Pump", "quiet"), ("2", "Saw", "loud")]),
        ("body,text,id\nx,quiet,1\ny,,2\n", [("1", "", "quiet"), ("2", "", "")]),
        ("Titel;Inhalt\nPump;quiet\nSaw;loud\n", [("2", "Pump", "quiet"), ("3", "Saw", "loud")]),
        ("17,content\n18,text\n", [("17", "", "content"), ("18", "", "text")]),
    ],
    ids=["of a shop", "one column for all rows", "numbered", "no headings"],
)
def test_columns_of_documents(tmp_path, content, expected):
    found = [
        (each.document_id, each.title, each.text) for each in read_documents(put(tmp_path, "c.csv", content))
    ]
    assert found == expected


def test_what_was_taken_and_left_out_is_said(tmp_path, capfd):
    path = put(tmp_path, "c.csv", "text,id,body,owner\na,1,b,c\n")
    assert list(read_documents(path)) == [Document("1", "a")]
    assert capfd.readouterr().err == (
        f"{path}: line 1 taken for headings ('id' as id, 'text' as text); left out: the columns 'body', 'owner'\n"
    )
    path = put(tmp_path, "q.tsv", "1\twho\n2\twhat\n")
    assert list(read_queries(path)) == [Query("1", "who"), Query("2", "what")]
    assert capfd.readouterr().err == (
        f"{path}: no headings (column 1 as id, column 2 as text); --columns names others\n"
    )


SENTENCES = "".join(f"w{sign},what a {sign} does for us\n" for sign in "abcdef")


@pytest.mark.parametrize(
    ("content", "first"),
    [
        ("Vok,Klar\n" + SENTENCES.replace("w", ""), "'Vok', 'Klar'"),
        ("Vok,Klar\na,1 x\nb,2 y\nc,3 z\n", "'Vok', 'Klar'"),
        ("artnr,description\nx,quiet\ny,loud\n", "'artnr', 'description'"),
    ],
    ids=["sentences below", "numbers below", "no id"],
)
def test_headings_of_unknown_names_are_no_data(tmp_path, content, first):
    with pytest.raises(
        InputError, match=rf"c\.csv:1: the row {first} looks like headings.*--columns id=\.\.\.,text="
    ):
        list(read_documents(put(tmp_path, "c.csv", content)))


TEXT = "the pump leaks oil into the gate"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.csv", f",text\n0,{TEXT}\n7,{TEXT}\n"),  # as pandas writes a frame
        ("c.csv", f"text,\n{TEXT},0\n{TEXT},7\n".replace("text,\n", "text,#\n")),
        ("c.csv", f"Unnamed: 0,text\n0,{TEXT}\n7,{TEXT}\n"),  # and what it read of that once more
        ("c.csv", f",label,text\n0,a,{TEXT}\n7,b,{TEXT}\n"),
        ("c.tsv", f"\tlabel\ttext\n0\ta\t{TEXT}\n7\tb\t{TEXT}\n"),
        ("c.csv", f"index,text\n0,{TEXT}\n7,{TEXT}\n"),
    ],
)
def test_a_column_without_a_heading_holds_the_ids(tmp_path, capfd, name, content):
    path = put(tmp_path, name, content)
    assert list(read_documents(path)) == [Document("0", TEXT), Document("7", TEXT)]
    assert " as id" in capfd.readouterr().err
    asked = put(tmp_path, f"q{path.suffix}", content.replace("text", "query"))
    assert list(read_queries(asked)) == [Query("0", TEXT), Query("7", TEXT)]


@pytest.mark.plugins("files")
def test_a_data_frame_s_own_judgements_judge_its_own_documents(tmp_path):
    pandas = pytest.importorskip("pandas")
    texts, asked = [TEXT, "cats sleep all day", "taxes help"], ["pump", "cats", "taxes"]
    pandas.DataFrame({"text": texts}).to_csv(tmp_path / "corpus.csv")
    pandas.DataFrame({"query": asked}).to_csv(tmp_path / "queries.csv")
    frame = pandas.DataFrame({"text": texts}, index=pandas.Index([5, 6, 9]))
    frame.to_parquet(tmp_path / "frame.parquet")
    frame.to_excel(tmp_path / "frame.xlsx")
    (tmp_path / "qrels").mkdir()
    judged = pandas.DataFrame({"query-id": [0, 1, 2], "corpus-id": [0, 1, 2], "score": 1})
    judged.to_csv(tmp_path / "qrels" / "test.tsv", sep="\t")
    assert list(read_documents(tmp_path)) == [Document(str(place), text) for place, text in enumerate(texts)]
    assert list(read_queries(tmp_path)) == [Query(str(place), text) for place, text in enumerate(asked)]
    assert read_judgements(tmp_path) == {"0": {"0": 1}, "1": {"1": 1}, "2": {"2": 1}}
    for name in ("frame.parquet", "frame.xlsx"):
        assert [each.document_id for each in read_documents(tmp_path / name)] == ["5", "6", "9"]


def test_ids_of_our_own_making_are_said_or_refused(tmp_path, capfd):
    path = put(tmp_path, "c.csv", "title,text\nPump,quiet\nSaw,loud\n")
    assert [each.document_id for each in read_documents(path)] == ["2", "3"]
    assert "; each id is the line's number\n" in capfd.readouterr().err
    twice = put(tmp_path, "c2.csv", ",text\n0,a\n0,b\n")  # a column of something else
    with pytest.raises(InputError, match="looks like headings"):
        list(read_documents(twice))


@pytest.mark.parametrize(
    ("content", "first"),
    [
        ("en,ko\nZorbula Engine,조르불라 엔진\nVexel,벡셀\n", "'en', 'ko'"),
        ("en,de\nzorbula engine,zorbula motor\nvexel knob,vexel knopf\n", "'en', 'de'"),
        ("en-GB,pt_BR\nzorbula engine,motor zorbula\n", "'en-GB', 'pt_BR'"),
        ("English,Deutsch\nzorbula engine,zorbula motor\n", "'English', 'Deutsch'"),
        ("term,what is it\nbrenkel,steel plate\nzorbula,wooden gate\n", "'term', 'what is it'"),
        ("was,Definition\nbrenkel,steel plate\n", "'was', 'Definition'"),
        ("vok,klar\nbrenkel,a plate that stops the flow\n", "'vok', 'klar'"),  # one row of data
        ("Vok,Klar\nbrenkel,steel plate\nzorbula,wooden gate\nvexel,brass knob\n", "'Vok', 'Klar'"),
        ("vok,klar\nBrenkel,Steel plate\nZorbula,Wooden gate\nVexel,Brass knob\n", "'vok', 'klar'"),
        ("VOK,KLAR\nBrenkel,steel plate\nZorbula,wooden gate\nVexel,brass knob\n", "'VOK', 'KLAR'"),
        ("\tclaim\ttitle\n0\tthe pump\tTale\n".replace("\t", ","), "'', 'claim', 'title'"),
        (",vok,klar\n0,brenkel,plate\n1,zorbula,gate\n", "'', 'vok', 'klar'"),
        ("id,of an argument\nd1,one\n", "'id', 'of an argument'"),
        ("Our glossary\n\nTerm,Klar\nbrenkel,steel plate\n", "'Term', 'Klar'"),
        ("id,text\nbrenkel,steel plate\n", "'id', 'text'"),
        ("query,doc_id\nbrenkel,steel plate\n", "'query', 'doc_id'"),
    ],
)
def test_headings_are_never_a_term_or_a_document(tmp_path, content, first):
    """All in a CSV; a reader that doesn't know the names asks for them."""
    path = put(tmp_path, "g.csv", content)
    reader = read_documents if "claim" in content or "argument" in content else read_dictionary
    with pytest.raises(InputError, match=rf":\d: the row {first} looks like headings, .*--columns"):
        list(reader(path))


@pytest.mark.parametrize(
    "content",
    [
        "brenkel,steel plate\nzorbula,wooden gate\nquimper,rubber ring\nvexel,brass knob\n",
        "API,an interface\nbus,a line\ncat,a pet\ndam,a wall\n",
        "Brenkel,Steel plate\nzorbula,Wooden gate\nquimper,rubber ring\nvexel,Brass knob\n",
        "hi,at\nit,is\nto,be\n",  # no languages, all cells are short
        "brenkel,text/html is a type: the name of one\nzorbula,another sentence that is long\n",
    ],
)
def test_data_without_headings_is_read(tmp_path, content):
    assert len(read_dictionary(put(tmp_path, "g.csv", content))) == content.count("\n")


def test_signs_around_a_heading_and_capitals_within_it_do_not_count(tmp_path):
    path = put(tmp_path, "g.csv", "parent,name*,displayName,[description]\ng,brenkel,Brenkel,a plate\n")
    assert read_dictionary(path) == [Definition("brenkel", "a plate")]
    path = put(tmp_path, "c.csv", "docID:,passageText,DOC TITLE\n7,a,b\n")
    assert list(read_documents(path)) == [Document("7", "a", "b")]


def test_a_cell_in_quotes_that_goes_on_over_lines_is_refused_in_a_tsv(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["a", "b"], "text": ["one\n\ntwo", "x"], "title": ["T", "U"]})
    path = tmp_path / "corpus.tsv"
    frame.to_csv(path, sep="\t", index=False)
    with pytest.raises(
        InputError, match=r"corpus\.tsv:2: a cell in quotes goes on to line 4, .*end in \.csv"
    ):
        list(read_documents(path))
    same = path.rename(tmp_path / "corpus.csv")
    assert list(read_documents(same)) == [Document("a", "one\n\ntwo", "T"), Document("b", "x", "U")]
    alone = put(tmp_path, "alone.tsv", 'text\n"one\ntwo"\n')
    with pytest.raises(InputError, match=r"alone\.tsv:2: a cell in quotes goes on to line 3"):
        list(read_documents(alone))
    quotes = put(tmp_path, "c.tsv", 'id\ttext\na\t"open\nb\tshut"\nc\t"\n')
    assert [each.text for each in read_documents(quotes)] == ['"open', 'shut"', '"']


def test_a_first_row_like_the_others_is_data(tmp_path):
    rows = "pump,what a pump does for us\n" + SENTENCES
    assert read_dictionary(put(tmp_path, "g.csv", rows))[0] == Definition("pump", "what a pump does for us")


@pytest.mark.plugins("files")
@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_an_abbreviation_has_its_expansion_and_its_description(tmp_path, ending):
    rows = [["Acronym", "Expansion", "Description"], ["ABC", "a big cat", "what we buy"], ["D", "dog", None],
            ["E", None, "else"], ["F", None, None]]  # fmt: skip
    path = tmp_path / f"g.{ending}"
    if ending == "xlsx":
        workbook(path, rows)
    else:
        put(tmp_path, path.name, "".join(",".join(cell or "" for cell in row) + "\n" for row in rows))
    assert read_dictionary(path) == [
        Definition("ABC", "a big cat"),
        Definition("ABC", "what we buy"),
        Definition("D", "dog"),
        Definition("E", "else"),
    ]


ODD = "Nr;Vok;Klar\n7;Zorvex;wer zahlt, wann\n8;Glimfe;ein Boot, klein\n"


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (ODD, {"term": "Vok", "definition": "Klar"}),
        (ODD, ["term=Vok", "definition=Klar"]),
        ("Titel\n\n" + ODD, {"term": "vok", "definition": "KLAR"}),
        (ODD.partition("\n")[2], {"term": 2, "definition": "3"}),
        (ODD, {"term": 2, "definition": "Klar"}),
    ],
)
def test_columns_may_be_named(tmp_path, content, columns):
    assert definitions_of(put(tmp_path, "g.csv", content), columns) == PLAIN
    fields = {"term": "id", "definition": "text"}
    pairs = columns.items() if isinstance(columns, dict) else (each.split("=") for each in columns)
    corpus = Corpus.of(tmp_path / "g.csv", {fields[field]: column for field, column in pairs})
    assert list(corpus.read()) == [Document(each.term, each.definition) for each in PLAIN]
    assert corpus.placed(tmp_path / "copy") == str(tmp_path / "copy")
    assert list(read_documents(tmp_path / "copy")) == list(corpus.read())


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"term": "Vok", "definition": "Sinn"}, "'Nr', 'Vok', 'Klar' looks like headings"),
        ({"term": 1, "definition": 4}, "needs columns: term, definition"),
        ({"word": "Vok"}, "columns: unknown field 'word'; "),
        ({"term": 0}, "columns: term=0; columns are counted from 1"),
        ({"term": None}, "columns: term needs a heading, or a number"),
        (["term"], "columns: term needs a heading, or a number"),
        (7, "columns: needs FIELD=COLUMN, or a dictionary (found: 7)"),
        ("term=Vok", "columns: needs FIELD=COLUMN, or a dictionary (found: 'term=Vok')"),
    ],
)
def test_columns_that_are_not_there_are_refused(tmp_path, columns, said):
    with pytest.raises(SparseAdaptError) as caught:
        definitions_of(put(tmp_path, "g.csv", ODD), columns)
    assert said in str(caught.value)


def test_columns_belong_to_what_has_some(tmp_path):
    path = put(tmp_path, "c.trec", "<DOC><DOCNO>1</DOCNO> a</DOC>")
    for read, columns in ((Corpus.of(path, {"text": "text"}).read, ()), (partial(queries_of, path), {"query": "a"}),
                          (partial(definitions_of, put(tmp_path, "g.obo", "")), {"term": "a"})):  # fmt: skip
        with pytest.raises(ConfigError, match=r"is no table .* and no JSON, so no column can be chosen"):
            list(read(*([columns] if columns else [])))
    with pytest.raises(ConfigError, match="columns: are chosen of a table in a file"):
        Corpus.of(["text"], {"text": "text"})


def test_queries_have_columns_too(tmp_path):
    path = put(tmp_path, "q.csv", "Lfd;Was\n1;wer zahlt\n2;wann\n")
    with pytest.raises(InputError, match=r"looks like headings.*--columns query_id=\.\.\.,query=\.\.\., "):
        queries_of(put(tmp_path, "r.csv", "number;Was\n1;wer zahlt\n2;wann\n"))
    assert queries_of(path, {"query_id": "Lfd", "query": "Was"}) == [
        Query("1", "wer zahlt"),
        Query("2", "wann"),
    ]
    german = put(tmp_path, "g.csv", "Nr.;Frage\n1;wer zahlt\n2;wann\n")
    assert queries_of(german) == [Query("1", "wer zahlt"), Query("2", "wann")]


def test_judgements_say_their_headings_where_no_option_names_them(tmp_path):
    with pytest.raises(InputError, match="name them in the first row: query_id, doc_id, grade"):
        read_judgements(put(tmp_path, "q.csv", "query,text,was\na,b,1\n"))


def test_an_adaptation_reads_the_columns_that_were_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{number};A zorvex decides what team {number} spends.\n" for number in range(30))
    put(tmp_path, "c.csv", "Lfd;Was\n" + rows)
    put(tmp_path, "g.csv", ODD)
    named = ["--columns", "id=Lfd,text=Was,term=Vok,definition=Klar"]
    monkeypatch.setattr("sys.argv", ["sparse-adapt", "adapt", "c.csv", "--glossary", "g.csv", *named,
                                     "--teacher", "bm25", "--until", "dictionary", "-o", "out"])  # fmt: skip
    main()
    assert len(list(read_documents("out-inputs"))) == 30
    assert read_dictionary("out-inputs") == PLAIN
    monkeypatch.setattr("sys.argv", ["sparse-adapt", "check", "c.csv", "--columns", "id=Lfd,text=Was"])
    main()
    assert "sparse-adapt adapt c.csv --columns id=Lfd,text=Was" in capsys.readouterr().err


QUEER = {"c.csv": "Lfd;Was\na;A zorvex decides what a team spends.\nb;A bird sings.\n",
         "q.csv": "Lfd;Was\n1;what a zorvex decides\n"}  # fmt: skip
NAMED = ["--columns", "id=Lfd,text=Was,query_id=Lfd,query=Was"]


@pytest.mark.plugins("engines")
@pytest.mark.parametrize(
    "words",
    [
        ["search", "--corpus", "c.csv", "--queries", "q.csv", "--json"],
        ["explain", "--corpus", "c.csv", "--queries", "q.csv"],
        ["export", "opensearch", "--corpus", "c.csv", "--queries", "q.csv", "-o", "export"],
    ],
    ids=lambda words: words[0],
)
def test_commands_that_read_queries_take_their_columns(tmp_path, capsys, monkeypatch, tiny_model, words):
    monkeypatch.chdir(tmp_path)
    for name, content in QUEER.items():
        put(tmp_path, name, content)
    command = ["sparse-adapt", *words, "--model", str(tiny_model)]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit):
        main()
    assert "--columns" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", [*command, *NAMED])
    main()
    said = capsys.readouterr()
    assert "wrote" in said.err or "what a zorvex decides" in said.out


def test_a_collection_of_tables_is_measured_by_its_columns(tmp_path, tiny_model):
    (tmp_path / "qrels").mkdir()
    put(tmp_path, "corpus.csv", QUEER["c.csv"])
    put(tmp_path, "queries.csv", QUEER["q.csv"])
    put(tmp_path, "qrels/test.tsv", "1\ta\t1\n")
    found = sa.evaluate(str(tiny_model), tmp_path, columns=NAMED[1].split(","), device="cpu", progress=False)
    assert found.figures["count"] == {"queries": 1, "documents": 2}


def test_a_heading_of_many_signs_is_refused_at_once_and_in_short(tmp_path):
    (tmp_path / "g.csv").write_text(f"ter,definit{'[' * 100_000}iN,examples\na,b,c;d\n")
    started = time.process_time()
    with pytest.raises(InputError) as caught:
        read_dictionary(tmp_path / "g.csv")
    assert time.process_time() - started < 1.0 and len(str(caught.value)) < 1_000
