"""Lines of JSON: blocks are cut so that each fits one request."""

import json

import pytest
from odd import ODD_TOKENS, odd_documents

from sparse_adapt.engines.lines import ExportBatch, LineSize, small_batches


@pytest.mark.parametrize("limit", [1, 200, 500, 10**6])
def test_blocks_are_cut_to_fit_a_request_and_lose_nothing(limit):
    documents = odd_documents()
    keys = [json.dumps(token) for token in ODD_TOKENS[:-2]] + ['"long"', '"longer"']
    cut = list(small_batches([ExportBatch(*documents)], LineSize(keys, 20), limit))
    assert [document_id for block in cut for document_id in block.ids] == documents.ids
    assert sum(block.vectors.nnz for block in cut) == documents.vectors.nnz
    for block in cut:
        text = "".join(
            f"{document_id!r:20}"
            + ", ".join(
                f"{keys[column]}: {weight}" for column, weight in zip(row.indices, row.data, strict=True)
            )
            for document_id, row in zip(block.ids, block.vectors, strict=True)
        )
        assert len(text.encode()) <= limit or len(block.ids) == 1


def test_texts_count_towards_the_size_of_a_request():
    documents = odd_documents()
    fields = ["x" * 1000] * len(documents.ids)
    keys = [f"t{column}" for column in range(documents.vectors.shape[1])]
    batches = list(small_batches([ExportBatch(*documents, fields)], LineSize(keys, 20), 4_000))
    assert [field for batch in batches for field in batch.fields] == fields
    assert max(len(batch.ids) for batch in batches) <= 3
