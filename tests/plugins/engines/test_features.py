"""OpenSearch and Elasticsearch: exact files, loaded and searched over HTTP; and Lucene's own feature fields."""

import base64
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd import (
    BLOCK,
    ODD_IDS,
    ODD_TOKENS,
    QUERIES,
    TOKENS,
    check_ranking,
    export,
    export_odd,
    odd_documents,
    vectors_of,
    vouch_anew,
)
from scipy.sparse import csr_matrix
from small_servers import BulkServer, served

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ConfigError, InputError, OutputError
from sparse_adapt.files.place import Place
from sparse_adapt.plugins.engines import features
from sparse_adapt.plugins.engines.elasticsearch import ELASTICSEARCH
from sparse_adapt.plugins.engines.features import bulk_documents, rounded
from sparse_adapt.plugins.engines.formats import open_engine
from sparse_adapt.plugins.engines.layout import ExportSource, unescape_token
from sparse_adapt.plugins.engines.lucene_features import halving, lucene_index
from sparse_adapt.plugins.engines.manifest import read_export
from sparse_adapt.plugins.engines.opensearch import OPENSEARCH
from sparse_adapt.plugins.engines.writing import write_export
from sparse_adapt.retrieve.search import search
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

KINDS = ("opensearch", "elasticsearch")
ENGINES = {"opensearch": OPENSEARCH, "elasticsearch": ELASTICSEARCH}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features")
    for kind in KINDS:
        export_odd(kind, folder / kind)
    return folder


@pytest.fixture
def exported(kind, written, tmp_path):
    return shutil.copytree(written / kind, tmp_path / "out")


@pytest.fixture
def server(kind, monkeypatch):
    monkeypatch.setattr(features, "FIRST_PAUSE", 0.001)
    return BulkServer(kind)


def load(kind, folder, url, index="documents"):
    return ENGINES[kind].load(folder, url, index)


def test_an_export_ranks_as_exact_search_over_what_lucene_keeps(kind, exported, server):
    with served(server) as url, open_engine(kind, exported, url=url) as engine:
        check_ranking(engine)
    assert engine.name == f"{kind}-3.1.0"
    assert server.indices == {}  # the index that was made for it is gone


def test_every_query_of_the_file_is_answered_as_it_stands(kind, exported, server):
    with served(server) as url:
        load(kind, exported, url)
        for line in (exported / "queries.jsonl").read_bytes().splitlines():
            query = json.loads(line)
            answer = httpx.post(f"{url}/documents/_search", json=query["search"])
            assert answer.json()["hits"]["hits"], query["query_id"]


