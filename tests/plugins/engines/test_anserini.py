"""The Anserini export: exact files, honest rounding, and names that Lucene keeps whole."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd import export
from scipy.sparse import csr_matrix

from sparse_adapt.errors import InputError
from sparse_adapt.files.place import Place
from sparse_adapt.plugins.engines import anserini
from sparse_adapt.plugins.engines.layout import ExportSource, unescape_token
from sparse_adapt.plugins.engines.lucene import lucene_name
from sparse_adapt.plugins.engines.manifest import read_export_manifest
from sparse_adapt.plugins.engines.quantise import Quantisation
from sparse_adapt.plugins.engines.writing import write_export
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors
from sparse_adapt.retrieve.vectors.manifest import ModelStamp

TOKENS = ["[PAD]", "##ing", "node.js", "supply chain", 'a"b', "naïve", "\\", "日本"]
STAMP = ModelStamp(
    name="by hand", weights_sha256="0", vocabulary_sha256="1", vocabulary_size=8, max_tokens=256
)
FIRST = EncodedBatch(
    ["d1", 'd"2', "d3"],
    csr_matrix(
        np.array(
            [
                [0, 1.234, 0.005, 0.5, 0, 0, 0, 2],  # 0.005 x 100 = 0.5 rounds to even: dropped
                [0, 0, 0, 0, 0.015, 0, 9, 0],  # 0.015 x 100 = 1.5 rounds to 2; 900 is clipped to 300
                [0.004, 0, 0, 0, 0, 0, 0, 0],  # nothing is left
            ]
        )
    ),
)
SECOND = EncodedBatch(["d4"], csr_matrix(np.array([[0, 0, 0, 0, 0, 1.0, 0, 0]])))
QUERIES = EncodedBatch(
    ["q 1", "q2"], csr_matrix(np.array([[0, 0.02, 0, 0.03, 0, 0, 0.01, 0], [0.001, 0, 0, 0, 0, 0, 0, 0]]))
)


def two_blocks(tokens: list[str] = TOKENS, queries: EncodedBatch | None = None) -> ExportSource:
    return ExportSource(Vectors(STAMP, tokens, iter([FIRST, SECOND])), queries)


def test_every_file_is_as_it_was_and_the_manifest_counts_what_quantising_cost(tmp_path, golden_folder):
    source, scale = two_blocks(queries=QUERIES), Quantisation(scale=100, largest=300)
    manifest = write_export("anserini", source, Place(tmp_path / "out"), scale).manifest
    golden_folder(tmp_path / "out", "anserini")
    assert (manifest.documents, manifest.empty_documents) == (4, 1)
    assert (manifest.entries, manifest.dropped, manifest.clipped) == (6, 2, 1)
    assert (manifest.queries, manifest.empty_queries) == (1, 1)
    assert read_export_manifest(tmp_path / "out") == manifest


def test_pyserini_has_a_command_where_its_java_is_enough_and_else_a_line(tmp_path, monkeypatch):
    made = write_export("anserini", two_blocks(), Place(tmp_path / "an export"))
    monkeypatch.setattr(anserini, "missing_for_pyserini", lambda: "")
    ours, heading, command = anserini.how_to_load(made).splitlines()
    assert ours == f"sparse-adapt index --vectors '{tmp_path}/an export' -o '{tmp_path}/an export-index'"
    assert heading == "# or by Pyserini itself"
    assert command.startswith("python -m pyserini.index.lucene --collection JsonVectorCollection ")
    assert command.endswith(f"--input '{tmp_path}/an export/documents' --index '{tmp_path}/an export-index'")
    monkeypatch.setattr(anserini, "missing_for_pyserini", lambda: "/java is Java 17")
    assert anserini.how_to_load(made).splitlines() == [
        ours,
        "# Pyserini's own commands need a JDK of 21 or newer in JAVA_HOME: /java is Java 17",
    ]


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 7), st.integers(1, 500), max_size=8))
def test_the_json_reads_back_as_the_impacts(tmp_path_factory, row):
    dense = np.zeros((1, 8), dtype=np.float32)
    for column, impact in row.items():
        dense[0, column] = impact / 100
    folder = tmp_path_factory.mktemp("export") / "out"
    export("anserini", folder, TOKENS, EncodedBatch(["d"], csr_matrix(dense)))
    stored = json.loads((folder / "documents/part-00000.jsonl").read_text(encoding="utf-8"))
    assert stored["contents"] == ""
    assert {unescape_token(name): impact for name, impact in stored["vector"].items()} == {
        TOKENS[column]: impact for column, impact in row.items()
    }


@pytest.mark.parametrize(
    ("token", "name"),
    [
        ("##ing", "##ing"),
        ("[unused12]", "[unused12]"),
        ("node.js", "node.js"),
        ("Ġthe", "Ġthe"),
        ("▁été", "▁été"),
        ("\\", "\\"),
        ("\\u0020", "\\u0020"),  # four digits: not an escape of ours
        ("supply chain", "supply\\u000020chain"),
        ("a\tb\\", "a\\u000009b\\u00005c"),
        ("\u3000", "\\u003000"),
        ("\u00a0", "\\u0000a0"),
        ("\x00", "\\u000000"),
        ("\\u000020", "\\u00005cu000020"),
    ],
)
def test_names_by_hand(token, name):
    assert lucene_name(token) == name
    assert unescape_token(name) == token


@given(st.lists(st.text(st.sampled_from('\\u0123c \t"#é𝄞'), min_size=1, max_size=12), unique=True))
def test_names_go_back_never_meet_and_never_split(tokens):
    names = [lucene_name(token) for token in tokens]
    assert [unescape_token(name) for name in names] == tokens
    assert len(set(names)) == len(tokens)
    assert all(name.split() == [name] for name in names)


@pytest.mark.parametrize("token", ["x" * 256, "𝄞" * 128, " " * 32, ""])
def test_a_name_longer_than_lucene_takes_is_refused(token, tmp_path):
    with pytest.raises(InputError, match=f"this token has {len(token)} characters"):
        write_export("anserini", two_blocks([*TOKENS[:-1], token]), Place(tmp_path / "out"))
    assert lucene_name("x" * 255) == "x" * 255
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("query_id", ["a\tb", "a\nb", " a", ""])
def test_a_query_id_that_breaks_a_tsv_file_is_refused(query_id, tmp_path):
    with pytest.raises(InputError, match="this query id can't stand in a TSV file"):
        queries = EncodedBatch([query_id, "q2"], QUERIES.vectors)
        write_export("anserini", two_blocks(queries=queries), Place(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []
