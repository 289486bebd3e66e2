"""Further terms for a model in use: old weights stay, and the documents to encode again are named."""

import json

import numpy as np
import pytest

import sparse_adapt as sa
from sparse_adapt.errors import InputError
from sparse_adapt.objectives import rows

GLOSSARY = {"quornel": "a plan that says how a team spends", "server": "a machine"}
CORPUS = {
    "a": "who signs the quornel of a team",
    "b": "test the backup of the database",
    "c": "a quornel again",
}


@pytest.fixture(autouse=True)
def few_texts(monkeypatch):
    monkeypatch.setattr("sparse_adapt.synthetic.labelled.POOL", 200)
    monkeypatch.setattr("sparse_adapt.synthetic.labelled.POOL_A_TERM", 100)
    monkeypatch.setattr(rows, "FITTED", 100)
    monkeypatch.setattr(rows, "STEPS", 20)


@pytest.fixture(scope="module")
def adapted(tiny_model, tmp_path_factory):
    """A model that has terms already."""
    model = sa.load(tiny_model, device="cpu")
    model.extend(["zorvex"])
    return model.save(tmp_path_factory.mktemp("adding") / "adapted")


def test_an_adapted_model_learns_further_terms_and_keeps_the_rest(adapted, tmp_path, sparse_adapt):
    (tmp_path / "new.json").write_text(
        json.dumps([{"term": t, "definition": d} for t, d in GLOSSARY.items()])
    )
    (tmp_path / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in CORPUS.items())
    )
    words = [
        "add-terms",
        "--model",
        adapted,
        "--glossary",
        tmp_path / "new.json",
        "--corpus",
        tmp_path / "corpus.jsonl",
    ]
    ran = sparse_adapt(*words, "-o", tmp_path / "more")
    assert ran.status == 0, ran.err
    before, after = sa.load(adapted, device="cpu"), sa.load(tmp_path / "more", device="cpu")
    assert after.terms == ["zorvex", "quornel"], "server has a token"
    again = (tmp_path / "more" / "reencode.txt").read_text().split()
    old, new = before.encode(list(CORPUS.values())), after.encode(list(CORPUS.values()))
    changed = [
        key for key, one, other in zip(CORPUS, old.toarray(), new.toarray(), strict=True)
        if not np.array_equal(one, other[:-1]) or other[-1]
    ]  # fmt: skip
    assert {"a", "c"} <= {*changed} == {*again}
    assert f"encode again {len(again)} documents" in ran.out
    assert list(sa.packs(tmp_path / "more").headers) == ["new"]
    out = sa.unpack([], tmp_path / "more", tmp_path / "without", remove=["new"])
    assert out.model.terms == ["zorvex"]


def test_a_glossary_whose_words_all_have_a_token_is_refused(adapted, tmp_path):
    with pytest.raises(InputError, match=r"glossary: .* has a token for each of its 1 entries; add none"):
        sa.add_terms(adapted, {"server": "a machine"}, tmp_path / "more")
    assert list(tmp_path.iterdir()) == []
