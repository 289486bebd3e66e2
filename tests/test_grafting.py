"""A SPLADE model on the body of another encoder: what is taken over, what is refused, what a killed graft leaves."""

import json
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from dense_models import tiny_dense
from forking import forked, killed_at
from torch.testing import assert_close
from transformers import BertConfig, BertForMaskedLM

import sparse_adapt as sa
from benchmarks.grafting import log
from sparse_adapt.api.checking import verify
from sparse_adapt.cli.app import every_command
from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.collection.readers import (
    Document,
    Query,
    read_documents,
    write_documents,
    write_judgements,
    write_queries,
)
from sparse_adapt.errors import ConfigError, InputError, ModelError
from sparse_adapt.files.place import Place
from sparse_adapt.model.dense import SMALL
from sparse_adapt.model.grafting import graft_body, layers_of_head
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import BASE_MODEL
from sparse_adapt.pipeline.settings import GraftSettings
from sparse_adapt.plugins.research.stages.logits import Logits, TokenLogits
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.synthetic.queries import read_synthetic_queries
from sparse_adapt.terms.mining import Term, write_terms
from sparse_adapt.training.loop import random_at, train

TEXTS = [
    "the team of the office reads a report",
    "a backup copies the database",
    "who owns the plan of the month",
    "a company compares what a team spent",
]
WORDS = ["".join(letters) for letters in product("bcdfghk", "aeiou")]
QUICK = {
    "logits": {"steps": 2, "batch_size": 2, "device": "cpu", "precision": "float32"},
    "preserve": {"steps": 2, "batch_size": 2, "device": "cpu", "precision": "float32"},
}


@pytest.fixture(scope="module")
def wide(tiny_model, tmp_path_factory) -> Path:
    """A dense encoder with the tiny model's tokens and a body of its own, twice as wide."""
    folder = tmp_path_factory.mktemp("wide")
    config = BertConfig.from_pretrained(tiny_model)
    config.hidden_size, config.intermediate_size, config.num_hidden_layers = 32, 64, 3
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(21)
        BertForMaskedLM(config).save_pretrained(folder / "masked")
    for path in tiny_model.glob("tokenizer*"):
        shutil.copy(path, folder / "masked")
    return tiny_dense(folder / "masked", folder / "dense")


@pytest.fixture
def sparse(tiny_model) -> SparseEncoder:
    return SparseEncoder.load(tiny_model)


def test_the_decoder_is_the_sparse_models_and_the_body_the_encoders(wide, sparse, tmp_path):
    made = graft_body(wide, sparse, sparse.tokenize(TEXTS))
    assert made.output_rows.shape == (200, 32) and made.output_rows is not made.input_rows
    assert torch.equal(made.output_rows[:, :16], sparse.output_rows)
    assert torch.equal(made.output_bias, sparse.output_bias)
    body = BertForMaskedLM.from_pretrained(wide.parent / "masked").bert.state_dict()
    found = made.masked_lm.base_model.state_dict()
    assert found.keys() == body.keys() and all(torch.equal(found[name], body[name]) for name in body)
    norms = layers_of_head(made.masked_lm, "made").norm, layers_of_head(sparse.masked_lm, "sparse").norm
    assert torch.equal(norms[0].weight[:16], norms[1].weight) and not norms[0].weight[16:].any()
    made.save(tmp_path / "made")
    again = SparseEncoder.load(tmp_path / "made")
    ids = sparse.tokenize(TEXTS)
    assert torch.equal(again.weights(ids), made.weights(ids)), "the folder is an ordinary model"
    assert again.tokenizer.get_vocab() == sparse.tokenizer.get_vocab()


def test_on_its_own_body_a_graft_is_the_model_itself(tiny_model, sparse, tmp_path):
    """The ridge then finds the dense layer that is there, so that nothing is lost but what the penalty takes."""
    dense = tiny_dense(tiny_model, tmp_path / "dense")
    ids = sparse.tokenize(
        [text for path in Path(__file__).parent.glob("test_g*.py") for text in path.read_text().split("\n\n")]
    )
    made = graft_body(dense, sparse, ids)
    asked = sparse.tokenize(TEXTS)
    with torch.no_grad():
        gap = (made.weights(asked) - sparse.weights(asked)).abs().max()
    assert gap < 0.05


@pytest.mark.parametrize("change", ["other token", "more tokens", "other normalizer"])
def test_tokenizers_that_differ_are_refused_by_the_token(change, wide, sparse, tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(wide, folder)
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    vocabulary = content["model"]["vocab"]
    if change == "other token":
        vocabulary["quux"] = vocabulary.pop("report")
        said = "first in the token 'report'"
    elif change == "more tokens":
        vocabulary["quux"] = len(vocabulary)
        said = "has 'quux', which the SPLADE model lacks"
    else:
        content["normalizer"]["lowercase"] = False
        said = "its tokenizer's normalizer differs"
    path.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=said):
        graft_body(folder, sparse, sparse.tokenize(TEXTS))