def test_loading_again_changes_nothing_and_empty_documents_are_in(kind, exported, server):
    with served(server) as url:
        assert [load(kind, exported, url), load(kind, exported, url)] == [10, 10]
    stored = server.indices["documents"]["documents"]
    assert list(stored) == ODD_IDS
    assert [name for name, weights in stored.items() if not weights] == [ODD_IDS[3], ODD_IDS[8]]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_commands_that_export_prints_load_it(kind, exported, server):
    lines = ENGINES[kind].how_to_load(read_export(exported)).split("\n\n")[0]
    with served(server) as url:
        script = lines.replace("URL=http://localhost:9200", f"URL={shlex.quote(url)}")
        done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(server.indices["documents"]["documents"]) == len(ODD_IDS)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_printed_search_finds_documents(kind, tmp_path, server):
    texts = [Document("d1", "a text", "it's"), Document('d"2', ""), Document("d3", "another\u2028one")]
    source = ExportSource(vectors_of(TOKENS, BLOCK), texts=texts)
    folder = tmp_path / "it's here"
    done = write_export(kind, source, Place(folder))
    lines = ENGINES[kind].how_to_load(done).split("\n\n")[0]
    with served(server) as url:
        script = lines.replace("URL=http://localhost:9200", f"URL={shlex.quote(url)}")
        ran = subprocess.run(["bash", "-ec", script], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    hits = json.loads(ran.stdout[ran.stdout.index('{"hits"') :])["hits"]["hits"]
    assert [(hit["_id"], hit["_source"]) for hit in hits] == [("d1", {"title": "it's", "text": "a text"})]


def test_titles_and_texts_are_stored_beside_the_weights(kind, tmp_path, server):
    texts = [Document("d1", "a text", "it's"), Document('d"2', ""), Document("d3", "another\u2028one")]
    plain = export(kind, tmp_path / "published", TOKENS, BLOCK)
    done = write_export(
        kind, ExportSource(vectors_of(TOKENS, BLOCK), texts=iter(texts)), Place(tmp_path / "out")
    )
    assert done.manifest.entries == plain.entries
    stored = dict(bulk_documents(done))
    assert [{name: each.get(name) for name in ("title", "text")} for each in stored.values()] == [
        {"title": "it's", "text": "a text"},
        {"title": None, "text": ""},
        {"title": None, "text": "another\u2028one"},
    ]
    weights = {name: each.get("weights") for name, each in stored.items()}
    assert weights == {
        name: each.get("weights") for name, each in bulk_documents(read_export(tmp_path / "published"))
    }
    mapped = json.loads((tmp_path / "out/index.json").read_text())["mappings"]["properties"]
    assert (mapped["title"], mapped["text"]) == ({"type": "text"}, {"type": "text"})
    with served(server) as url, open_engine(kind, tmp_path / "out", url=url) as engine:
        assert engine.search_all(QUERIES, 3)["q1"].keys() == {"d1", "d3"}


def test_the_page_s_sum_of_bm25_and_weights_has_the_export_s_fields(kind):
    page = (Path(__file__).parents[3] / "docs/engines.md").read_text(encoding="utf-8")
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    sums = [each["query"]["bool"]["should"] for each in shown]
    expected = ENGINES[kind].search_body({"wing": 2.1, "air": 0.7}, 10)[0]["query"]
    ((words, _),) = [each for each in sums if each[1] == expected]
    assert tuple(words["multi_match"]["fields"]) == features.TEXT_FIELDS


def test_texts_of_other_documents_are_refused(kind, tmp_path):
    texts = [Document("d1", ""), Document('d"2', ""), Document("d3", "")]
    for others, words in (
        (texts[1:], "d1: isn't followed by the same documents"),
        (texts[:2], "d1: isn't followed by the same documents"),
        ([*texts, texts[0]], "the corpus: has more documents than the vectors"),
    ):
        with pytest.raises(InputError, match=words):
            write_export(kind, ExportSource(vectors_of(TOKENS, BLOCK), texts=others), Place(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


@given(st.lists(st.text(st.sampled_from('._\\u02ejs \x00"'), min_size=1, max_size=12), unique=True))
def test_names_go_back_and_never_meet(tokens):
    names = ELASTICSEARCH.names(tokens)
    assert [unescape_token(name) for name in names] == tokens
    assert len(set(names)) == len(tokens)
    assert not any("." in name for name in names)
    assert OPENSEARCH.names(tokens) == tokens


def test_names_by_hand():
    assert [ELASTICSEARCH.token_name(token) for token in ("node.js", "node_js", "##ing", "\\u00002e")] == [
        "node\\u00002ejs",
        "node_js",
        "##ing",
        "\\u00005cu00002e",
    ]


# -- Lucene ---------------------------------------------------------------------------------------


def test_lucene_ranks_as_exact_search_over_what_it_keeps(kind, exported):
    with open_engine(kind, exported) as engine:
        check_ranking(engine)
    assert engine.name.startswith("Lucene 9.")


def test_lucene_cuts_a_weight_off_after_nine_bits():
    weights = {"a": 1 + 2**-8, "b": 1 + 2**-8 + 2**-9, "c": 1 + 2**-9}
    with lucene_index([("d", weights)]) as ask:
        found = [next(ask([{name: 1.0}], 1))["d"] for name in weights]
    assert found == [1 + 2**-8, 1 + 2**-8, 1]
    kept = rounded(csr_matrix(np.array([list(weights.values())], np.float32)))
    with lucene_index([("d", dict(zip(weights, kept.data.tolist(), strict=True)))]) as ask:
        assert [next(ask([{name: 1.0}], 1))["d"] for name in weights] == kept.data.tolist()


def test_nine_bits_by_hand():
    # 1 + 2^-8 has 9 significant bits; 1 + 2^-9 has 10; 0.1 = 1.1001 1001 1001...b x 2^-4, nearer to ...010b
    weights = csr_matrix(np.array([[1 + 2**-8, 1 + 2**-10, 1 + 2**-9, 0.1, 255, 511.4, 511.5]], np.float32))
    assert rounded(weights).toarray().tolist() == [
        [1 + 2**-8, 1, 1 + 2**-8, 0b110011010 / 2**12, 255, 511, 512]
    ]
    greatest = csr_matrix(np.array([[np.finfo(np.float32).max, np.finfo(np.float32).tiny]]))
    assert np.isfinite(rounded(greatest).data).all()
    assert rounded(csr_matrix((2, 3), dtype=np.float32)).nnz == 0


# -- what goes wrong ------------------------------------------------------------------------------


def test_a_dot_that_slipped_in_is_refused_by_name(tmp_path):
    export("elasticsearch", tmp_path / "out", TOKENS, BLOCK)
    part = tmp_path / "out/documents/part-00000.ndjson"
    part.write_text(part.read_text().replace("node\\\\u00002ejs", "node.js"))
    vouch_anew(tmp_path / "out")
    with (
        served(BulkServer("elasticsearch")) as url,
        pytest.raises(OutputError, match=r"'d3': .*dots.*\[node\.js\]"),
    ):
        load("elasticsearch", tmp_path / "out", url)


def test_no_request_is_larger_than_hosted_servers_take(kind, exported, server, monkeypatch):
    monkeypatch.setattr(features, "PART_BYTES", 25_000)  # one document with both long names has 20,000
    server.largest_request = 25_000
    with served(server) as url:
        assert load(kind, exported, url) == 10
        server.largest_request = 5_000
        with pytest.raises(OutputError, match="entity content is too long") as caught:
            load(kind, exported, url)
    assert "\n" not in str(caught.value)


def test_a_busy_server_is_asked_again_and_one_that_stays_so_is_told(kind, exported, server):
    server.busy = 10**6
    with (
        served(server) as url,
        pytest.raises(OutputError, match=r"gives an error \(.*429.*\); see that it runs"),
    ):
        load(kind, exported, url)
    server.busy, server.busy_items = 3, 15
    with served(server) as url:
        assert load(kind, exported, url) == 10
    server.busy, server.busy_items, server.indices = 0, 10**6, {}
    with served(server) as url, pytest.raises(OutputError, match=r"refused 10 of 10 documents .*and 7 more"):
        load(kind, exported, url)


@pytest.mark.parametrize("url", ["localhost:9200", "ftp://localhost", "http://", "http://localhost:port"])
def test_what_is_no_url_is_refused(kind, exported, url):
    with pytest.raises(ConfigError, match="is no URL"):
        open_engine(kind, exported, url=url).__enter__()


def test_the_other_engine_is_told_apart(kind, exported):
    other = KINDS[1 - KINDS.index(kind)]
    words = "the server is not Elasticsearch" if kind == "elasticsearch" else r"is elasticsearch 3\.1\.0, not"
    with served(BulkServer(other)) as url, pytest.raises(OutputError, match=words):
        open_engine(kind, exported, url=url).__enter__()


def test_an_index_of_something_else_is_left_alone(kind, exported, server):
    server.indices["documents"] = {"mappings": {"properties": {"weights": {"type": "text"}}}, "documents": {}}
    with served(server) as url:
        with pytest.raises(OutputError, match=r"/documents: has no .* field 'weights'; choose another name"):
            load(kind, exported, url)
        with pytest.raises(OutputError, match=r"gives an error \(.*400.*Invalid index name"):
            load(kind, exported, url, "Upper")
    assert server.indices["documents"]["documents"] == {}


def test_a_user_and_a_password_in_the_url_are_sent_as_such(kind, exported, server):
    seen = []

    class Behind:
        def __init__(self):
            self.kind = kind

        def answer(self, method, path, body, headers):
            seen.append(next(value for key, value in headers.items() if key.lower() == "authorization"))
            return server.answer(method, path.removeprefix("/prefix"), body, headers)

    with served(Behind()) as url:
        assert load(kind, exported, url.replace("//", "//me:p%40ss@") + "/prefix/") == 10
    assert set(seen) == {f"Basic {base64.b64encode(b'me:p@ss').decode()}"}
    with pytest.raises(OutputError, match=r"^http://127\.0\.0\.1:9: ") as caught:
        load(kind, exported, "http://me:secret@127.0.0.1:9")
    assert "secret" not in str(caught.value)


def test_weights_beyond_lucene_are_dropped_or_kept_in_range(kind, tmp_path, server):
    block = EncodedBatch(["d1", "d2"], csr_matrix(np.array([[1e-40, 3e38, 0], [1e-45, 0, 0]])))
    manifest = export(kind, tmp_path / "out", TOKENS, block)
    assert (manifest.dropped, manifest.entries, manifest.empty_documents) == (2, 1, 1)
    with served(server) as url:
        assert load(kind, tmp_path / "out", url) == 2


def test_a_query_weight_above_64_is_scaled_with_its_whole_query(exported, kind, server):
    queries = EncodedBatch(["q"], csr_matrix(np.array([[200.0, 3.0] + [0] * (len(ODD_TOKENS) - 2)])))
    documents = odd_documents()
    with served(server) as url, open_engine(kind, exported, url=url) as engine:
        run = engine.search_all(queries, 10)
        exact = search(
            engine.query_weights(queries), queries.ids, engine.document_weights(documents), documents.ids, 10
        )
    assert run["q"] == pytest.approx(exact["q"], rel=1e-5)
    assert halving({"a": 200.0}) == 0.25  # 200 / 4 = 50
    assert halving({"a": 64.0}) == halving({}) == 1.0


@pytest.mark.parametrize("document_id", ["", "é" * 257])
def test_an_id_that_is_no_id_there_is_refused(kind, document_id, tmp_path):
    with pytest.raises(InputError, match=r"this document id has \d+ bytes, .* takes 1 to 512"):
        export(kind, tmp_path / "out", TOKENS, EncodedBatch([document_id], BLOCK.vectors[:1]))
    assert list(tmp_path.iterdir()) == []


def test_a_token_that_is_no_term_of_lucene_is_refused(kind, tmp_path):
    with pytest.raises(InputError, match=r"this token has 32,767 bytes, .* takes 1 to 32,766"):
        export(kind, tmp_path / "out", ["a", "b", "x" * 32_767], BLOCK)
    assert list(tmp_path.iterdir()) == []
