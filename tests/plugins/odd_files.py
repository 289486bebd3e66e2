"""Files as people and attackers have them: each with its right value, or with words of the line that refuses it."""

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.examples import read_candidates, read_pairs, read_triplets
from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.collection.readers import read_documents, read_judgements, read_queries, read_run
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.plugins.research.groups import read_members
from sparse_adapt.plugins.research.similarity import read_graded
from sparse_adapt.plugins.research.suite.settings import read_suite
from sparse_adapt.terms.mining import read_terms


class OddFile(NamedTuple):
    """A file, who reads it, and what it holds: rows of texts, or a pattern of the refusal."""

    name: str
    content: str | bytes
    kind: str
    right: list[tuple[str, ...]] | str

    def put(self, folder: Path) -> Path:
        """The file in a folder; what a name with a folder means is the folder."""
        path = folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.content if isinstance(self.content, bytes) else self.content.encode())
        return path.parent if "/" in self.name else path


def _all(read: Callable[[Path], Iterable[object]]) -> Callable[[Path], list[object]]:
    return lambda path: list(read(path))


READERS: dict[str, Callable[[Path], object]] = {
    "documents": _all(read_documents),
    "queries": _all(read_queries),
    "judgements": read_judgements,
    "run": read_run,
    "glossary": read_dictionary,
    "terms": read_terms,
    "candidates": _all(read_candidates),
    "pairs": _all(read_pairs),
    "triplets": _all(read_triplets),
    "groups": read_members,
    "graded": read_graded,
    "suite": read_suite,
    "plan": read_plan,
}


def rows_of(kind: str, found: object) -> list[tuple[str, ...]]:
    """What a reader found, as rows of texts."""
    if kind == "documents":
        return [(each.document_id, each.text, *([each.title] if each.title else ())) for each in found]
    if kind == "queries":
        return [(each.query_id, each.text) for each in found]
    if kind == "glossary":
        return [(each.term, each.definition) for each in found]
    if kind == "judgements":
        return [(query, name, str(grade)) for query in found for name, grade in found[query].items()]
    return [(each.text,) for each in found]


def lines(*items: object) -> str:
    return "".join(f"{json.dumps(item)}\n" for item in items)


PUMP, CATS = "the pump leaks oil", "cats sleep all day"
TWO = [("0", PUMP), ("1", CATS)]
DEFINED = [("brenkel", "a steel plate"), ("zorbula", "a wooden gate")]
ASKED = "looks like headings, and doesn't say which columns are needed; name them: --columns"
ENTITIES = '<!DOCTYPE t [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><t><term>&b;</term></t>'

