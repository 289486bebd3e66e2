"""A head that is dead or lights everything: seen, and refused before anything is taught."""

import json

import numpy as np
import pytest
import torch
from families import build

from diagnostics.health import tabulate_head
from sparse_adapt.errors import ModelError
from sparse_adapt.files.place import Place
from sparse_adapt.model import health
from sparse_adapt.model.health import Head, sickness, unreachable
from sparse_adapt.model.query_side import QuerySide
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.synthetic.background import check_head, head_of
from sparse_adapt.terms.mining import Term

WELL = Head(180.0, 40.0, 0.0, 0.2, 900, 30)


def test_a_healthy_head_has_nothing_to_say():
    assert sickness(WELL) is None
    assert [row["value"] for row in tabulate_head(WELL).rows][:2] == [180.0, 40.0]


def test_a_dead_head_and_one_that_lights_everything_are_told_with_what_helps(tiny_model, monkeypatch):
    encoder = SparseEncoder.load(tiny_model)
    check_head(encoder, "m")
    with torch.no_grad():
        encoder.output_bias.fill_(-1e3)
    assert head_of(encoder).dark == 1.0
    with pytest.raises(
        ModelError, match=r"m: its head gives no weight at all to 100% .* it is dead; go back"
    ):
        check_head(encoder, "m")
    monkeypatch.setattr(health, "FLOODED", encoder.vocabulary_size - 1)
    with torch.no_grad():
        encoder.output_bias.fill_(1e3)
    found = head_of(encoder)
    assert found.active == 1.0 and found.never_active == 0 < found.mentioned
    with pytest.raises(ModelError, match=r"gives weight to 200 tokens .* train it as SPLADE first"):
        check_head(encoder, "m")


def test_a_token_that_its_own_text_isn_t_cut_into_is_unreachable(tmp_path):
    """Brackets are cut off; a new term is cut into its token; a piece inside a word isn't asked about."""
    path = build(tmp_path / "uncased", "bert") / "tokenizer.json"
    raw = json.loads(path.read_text())
    vocabulary = raw["model"]["vocab"]
    vocabulary["[unused7]"] = lost = vocabulary.pop("server")
    path.write_text(json.dumps(raw))
    encoder = SparseEncoder.load(path.parent)
    extend(encoder, [Term("kubectl", "jargon")])
    assert unreachable(encoder) == [lost]


@pytest.mark.parametrize(
    ("family", "lost"), [("roberta", []), ("deberta-v2-narrow", ["Renew", "Set", "The"])]
)
def test_words_of_other_vocabularies_are_tried_with_their_mark(family, lost, tmp_path):
    encoder = SparseEncoder.load(build(tmp_path / family, family))
    assert [encoder.tokens[each].lstrip("\u2581") for each in unreachable(encoder)] == lost


def test_a_table_s_queries_are_counted_by_the_table(tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    encoder.query_side = QuerySide(np.ones(encoder.vocabulary_size, np.float32), 64)
    assert 0 < head_of(encoder).nonzero_query <= 64


@pytest.mark.plugins("research")
def test_a_stage_stops_before_it_teaches_a_sick_model(tiny_model, zorvex_collection, tmp_path):
    encoder = SparseEncoder.load(tiny_model)
    with torch.no_grad():
        encoder.output_bias.fill_(-1e3)
    encoder.save(tmp_path / "dead")
    for stage, files in (
        ("extend", {"terms": zorvex_collection / "terms.json"}),
        ("dynamic", {"corpus": zorvex_collection}),
    ):
        with pytest.raises(ModelError, match="dead"):
            carry_out_stage(stage, str(tmp_path / "dead"), files, Place(tmp_path / stage))
        assert not (tmp_path / stage).exists() and not (tmp_path / f"{stage}.partial").exists()


@pytest.mark.plugins("research")
def test_a_stage_that_makes_a_model_sick_says_so_and_leaves_nothing(tiny_model, zorvex_collection, tmp_path):
    from sparse_adapt.plugins.research.stages.dynamic import Dynamic

    named = {"corpus": zorvex_collection}
    settings = Dynamic(steps=6, learning_rate=0.3, train="all")
    with pytest.raises(
        ModelError, match=r"^the stage dynamic made the model sick: .* a tenth of the learning"
    ):
        carry_out_stage("dynamic", str(tiny_model), named, Place(tmp_path / "sick"), settings)
    assert list(tmp_path.iterdir()) == []