def test_a_narrower_body_is_refused(wide, tiny_model, tmp_path):
    narrow = tiny_dense(tiny_model, tmp_path / "narrow")
    sparse = SparseEncoder.load(wide.parent / "masked")
    with pytest.raises(ModelError, match="its body is 16 wide, the SPLADE model 32; choose a wider encoder"):
        graft_body(narrow, sparse, sparse.tokenize(TEXTS))


# -- logits of every token ------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
def test_the_distance_without_logits_is_that_of_the_logits(tied, wide, tiny_model, sparse):
    student = SparseEncoder.load(tiny_model) if tied else graft_body(wide, sparse, sparse.tokenize(TEXTS))
    with torch.no_grad():
        student.output_rows[:, :16] += 0.1 * torch.randn(200, 16, generator=torch.Generator().manual_seed(3))
    task = TokenLogits(student, sparse, TEXTS, Logits(batch_size=3, words=4, device="cpu"))
    batch = task.batch(random_at(0, 0))
    assert len(batch) == 3 and max(map(len, batch)) <= 64
    found = task.terms(student, batch)["logits"]
    ours, theirs = [], []
    for ids in batch:
        given = {
            "input_ids": torch.tensor([ids]),
            "attention_mask": torch.ones(1, len(ids), dtype=torch.long),
        }
        ours.append(student.masked_lm(**given).logits[0])
        theirs.append(sparse.masked_lm(**given).logits[0])
    own, wanted = torch.cat(ours), torch.cat(theirs)
    gap = ((own - wanted).square() * task.counts).sum()
    variance = ((wanted - wanted.mean(dim=0)).square() * task.counts).sum()
    assert_close(found, gap / variance, rtol=1e-3, atol=1e-4)
    assert float(task.counts.sum()) == pytest.approx(1.0)


def test_logits_come_nearer_to_the_teachers(wide, sparse, tmp_path):
    student = graft_body(wide, sparse, sparse.tokenize(TEXTS))
    with torch.no_grad():  # what the ridge found is spoilt
        layers_of_head(student.masked_lm, "student").dense.weight.mul_(-0.5)
    settings = Logits(steps=30, batch_size=4, words=8, device="cpu", learning_rate=5e-3)
    history = train(student, TokenLogits(student, sparse, TEXTS, settings), tmp_path)
    assert history[-1]["logits"] < 0.7 * history[0]["logits"]


def test_the_stage_needs_a_teacher_with_the_same_tokens(tiny_model, zorvex_collection, tmp_path):
    place, corpus = Place(tmp_path / "out"), {"corpus": zorvex_collection}
    with pytest.raises(ConfigError, match="needs the model whose logits it learns; name it with --baseline"):
        carry_out_stage("logits", str(tiny_model), corpus, place)
    write_terms(tmp_path / "terms.json", [Term("zorvex", "coined")])
    extended = carry_out_stage(
        "extend", str(tiny_model), {"terms": tmp_path / "terms.json"}, Place(tmp_path / "more")
    )
    with pytest.raises(ConfigError, match="their vocabularies differ; name another --baseline"):
        carry_out_stage("logits", str(tiny_model), {**corpus, "before": extended.folder}, place)
    assert not place.folder.exists()


# -- the whole graft ------------------------------------------------------------------------------


def test_a_graft_copies_the_sparse_model(wide, tiny_model, zorvex_collection, tmp_path):
    out = tmp_path / "grafted"
    given = {"encoder": str(wide), "sparse": str(tiny_model), "ranked": 0, "progress": False, **QUICK}
    model = sa.graft([zorvex_collection, "gatrocraptic"], out, **given)
    assert model.encoder.output_rows.shape == (200, 32)
    assert {path.name for path in out.iterdir() if path.is_dir()} >= {
        "text",
        "grafted",
        "1-logits",
        "2-preserve",
        "model",
    }
    ids = [json.loads(line)["_id"] for line in (out / "text" / "corpus.jsonl").read_text().splitlines()]
    assert len(ids) == len(set(ids)) and {name.partition("-")[0] for name in ids} == {"1", "2", "general"}
    report = json.loads((out / "report.json").read_text())
    assert [stage["stage"] for stage in report["stages"]] == ["logits", "preserve"]
    assert sa.graft([zorvex_collection, "gatrocraptic"], out, resume=True, **given).source == model.source
    with pytest.raises(ConfigError, match=r"request\.json: made with another corpora"):
        sa.graft([zorvex_collection], out, resume=True, **given)


