"""Terms beside their pieces in what somebody may leave out: stages of research, exports, packs."""

from pathlib import Path

import pytest
import torch
from conftest import refused

import sparse_adapt as sa
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.plugins.packs.base import checksum_of_weights
from sparse_adapt.terms.mining import Term


@pytest.fixture
def taught(tiny_model: Path, tmp_path: Path) -> Path:
    """The tiny model with "zorvex" and "access key", whose rows activate texts that say "server", in a folder."""
    encoder = SparseEncoder.load(tiny_model)
    extend(encoder, [Term("zorvex", ""), Term("access key", "")], "beside")
    with torch.no_grad():
        encoder.output_rows[-2:] = encoder.output_rows[encoder.tokenizer.convert_tokens_to_ids("server")]
        encoder.output_bias[-2:] = torch.tensor([1.5, -40.0])
    encoder.save(tmp_path / "taught")
    return tmp_path / "taught"


@pytest.mark.parametrize("stage", ["joint", "dynamic", "published"])
def test_stages_that_know_a_term_by_its_token_alone_refuse_it(
    stage, taught, zorvex_collection, tmp_path, sparse_adapt
):
    (tmp_path / "pairs.jsonl").write_text('{"query": "a server", "doc_id": "d01"}\n')
    options = {
        "joint": ["--pairs", tmp_path / "pairs.jsonl"],
        "published": ["--candidates", zorvex_collection],
    }
    ran = sparse_adapt(
        stage,
        "--model",
        taught,
        "--corpus",
        zorvex_collection,
        *options.get(stage, []),
        "-o",
        tmp_path / "out",
    )
    assert f"has terms beside their pieces, which the stage {stage} can't teach" in refused(ran)


def test_an_export_names_its_dimension(taught, zorvex_collection, tmp_path, sparse_adapt):
    vectors = tmp_path / "v"
    assert sparse_adapt("encode", "--model", taught, "--corpus", zorvex_collection, "-o", vectors).status == 0
    assert sparse_adapt("export", "opensearch", "--vectors", vectors, "-o", tmp_path / "o").status == 0
    exported = "".join(path.read_text() for path in (tmp_path / "o").rglob("*") if path.is_file())
    assert '"zorvex"' in exported


def test_a_pack_of_terms_beside_their_pieces_goes_in_and_out_again(taught, tiny_model, tmp_path):
    sa.load(tiny_model, device="cpu").save(tmp_path / "base")
    base = sa.load(tmp_path / "base", device="cpu")
    base.extend(["zorvex", "access key"], pieces="beside")
    with torch.no_grad():
        base.encoder.output_rows[-2:] = SparseEncoder.load(taught).output_rows[-2:]
    base.save(tmp_path / "made")
    packed = sa.pack(tmp_path / "made", tmp_path / "terms.pack", base=tmp_path / "base")
    whole = sa.unpack(packed.path, tmp_path / "base", tmp_path / "whole")
    made, there = SparseEncoder.load(tmp_path / "made"), SparseEncoder.load(tmp_path / "whole")
    assert whole.terms == ["zorvex", "access key"] and there.new_tokens == made.new_tokens
    assert checksum_of_weights(there) == checksum_of_weights(made)
    sa.unpack([], tmp_path / "whole", tmp_path / "back", remove=["terms"])
    assert checksum_of_weights(SparseEncoder.load(tmp_path / "back")) == checksum_of_weights(
        SparseEncoder.load(tmp_path / "base")
    )
