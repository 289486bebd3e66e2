"""What CONTRIBUTING.md shows works as it stands: each of its files, in a folder of their own, and each of its rows."""

import re
import sys
from pathlib import Path
from textwrap import indent
from types import SimpleNamespace

import pytest
import torch

from sparse_adapt.collection.readers import Document, read_documents
from sparse_adapt.errors import InputError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.objectives.loss_terms import term
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.registry import Plugin, StageRow, registry
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.selection import evidence
from sparse_adapt.selection.evidence import Kind
from sparse_adapt.selection.ruling import Case, rule
from sparse_adapt.stages.distill import Distill, DistillWeights
from sparse_adapt.stages.runner import carry_out_stage

PLUGGED = "pumps/__init__"
PAGE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
PLACED = re.compile(
    r"`(?:(?:sparse_adapt|diagnostics)/(?:\w+/)*|(pumps/))(\w+)\.py`:\n\n```python\n(.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
FILES = {f"{package}{name}": text for package, name, text in PLACED.findall(PAGE)}


@pytest.fixture
def added(tmp_path, monkeypatch):
    """The files of the page as modules of their own names, those of the plug-in in a package without its plug-in."""
    (tmp_path / "pumps").mkdir()
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text("" if name == PLUGGED else text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in FILES:
        sys.modules.pop(name.removesuffix("/__init__").replace("/", "."), None)


def row_of_stage(name):
    """The row that the page shows for a stage."""
    shown = re.search(rf'StageRow\("{name}".*?\)', PAGE)
    assert shown
    return eval(shown[0], {"StageRow": StageRow})


def test_each_file_is_under_thirty_lines():
    assert {PLUGGED, "pumps/quiet", "pumps/plain", "pumps/mails", "length", "heaviest"} <= FILES.keys()
    for name, text in FILES.items():
        assert len([line for line in text.splitlines() if line.strip()]) < 30, name


def test_a_stage_is_added(added, tmp_path, monkeypatch, tiny_model, zorvex_collection):
    monkeypatch.setitem(registry().plugins, "pumps", Plugin(stages=[row_of_stage("quiet")]))
    inputs = {"terms": zorvex_collection}
    carry_out_stage("extend", str(tiny_model), inputs, Place(tmp_path / "extended"))
    settings = settings_for("quiet", overrides={"steps": 5, "train": "all"})
    done = carry_out_stage("quiet", str(tmp_path / "extended"), {}, Place(tmp_path / "quiet"), settings)
    assert done.record["stage"] == "quiet"
    assert "false_activations" in done.message


def test_a_loss_term_is_added(added, tmp_path, tiny_model, zorvex_collection):
    row = re.search(r"^```python\n(length: float = .*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[1]
    shown = {"DistillWeights": DistillWeights, "term": term}
    exec(f"class Weights(DistillWeights):\n{indent(row.replace('{OBJECTIVES}.', ''), '    ')}", shown)
    kind = shown["Weights"]

    class Longer(Distill):
        weights: kind = kind()

    given = Longer(steps=2, labeller="none")
    carry_out_stage("extend", str(tiny_model), {"terms": zorvex_collection}, Place(tmp_path / "extended"))
    inputs = {"corpus": zorvex_collection, "candidates": zorvex_collection}
    done = carry_out_stage("distill", str(tmp_path / "extended"), inputs, Place(tmp_path / "taught"), given)
    assert ", length " in done.message


def test_the_loss_term_by_hand(added):
    from length import length

    queries = torch.tensor([[3.0, 1.0, 0.0], [2.0, 0.0, 0.0]])  # beyond the heaviest: 1 and 0
    assert length(SimpleNamespace(queries=queries)).item() == 0.5


def test_a_reader_is_added(added, tmp_path, monkeypatch):
    readers = {"documents": {".mbox": "pumps.mails:read_mails"}}
    monkeypatch.setitem(registry().plugins, "pumps", Plugin(readers=readers))
    mail = "From me\nMessage-ID: {0}\nSubject: Pumps\n\nThe pump {0}.\n\n"
    (tmp_path / "box.mbox").write_text("".join(map(mail.format, ("m1", "m2"))))
    found = [*read_documents(tmp_path / "box.mbox")]
    assert found == [Document(name, f"The pump {name}.\n", "Pumps") for name in ("m1", "m2")]
    (tmp_path / "box.mbox").write_text(mail.format("m1") * 2)
    with pytest.raises(InputError, match=r'box\.mbox:2: duplicate document id "m1"'):
        [*read_documents(tmp_path / "box.mbox")]


@pytest.mark.plugins("pages")
def test_a_diagnostic_is_added(added, tiny_model):
    from heaviest import heaviest

    model, texts = SparseEncoder.load(tiny_model), ["the server", "a backup of the server"]
    found = heaviest(model, texts)
    largest = encode(model, texts, "document").toarray().argmax(axis=1)
    assert found.tokens == tuple(model.tokenizer.convert_ids_to_tokens(largest.tolist()))
    assert found.headline.endswith("are the heaviest of 2 texts")
    assert found.tokens[0] in found.page("Model") and found.tokens[0] in str(found)


def test_a_kind_is_added_to_the_rule(monkeypatch):
    shown = re.search(r'^Kind\("titles".*$', PAGE, re.MULTILINE)[0]
    monkeypatch.setattr(evidence, "RETAINED", (eval(shown, {"Kind": Kind}),))
    titles = {"queries": 9, "baseline": {"mrr@10": 0.5}, "model": {"mrr@10": 0.4}}
    titles |= {"low": {"mrr@10": -0.2}, "high": {"mrr@10": -0.01}}
    lines = rule(Case(retained=evidence.retained_in({"titles": titles}))).lines
    assert "lost: MRR@10 of titles 0.500 to 0.400" in map(str, lines)
