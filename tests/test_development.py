"""The corpora and queries that settings are chosen on are of the design, and no test query is among them."""

from pathlib import Path

import pytest

from benchmarks.stages import DEVELOPMENT, Case, table, with_other_queries
from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.pipeline.demo import read_scene
from sparse_adapt.retrieve.evaluate import read_collection
from sparse_adapt.terms.mining import read_terms

FOLDERS = sorted(path.parent for path in DEVELOPMENT.glob("*/queries.jsonl"))


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_queries_to_choose_by_say_a_term_or_mean_it_or_neither(folder, tmp_path):
    corpus = with_other_queries(folder, tmp_path / "corpus")
    terms = [term.text for term in read_terms(Path(corpus) / "terms.json")]
    scene = read_scene(corpus, terms)
    documents = {document.document_id for document in scene.documents}
    assert list(read_candidates(Path(corpus) / "candidates.jsonl", document_ids=documents))
    for query in scene.splits["test"].queries:
        said = [term for term in terms if term.lower() in query.text.lower()]
        assert bool(said) == (query.kind == "explicit"), query
    counts = [len(texts.rows) for texts in scene.terms]
    assert counts == ([5] if len(terms) == 1 else [4] * 28)


@pytest.mark.parametrize("name", ["gatrocraptic", "coined"])
def test_other_queries_of_a_bundled_corpus_are_others(name, tmp_path):
    corpus = with_other_queries(DEVELOPMENT / name, tmp_path / "corpus")
    taught, chosen = (
        {query.text.lower() for query in read_collection(corpus, split).queries}
        for split in ("train", "test")
    )
    kept = {query.text.lower() for query in read_collection(name, "test").queries}
    assert not (taught | kept) & chosen
    assert len(list(read_documents(corpus))) == len(list(read_documents(name)))
    written = (Path(corpus) / "queries.jsonl").read_text()
    assert with_other_queries(DEVELOPMENT / name, tmp_path / "corpus") == corpus  # for the next seed
    assert (Path(corpus) / "queries.jsonl").read_text() == written


def test_a_whole_corpus_is_taken_as_it_is(tmp_path):
    assert with_other_queries(DEVELOPMENT / "vellicorn", tmp_path / "corpus") == str(
        DEVELOPMENT / "vellicorn"
    )
    assert with_other_queries(Path("gatrocraptic"), tmp_path / "corpus") == "gatrocraptic"
    assert not (tmp_path / "corpus").exists()


def test_a_table_has_each_corpus_before_and_after_with_the_spread_of_its_seeds():
    def row(seed, stage, **figures):
        case = Case("folder/zorvex", "folder/large", seed, "default")
        return {**case.named, "stage": stage, **figures}

    rows = [
        row(0, "base", semantic=0.25, msmarco_pool=0.726),
        row(0, "dictionary", semantic=0.5),
        row(0, "distill", semantic=0.5, msmarco_pool=0.72),
        row(1, "base", semantic=0.25, msmarco_pool=0.726),
        row(1, "distill", semantic=0.6, msmarco_pool=0.71),
    ]
    lines = table(rows).splitlines()
    assert len(lines) == 4  # two of them the head
    assert lines[2].startswith("| zorvex | large | 2 | before | 0.250 |")
    assert lines[3].startswith("| zorvex | large | 2 | after | 0.550 (0.500 to 0.600) |")
    assert "| 0.715 (0.710 to 0.720) |" in lines[3]
