"""The corpus of an invented firm that adapting by a glossary is measured on."""

from benchmarks.internal_corpus import write_corpus
from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.retrieve.evaluate import read_collection


def test_one_seed_makes_one_corpus_and_the_next_shares_nothing_with_it(tmp_path):
    for name, seed in (("first", 0), ("again", 0), ("next", 1)):
        write_corpus(seed, tmp_path / name)
    first, again, other = (read_collection(tmp_path / name) for name in ("first", "again", "next"))
    assert first == again
    assert 90 <= len(first.documents) <= 110
    assert {query.kind for query in first.queries} == {"control", "semantic", "explicit"}
    assert not {document.text for document in first.documents} & {
        document.text for document in other.documents
    }
    assert not {query.text for query in first.queries if query.kind != "explicit"} & {
        query.text for query in other.queries
    }


def test_a_semantic_query_never_says_the_product_that_its_documents_do(tmp_path):
    write_corpus(1, tmp_path)
    terms = [definition.term for definition in read_dictionary(tmp_path / "glossary.jsonl")]
    assert len(terms) == 10
    collection = read_collection(tmp_path)
    texts = {document.document_id: document.full_text for document in collection.documents}
    for query in collection.queries:
        relevant = [texts[name] for name in collection.judgements[query.query_id]]
        said = [term for term in terms if term in query.text]
        assert bool(said) == (query.kind == "explicit")
        if query.kind != "control":
            assert any(all(term in text for text in relevant) for term in terms)