def test_a_graft_learns_to_rank(wide, tiny_model, tmp_path):
    settings = {**QUICK, "rank": {"steps": 2, "batch_size": 2, "device": "cpu", "precision": "float32"}}
    given = {"encoder": str(wide), "sparse": str(tiny_model), "ranked": 64, "queries": 20, "progress": False}
    sa.graft(["gatrocraptic"], tmp_path / "grafted", **given, **settings)
    report = json.loads((tmp_path / "grafted" / "report.json").read_text())
    assert [stage["folder"] for stage in report["stages"]] == ["1-logits", "2-preserve", "3-rank"]
    assert report["stages"][-1]["files"]["candidates"]["path"] == "./ranking/candidates.jsonl"
    made = (tmp_path / "grafted" / name for name in ("2-preserve", "3-rank", "model"))
    copy, ranked, kept = map(SparseEncoder.load, made)
    assert (copy.output_rows != ranked.output_rows).any()
    assert_close(kept.output_rows, (copy.output_rows + ranked.output_rows) / 2)
    np.testing.assert_allclose(kept.token_scales**2, ranked.token_scales, rtol=1e-3)
    assert verify(tmp_path / "grafted" / "model").models == 1
    names = [line.split(":")[0] for line in log(tmp_path / "grafted").splitlines()]
    steps = ["text", "grafted", "1-logits", "2-preserve", "queries", "candidates", "3-rank"]
    assert (
        list(dict.fromkeys(names)) == steps and names.count("3-rank") == 2
    )  # the last step, and what it took


def test_a_graft_learns_to_rank_by_questions_of_people(wide, tiny_model, tmp_path):
    """Of a judged collection: its training split, each question with its passage among the candidates."""
    questions = tmp_path / "questions"
    passages = [
        Document(f"p{number}", f"the {word} of the office {number}") for number, word in enumerate(WORDS)
    ]
    write_documents(questions / "corpus.jsonl", passages)
    write_queries(
        questions / "queries.jsonl",
        [Query(f"q{number}", f"where is the {word}?") for number, word in enumerate(WORDS)],
    )
    judged = {f"q{number}": {"p30": 0, f"p{number}": 1} for number in range(20)}
    judged["q0"] = {"p30": 0, "elsewhere": 1}  # nothing here answers it
    write_judgements(questions / "qrels" / "train.tsv", judged)
    settings = {**QUICK, "rank": {"steps": 2, "batch_size": 2, "device": "cpu", "precision": "float32"}}
    given = {"encoder": str(wide), "sparse": str(tiny_model), "ranked": 30, "queries": 20, "progress": False}
    sa.graft(["gatrocraptic"], tmp_path / "grafted", questions=questions, **given, **settings)
    ranking = tmp_path / "grafted" / "ranking"
    drawn = {query.query_id: query.document_id for query in read_synthetic_queries(ranking)}
    assert len(drawn) == 19 and all(source == name.replace("q", "p") for name, source in drawn.items())
    known = {document.document_id for document in read_documents(ranking)}
    assert len(known) == 30 and set(drawn.values()) < known
    entries = list(read_candidates(ranking / "candidates.jsonl"))
    assert entries and all(drawn[entry.query_id] in entry.document_ids for entry in entries)
    with pytest.raises(ConfigError, match="ranked = 0: the model doesn't learn to rank, so questions teach"):
        sa.graft(["gatrocraptic"], tmp_path / "more", questions=questions, **{**given, "ranked": 0})
    (questions / "qrels" / "train.tsv").unlink()
    with pytest.raises(InputError, match="holds no judgements"):
        sa.graft(["gatrocraptic"], tmp_path / "more", questions=questions, **given)
    assert not list(tmp_path.glob("more*")), "nothing is written"


def test_unknown_settings_and_models_that_cant_be_grafted_are_refused(wide, tiny_model, tmp_path):
    with pytest.raises(ConfigError, match="unknown setting 'effrt'; did you mean 'effort'"):
        sa.graft(["gatrocraptic"], tmp_path / "out", effrt=2)
    for stage in ("logits", "preserve", "rank"):  # the last of them, too, before the first begins
        with pytest.raises(ConfigError, match=f"{stage}: learning_rate should be greater than 0"):
            sa.graft(["gatrocraptic"], tmp_path / "out", **{stage: {"learning_rate": 0}})
    with pytest.raises(
        ConfigError, match="its tokenizer differs from the SPLADE model's, first in the token"
    ):
        sa.graft(["gatrocraptic"], tmp_path / "out", encoder=str(wide), progress=False)
    assert not list(tmp_path.glob("out*")), "nothing is written"


def test_the_command_has_the_defaults_of_the_settings():
    given = {each.name: each.default for each in every_command()["Prepare"]["graft"].params}
    assert (given["encoder"], given["sparse"]) == (SMALL, BASE_MODEL)
    for name in ("effort", "documents", "ranked", "seed"):
        assert given[name] == getattr(GraftSettings(), name), name


@pytest.mark.parametrize(
    "part", [0.5, *(pytest.param(part, marks=pytest.mark.nightly) for part in (0.2, 0.8))]
)
def test_a_killed_graft_goes_on_to_the_same_bits(part, wide, tiny_model, zorvex_collection, tmp_path):
    def work(name: str) -> None:
        sa.graft(
            [str(zorvex_collection)],
            str(tmp_path / name),
            encoder=str(wide),
            sparse=str(tiny_model),
            ranked=0,
            resume=True,
            progress=False,
            **QUICK,
        )

    killed_at(part, lambda: work("whole"), lambda: work("killed"))
    assert forked(lambda: work("killed")).status == 0
    bits = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert bits[0] == bits[1]
