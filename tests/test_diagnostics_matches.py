"""A score taken apart: shared tokens, their products, and which of them the query never said."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from diagnostics.matches import beginning, explain
from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import InputError
from sparse_adapt.model.encoder import NewToken
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode


@pytest.fixture
def tiny(tiny_model) -> SparseEncoder:
    return SparseEncoder.load(tiny_model)


def test_contributions_sum_to_the_exact_scores(tiny, twelve_documents):
    query = "who signs for spending in the team?"
    report = explain(query, tiny, twelve_documents, top=12)
    texts = [document.full_text for document in twelve_documents]
    scores = (encode(tiny, [query], "query") @ encode(tiny, texts, "document").T).toarray()[0]
    order = np.argsort(-scores, kind="stable")
    found = [twelve_documents[row].document_id for row in order if scores[row] > 0]
    assert [match.document_id for match in report.matches] == found
    assert [match.rank for match in report.matches] == list(range(1, len(found) + 1))
    for match, row in zip(report.matches, order, strict=False):
        parts = [part.contribution for part in match.contributions]
        assert match.score == pytest.approx(scores[row], rel=1e-5)
        assert sum(parts) == pytest.approx(match.score, rel=1e-5)
        assert parts == sorted(parts, reverse=True)
        for part in match.contributions:
            assert part.contribution == part.query_weight * part.document_weight > 0


def test_expansions_are_what_the_query_does_not_say(tiny, twelve_documents):
    report = explain("the server log", tiny, twelve_documents, expansions=3)
    said = {"[CLS]", "the", "server", "log", "[SEP]"}
    assert {token.token for token in report.tokens if not token.expansion} <= said
    expansions = [token for token in report.tokens if token.expansion]
    assert len(expansions) == 3
    assert not said & {token.token for token in expansions}
    every = explain("the server log", tiny, twelve_documents, expansions=1000)
    assert len(every.tokens) == every.nonzero == encode(tiny, ["the server log"], "query").nnz
    weights = [token.weight for token in every.tokens if token.expansion]
    assert [token.weight for token in expansions] == weights[:3] == sorted(weights, reverse=True)[:3]
    with_weight = {token.token for token in every.tokens}
    assert set(report.inactive) == {"the", "server", "log"} - with_weight


def test_new_terms_are_marked(tiny, twelve_documents):
    every = explain("server", tiny, twelve_documents, expansions=1000)
    chosen = every.tokens[0]
    extended = SparseEncoder(
        tiny.masked_lm, tiny.tokenizer, [NewToken(chosen.token_id, chosen.token, chosen.token, "", ())], 64
    )
    report = explain("server", extended, twelve_documents, top=12)
    assert [token.token for token in report.tokens if token.new] == [chosen.token]
    parts = [part for match in report.matches for part in match.contributions]
    assert {part.token for part in parts if part.new} == {chosen.token}


def test_given_vectors_are_used_and_top_limits(tiny, twelve_documents):
    query = encode(tiny, ["server"], "query")
    heaviest = int(query.indices[query.data.argmax()])
    rows = np.zeros((12, tiny.vocabulary_size), dtype=np.float32)
    rows[:, heaviest] = [0, 1, 3, 2, 0, 0, 0, 0, 0, 0, 0, 1]
    report = explain("server", tiny, twelve_documents, top=3, vectors=csr_matrix(rows))
    assert [match.document_id for match in report.matches] == ["d03", "d04", "d02"]
    assert [len(match.contributions) for match in report.matches] == [1, 1, 1]
    assert report.matches[0].score == pytest.approx(3 * query.data.max())


def test_no_match_and_no_words(tiny, twelve_documents):
    nothing = csr_matrix((12, tiny.vocabulary_size), dtype=np.float32)
    assert explain("server", tiny, twelve_documents, vectors=nothing).matches == ()
    with pytest.raises(InputError, match="empty"):
        explain(" \n", tiny, twelve_documents)


def test_json_holds_everything(tiny, twelve_documents):
    report = explain("agent log", tiny, twelve_documents)
    content = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert list(content) == ["query", "nonzero", "tokens", "inactive", "matches", "sparsity", "heaviest"]
    assert len(content["matches"][0]["contributions"]) == len(report.matches[0].contributions)
    assert set(content["matches"][0]["contributions"][0]) == {
        "token_id", "token", "query_weight", "document_weight", "contribution", "expansion", "new",
    }  # fmt: skip


def test_a_document_shows_how_it_begins_and_what_weighs_most_in_it(tiny, twelve_documents):
    long = Document("d99", f"the server  sends\na log {'agent ' * 60}", "")
    report = explain("server log", tiny, [*twelve_documents, long], top=13)
    vectors = encode(tiny, [document.full_text for document in [*twelve_documents, long]], "document")
    row = {document.document_id: number for number, document in enumerate([*twelve_documents, long])}
    for match in report.matches:
        weights = np.sort(vectors[row[match.document_id]].data)[::-1][:10]
        assert [token.weight for token in match.heaviest] == pytest.approx(weights.tolist())
        shared = {part.token_id for part in match.contributions}
        assert {token.token_id for token in match.heaviest if token.shared} <= shared
    shown = {match.document_id: match.snippet for match in report.matches}
    assert shown["d99"].startswith("the server sends a log agent") and shown["d99"].endswith("agent ...")
    assert len(shown["d99"]) <= 164
    assert beginning("one  line\n") == "one line"


def test_sparsity_and_the_largest_weight_are_told(tiny, twelve_documents):
    report = explain("server log", tiny, twelve_documents)
    vector = encode(tiny, ["server log"], "query")
    assert report.sparsity == pytest.approx(100 * (1 - vector.nnz / 200))
    assert report.heaviest is not None and report.heaviest.weight == pytest.approx(vector.data.max())
