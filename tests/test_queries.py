"""Queries without users."""

from dataclasses import replace

import pytest

from sparse_adapt.collection.readers import Document, read_documents, read_judgements
from sparse_adapt.collection.sentences import sentences
from sparse_adapt.errors import InputError
from sparse_adapt.synthetic.queries import (
    HELD,
    PHRASE,
    SENTENCE,
    TITLE,
    TRAIN,
    SyntheticQuery,
    make_queries,
    read_synthetic_queries,
    without,
    write_collection,
)
from sparse_adapt.synthetic.queries import QuerySettings as Queries

SUBJECTS = ("valve", "rotor", "piston", "gasket", "bearing", "flange", "nozzle", "sensor", "clutch", "damper")


def document(number: int, name: str) -> Document:
    text = (
        f"The {name} of engine {number} wears out within a year of ordinary use. "
        f"Every {name} is checked against the drawing before it leaves the workshop. "
        f"A worn {name} leaks oil and heats the housing; ask for part {name} aldo{number} brant{number}."
    )
    return Document(f"d{number}", text, f"Care and repair of the {name}")


@pytest.fixture
def documents() -> list[Document]:
    return [document(number, name) for number, name in enumerate(SUBJECTS)]


def test_what_becomes_a_query_is_cut_out_of_its_document(documents):
    collected = make_queries(documents, Queries(count=30, held=2, per_document=3))
    texts = {each.document_id: each for each in collected.documents}
    kinds = {query.kind for query in collected.queries}
    assert kinds == {TITLE, SENTENCE, PHRASE}
    for query in collected.queries:
        source = texts[query.document_id]
        if query.kind in (TITLE, SENTENCE):
            assert query.text not in source.full_text
    assert [each.document_id for each in collected.documents] == [each.document_id for each in documents]


def test_no_document_gives_queries_to_both_splits(documents):
    collected = make_queries(documents, Queries(count=30, held=3, per_document=3))
    held = {query.document_id for query in collected.of(HELD)}
    assert held and not held & {query.document_id for query in collected.of(TRAIN)}


def test_the_seed_decides(documents):
    first, again, other = (make_queries(documents, Queries(seed=seed)).queries for seed in (1, 1, 2))
    assert first == again != other


def test_a_model_writes_for_both_splits(documents):
    collected = make_queries(
        documents,
        Queries(held=2, written=3),
        lambda asked: [
            [("explicit", f"who mends {each.title}?"), ("explicit", "the same")] for each in asked
        ],
    )
    written = [query for query in collected.queries if query.kind == "explicit"]
    assert [query.split for query in written] == [HELD, HELD, HELD, TRAIN, TRAIN, TRAIN]  # "the same" once
    assert written[0].text.startswith("who mends Care and repair")


def test_sentences_keep_abbreviations_and_initials():
    text = "Cells (cf. Fig. 2) grew. See J. Smith for more!  What then? 3.5 ml was left"
    assert list(sentences(text)) == [
        "Cells (cf. Fig. 2) grew.",
        "See J. Smith for more!",
        "What then?",
        "3.5 ml was left",
    ]


def test_a_script_without_spaces_has_sentences_too():
    text = "\u732b\u306f\u5bb6\u306b\u3044\u308b\u3002\u72ac\u306f\u5916\u306b\u3044\u308b\u3002"
    assert len(list(sentences(text))) == 2


def test_without_takes_all_queries_of_a_document():
    whole = Document("d", "One stays. Two goes. Three stays.", "Title")
    cut = without(
        whole, [SyntheticQuery("1", "Two goes.", SENTENCE, "d"), SyntheticQuery("2", "Title", TITLE, "d")]
    )
    assert (cut.title, cut.text.split()) == ("", ["One", "stays.", "Three", "stays."])
    assert without(whole, [SyntheticQuery("1", "stays", PHRASE, "d")]) is whole