ODD_FILES = (
    # tables: what data frames write, and headings
    OddFile("frame.csv", f",text\n0,{PUMP}\n1,{CATS}\n", "documents", TWO),
    OddFile("asked.csv", f",query\n0,{PUMP}\n1,{CATS}\n", "queries", TWO),
    OddFile("again.csv", f"Unnamed: 0,text\n0,{PUMP}\n1,{CATS}\n", "documents", TWO),
    OddFile("judged.tsv", "\tquery-id\tcorpus-id\tscore\n0\ta\tb\t1\n", "judgements", [("a", "b", "1")]),
    OddFile("claims.tsv", f"\tclaim\ttitle\n0\t{PUMP}\tTale\n1\t{CATS}\tTale\n", "documents", ASKED),
    OddFile("broken.tsv", 'id\ttext\na\t"one\ntwo"\nb\tx\n', "documents", "a cell in quotes goes on to line 3"),
    OddFile("languages.csv", "en,ko\nZorbula Engine,조르불라 엔진\nVexel,벡셀\n", "glossary", ASKED),
    OddFile("half.csv", "term,what is it\nbrenkel,steel plate\nzorbula,wooden gate\n", "glossary", ASKED),
    OddFile("one.csv", "vok,klar\nbrenkel,a plate that stops the flow\n", "glossary", ASKED),
    OddFile("star.csv", "parent,name*,description\ng,brenkel,a steel plate\ng,zorbula,a wooden gate\n",
            "glossary", DEFINED),
    OddFile("data.csv", "brenkel,a steel plate\nzorbula,a wooden gate\n", "glossary", DEFINED),
    OddFile("bars.csv", "\ufeffTerm|Bedeutung\r\nbrenkel|a steel plate\r\nzorbula|a wooden gate\r\n",
            "glossary", DEFINED),
    # JSON: keys, lists, parts
    OddFile("asked.json", '[{"QuestionID": "q", "Question": "why", "Group": 1}]', "queries", [("q", "why")]),
    OddFile("glossary.json", json.dumps([dict(zip(("term", "definition"), row, strict=True)) for row in DEFINED]),
            "glossary", DEFINED),
    OddFile("acronyms.jsonl", lines({"acronym": "D", "expansion": "dog"}), "glossary", [("D", "dog")]),
    OddFile("parts/docs00.jsonl", lines({"id": "0", "contents": PUMP}, {"id": "1", "contents": CATS}),
            "documents", TWO),
    OddFile("judged.jsonl", lines({"query-id": "a", "corpus-id": "b", "score": 1}), "judgements",
            [("a", "b", "1")]),
    OddFile("cards.txt", "brenkel\ta plate\n", "glossary", "the end of its name doesn't say what it is"),
    OddFile("onto.owl", "<rdf/>", "glossary", "the end of its name doesn't say what it is"),
    OddFile("pairs.csv", "query,doc_id\na,b\n", "pairs", "the end of its name doesn't say what it is"),
    # Markdown and TREC
    OddFile("toml/a.md", '+++\ntitle = "Flux gate"\n+++\n\nwords', "documents", [("a.md", "words", "Flux gate")]),
    OddFile("tight/a.md", '+++\ntitle="Flux gate"\ndate=2020-01-01\n+++\nwords', "documents",
            [("a.md", "words", "Flux gate")]),
    OddFile("colon/a.md", "---\ntitle: Flux: a gate\n---\nwords", "documents", [("a.md", "words", "Flux: a gate")]),
    OddFile("braces/a.md", '{"title": "Flux"}\n\nwords', "documents", [("a.md", "words", "Flux")]),
    OddFile("rule/a.md", "---\n\nwords\n\n---\n", "documents", [("a.md", "words")]),
    OddFile("date/a.md", "---\ndate: 0000-00-00\n---\nwords", "documents", [("a.md", "words")]),
    OddFile("deep/a.md", f"---\na: {'[' * 20_000}\n---\nwords", "documents", [("a.md", "words")]),
    OddFile("tags/a.md", "the <title> of a<b and c>d", "documents", [("a.md", "the <title> of a<b and c>d")]),
    OddFile("table.trec", "<DOC><DOCNO>1</DOCNO><TEXT>\n<ROWRULE>\noil<CELLRULE>7\n</TEXT></DOC>", "documents",
            [("1", "oil 7")]),
    # broken, hostile
    OddFile("empty.jsonl", "", "documents", "holds no documents"),
    OddFile("blank.csv", "\n\n", "documents", "holds no documents"),
    OddFile("headings.csv", "id,text\n", "documents", "holds no documents"),
    OddFile("wide.tsv", "id\ttext\na\tb\tc\n", "documents", "has 3 cells for 2 columns"),
    OddFile("open.csv", 'id,text\n1,"' + "x\n" * 1000, "documents", "a broken table"),
    OddFile("nul.tsv", b"\0" * 10_000, "documents", "needs columns"),
    OddFile("utf16.csv", f"id,text\n0,{PUMP}\n".encode("utf-16"), "documents", "not UTF-8"),
    OddFile("latin.jsonl", '{"_id": "a", "text": "\xfc"}'.encode("latin-1"), "documents", "not UTF-8"),
    OddFile("half.jsonl", '{"_id": "a", "text": "\\ud800"}', "documents", "half of a surrogate pair"),
    OddFile("twice.jsonl", lines({"_id": "a", "text": ""}, {"_id": "a", "text": ""}), "documents",
            r'duplicate document id "a" \(first on line 1\)'),
    OddFile("deep.json", "[" * 100_000, "documents", "broken JSON"),
    OddFile("deep.jsonl", '{"a":' * 50_000, "documents", "broken JSON"),
    OddFile("digits.json", f"[{'9' * 100_000}]", "documents", "broken JSON"),
    OddFile("keys.jsonl", lines({f"k{number}": 1 for number in range(20_000)}), "documents", "needs a string"),
    OddFile("cut.jsonl.gz", gzip.compress(lines({"_id": "a", "text": PUMP * 99}).encode())[:40], "documents",
            "broken gzip"),
    OddFile("bomb.jsonl.gz", gzip.compress(b" " * 5_000_000), "documents", "unfolds to over"),
    OddFile("no.xlsx", b"PK\x03\x04" + b"\0" * 100, "documents", "broken XLSX file"),
    OddFile("no.parquet", b"PAR1" + b"\xff" * 100 + b"PAR1", "documents", "broken PARQUET file"),
    OddFile("laughs.tbx", ENTITIES, "glossary", "entit"),
    OddFile("no.ttl", "@prefix a: <" + "\\u0041" * 5_000, "glossary", "broken RDF"),
    OddFile("no.obo", "[Term]\nname" * 1_000, "glossary", "broken OBO"),
    OddFile("open.trec", "<DOC>\n" * 2, "documents", "a document starts here"),
    OddFile("many.trec", "<DOC><DOCNO>1</DOCNO>" + "<text>" * 50_000 + "</DOC>", "documents",
            [("1", "<text>" * 49_999)]),
    OddFile("open.html/a.html", "<div>" * 50_000, "documents", "tags have no end"),
    OddFile("no.pdf/a.pdf", b"%PDF-1.4\n" + b"9" * 1_000, "documents", "broken PDF"),
    OddFile("brackets.toml", f"a = {'[' * 20_000}", "plan", "."),
    OddFile("brackets.suite.toml", f"a = {'[' * 20_000}", "suite", "."),
    OddFile("many.qrels", "a 0 b many\n", "judgements", "needs a number as grade"),
    OddFile("no.run", "a Q0 b 1 nan x\n", "run", "is not finite"),
    OddFile("terms.json", json.dumps({"jargon": ["a"], "evidence": []}), "terms", [("a",)]),
    OddFile("none", b"\xde\xad\xbe\xef" * 50, "documents", "doesn't say what it is"),
)  # fmt: skip
OF_ANOTHER = ("claims.tsv", "half.csv", "nul.tsv")  # kind: another reader reads them
HOSTILE = tuple(
    each
    for each in ODD_FILES
    if isinstance(each.right, str) and each.name not in OF_ANOTHER and "/" not in each.name
)
"""Those that no reader reads."""
