"""The benchmark of masking: what it sets aside, what it counts as told right, and its table."""

import pytest
import torch

from benchmarks import masking
from sparse_adapt.collection.examples import Pair, read_pairs, write_pairs
from sparse_adapt.collection.readers import Document, read_documents, write_documents
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.terms.mining import Term


def test_one_document_of_ten_is_set_aside_with_its_pairs(tmp_path):
    write_documents(tmp_path / "corpus.jsonl", [Document(f"d{n}", f"text {n}") for n in range(12)])
    write_pairs(tmp_path / "pairs.jsonl", [Pair("a", "d0"), Pair("b", "d1"), Pair("c", "d10")])
    kept = masking.set_aside(tmp_path)
    assert [document.document_id for document in read_documents(kept / "aside.jsonl")] == ["d0", "d10"]
    assert len(list(read_documents(kept / "corpus.jsonl"))) == 10
    assert [pair.query for pair in read_pairs(kept / "pairs.jsonl")] == ["b"]


def test_a_new_token_is_guessed_right_where_it_beats_every_other(tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    extend(encoder, [Term("zorvex", "jargon"), Term("kubectl", "jargon")])
    texts = ["the zorvex of the team.", "kubectl logs and zorvex reports.", "no such word."]
    with torch.no_grad():
        encoder.output_bias[200:] = torch.tensor([1e4, 0.0])
    assert masking.guessed_right(encoder, texts) == (2, 3)
    with torch.no_grad():
        encoder.output_bias[200:] = torch.tensor([0.0, 1e4])
    assert masking.guessed_right(encoder, texts) == (1, 3)


def result(row: str, seed: int, right: int, choosing: float | None) -> dict[str, object]:
    measured = {"ndcg@10": 0.3 + seed / 10, "nonzero_document": 80.0, "nonzero_query": 20.0}
    names = {"kind": "sparse", "collection": "small", "row": row, "seed": seed}
    rest = {"seconds": [3.0, 4.0], "choosing": choosing, "measures": {"measured": measured}}
    return {**names, "right": right, "asked": 10, **rest}


def test_the_table_holds_means_over_seeds():
    lines = masking.table(
        [result("random", 0, 3, None), result("dynamic", 0, 2, 0.1), result("dynamic", 1, 3, 0.2)]
    )
    assert lines.splitlines()[2] == "| sparse | small | random | 1 | 0.300 | 30.0% | 80 / 20 | 7 |  |"
    assert lines.splitlines()[3] == "| sparse | small | dynamic | 2 | 0.350 | 25.0% | 80 / 20 | 7 | 15.0% |"


def test_a_share_is_of_the_stage_that_chooses():
    settings = {
        "settings": {"masking": "dynamic"},
        "stage": "dynamic",
        "seconds": 8.0,
        "choosing_seconds": 2.0,
    }
    other = {"stage": "contrast", "seconds": 100.0}
    assert masking.choosing_share([settings, other]) == pytest.approx(0.25)
    assert masking.choosing_share([{**settings, "settings": {"masking": "random"}}]) is None