@pytest.mark.parametrize(
    "corpus",
    [
        [document(0, "valve")],
        [Document(f"d{number}", document(0, "valve").text) for number in range(50)],
        [Document(f"d{number}", "... -- ...") for number in range(50)],
    ],
    ids=["one", "repeated", "no words"],
)
def test_too_few_different_documents_are_refused(corpus):
    with pytest.raises(InputError, match=r"holds [01] different documents of \d+; at least 8"):
        make_queries(corpus, Queries(), place="corpus.jsonl")


def test_very_long_documents_are_quick(documents):
    long = [Document(each.document_id, (each.text + " ") * 600, each.title) for each in documents]
    assert len(long[0].text) > 100_000
    assert make_queries(long, Queries(count=10, held=2)).queries


def test_a_collection_reads_back_and_may_be_edited(tmp_path, documents):
    collected = make_queries(documents, Queries(count=6, held=2))
    write_collection(tmp_path, collected)
    assert read_synthetic_queries(tmp_path) == collected.queries
    assert list(read_documents(tmp_path)) == collected.documents
    judged = read_judgements(tmp_path, HELD)
    assert judged == {query.query_id: {query.document_id: 1} for query in collected.of(HELD)}
    lines = (tmp_path / "queries.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "queries.jsonl").write_text(
        "".join(lines[1:]) + '{"_id": "own", "text": "a leaking valve"}\n'
    )
    edited = read_synthetic_queries(tmp_path)
    assert edited == [*collected.queries[1:], SyntheticQuery("own", "a leaking valve", "given", "", TRAIN)]


def test_keywords_and_journal_follow_a_title_where_they_are_asked_for(documents):
    whole = [replace(each, title=f"On {each.document_id}", keywords="pumps, wells") for each in documents]
    whole = [replace(whole[0], journal="Annals of  wells", title=""), *whole[1:]]
    asked = Queries(titles=1.0, sentences=0.0, phrases=0.0, per_document=1)
    with pytest.raises(InputError, match="too short to make queries of"):  # as titles alone are
        make_queries(whole, asked)
    found = make_queries(whole, asked.model_copy(update={"title_with": ("keywords", "journal")}))
    texts = {query.document_id: query.text for query in found.queries}
    first = whole[0].document_id
    assert texts.pop(first) == "pumps, wells, Annals of wells"
    assert texts and all(text == f"On {name}, pumps, wells" for name, text in texts.items())
    kept = {each.document_id: each for each in found.documents}
    assert (kept[first].title, kept[first].journal) == ("", "Annals of  wells")


NOTICE = "All other trademarks not owned by the firm belong to the owners that are named below."


def test_what_nobody_asks_makes_no_query():
    """A sentence that several documents say, markup, code, the points of a list, and a word that is said twice."""
    words = [
        "apple",
        "bridge",
        "candle",
        "desert",
        "engine",
        "forest",
        "garden",
        "harbour",
        "island",
        "jungle",
    ]
    documents = [
        Document(
            str(n),
            f"{NOTICE} ![[Image NOT FOUND]](http://x.org/{n}.png) shows how a {one} is mended and kept in order today. "
            f"A {one} stands near the old {one} while {one} {one} {one} is what the list of the {one} says again. "
            f"Somebody who keeps a {one} has to look after it for years, and {n} of them were lost. "
            f'"Resource{n}": [ {{ "{one}": "arn:aws:{one}:us-east-2:1234", "rare": "word{n}" }} ]. '
            f"Choose whatever you want to keep: + Unheard-of {one}s that nobody sorts + Further zumbles{n} and so on.",
        )
        for n, one in enumerate(words)
    ]
    texts = [query.text for query in make_queries(documents, Queries(count=99, per_document=3)).queries]
    assert len(texts) >= len(words)
    assert not [text for text in texts if "trademarks" in text or "![" in text or ".png" in text]
    assert not [text for text in texts if "Resource" in text or "zumbles" in text or "+" in text]
    assert not [text for text in texts if len(text.split()) < 5 and len({*text.split()}) < len(text.split())]
