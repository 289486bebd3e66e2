"""Tables as people have them: what parts the cells, which row is the headings, which column stands for what."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from office import workbook

from sparse_adapt.cli import main
from sparse_adapt.collection.arguments import Corpus, definitions_of
from sparse_adapt.collection.glossary import Definition, read_dictionary
from sparse_adapt.collection.readers import Document, Query, read_documents, read_queries
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


def test_a_first_row_like_the_others_is_data(tmp_path):
    rows = "pump,what a pump does for us\n" + SENTENCES
    assert read_dictionary(put(tmp_path, "g.csv", rows))[0] == Definition("pump", "what a pump does for us")


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


def test_columns_belong_to_tables(tmp_path):
    path = put(tmp_path, "c.jsonl", '{"_id": "a", "text": "b"}')
    with pytest.raises(ConfigError, match="is no table"):
        list(Corpus.of(path, {"text": "text"}).read())
    with pytest.raises(ConfigError, match="columns: are chosen of a table in a file"):
        Corpus.of(["text"], {"text": "text"})


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
