"""Documents come into files that fit one request, and tokens get names that go back."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd import ODD_TOKENS, export, odd_documents, vectors_of

from sparse_adapt.collection.readers import Document
from sparse_adapt.files.place import Place
from sparse_adapt.plugins.engines import layout
from sparse_adapt.plugins.engines.layout import ExportSource, escape_token, unescape_token
from sparse_adapt.plugins.engines.manifest import ExportFolder
from sparse_adapt.plugins.engines.writing import write_export


@pytest.mark.parametrize("limit", [1, 200, 25_000, 10**6])
def test_files_are_cut_to_fit_a_request_and_lose_nothing(limit, tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "PART_BYTES", limit)
    documents = odd_documents()
    manifest = export("qdrant", tmp_path / "out", ODD_TOKENS, documents)
    lines = list(ExportFolder(tmp_path / "out", manifest, ODD_TOKENS).document_lines())
    assert [line["payload"]["document_id"] for line in lines] == documents.ids
    entries = [len(line["vector"].get("weights", {}).get("values", ())) for line in lines]
    assert (sum(entries), sum(part.rows for part in manifest.parts)) == (documents.vectors.nnz, 10)
    for part in manifest.document_files:
        assert (tmp_path / "out" / part.path).stat().st_size <= limit or part.rows == 1


def test_texts_count_towards_the_size_of_a_request(tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "PART_BYTES", 45_000)
    documents = odd_documents()
    texts = [Document(document_id, "x" * 20_000) for document_id in documents.ids]
    source = ExportSource(vectors_of(ODD_TOKENS, documents), texts=texts)
    done = write_export("opensearch", source, Place(tmp_path / "out"))
    assert max(part.rows for part in done.manifest.document_files) <= 2


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text(st.sampled_from('\\u0123c \t"#.é𝄞'), max_size=12), unique=True))
def test_escaped_names_go_back_and_never_meet(tokens):
    names = [escape_token(token, lambda character: character in ". ") for token in tokens]
    assert [unescape_token(name) for name in names] == tokens
    assert len(set(names)) == len(tokens)
    assert not any("." in name or " " in name for name in names)
