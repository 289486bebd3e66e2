"""What CONTRIBUTING.md shows works as it stands: each of its files, in a folder of their own, and each of its rows."""

import re
import sys
from pathlib import Path
from textwrap import indent
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from odd import export
from scipy.sparse import random as random_matrix

from sparse_adapt.collection import readers
from sparse_adapt.errors import InputError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.objectives.loss_terms import term
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.plugins.engines import formats
from sparse_adapt.plugins.engines.formats import open_engine
from sparse_adapt.plugins.engines.parity import check_engine
from sparse_adapt.registry import Plugin, registry
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.selection import evidence
from sparse_adapt.selection.evidence import Kind
from sparse_adapt.selection.ruling import Case, rule
from sparse_adapt.stages import table
from sparse_adapt.stages.distill import Distill, DistillWeights
from sparse_adapt.stages.runner import carry_out_stage

PAGE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
PLACED = re.compile(
    r"`(?:sparse_adapt|diagnostics)/(?:\w+/)*(\w+)\.py`:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
FILES = dict(PLACED.findall(PAGE))


def row_of(name, kind):
    """The row that the page shows for a file, as an object of its table's kind."""
    shown = re.search(rf'^{kind.__name__}\("{name}".*$', PAGE, re.MULTILINE)
    assert shown
    row = eval(shown[0], {kind.__name__: kind})
    return (
        row._replace(place=re.sub(r"sparse_adapt\.\w+\.", "", row.place)) if "place" in kind._fields else row
    )


@pytest.fixture
def added(tmp_path, monkeypatch):
    """The files of the page as modules of their own names."""
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in FILES:
        sys.modules.pop(name, None)


def test_each_file_is_under_thirty_lines():
    assert {"quiet", "plain", "length", "mails", "heaviest"} <= FILES.keys()
    for name, text in FILES.items():
        assert len([line for line in text.splitlines() if line.strip()]) < 30, name


def test_a_stage_is_added(added, tmp_path, monkeypatch, tiny_model, zorvex_collection):
    monkeypatch.setattr(table, "STAGES", (*table.STAGES, row_of("quiet", table.StageRow)))
    inputs = {"terms": zorvex_collection}
    carry_out_stage("extend", str(tiny_model), inputs, Place(tmp_path / "extended"))
    settings = settings_for("quiet", overrides={"steps": 5, "train": "all"})
    done = carry_out_stage("quiet", str(tmp_path / "extended"), {}, Place(tmp_path / "quiet"), settings)
    assert done.record["stage"] == "quiet"
    assert "false_activations" in done.message


def test_an_engine_is_added(added, tmp_path, monkeypatch):
    row = row_of("plain", formats.EngineRow)._replace(module="plain")
    monkeypatch.setitem(registry().plugins, "theirs", Plugin(engines={"plain": row}))
    vectors = random_matrix(40, 20, density=0.3, random_state=1, format="csr", dtype=np.float32)
    documents = EncodedBatch([f"d{row}" for row in range(40)], vectors)
    export("plain", tmp_path / "out", [f"t{column}" for column in range(20)], documents)
    queries = EncodedBatch(["q0", "q1", "q2"], vectors[:3])
    with open_engine("plain", tmp_path / "out") as engine:
        parity = check_engine(engine, documents, queries)
    assert parity.faults == ()
    assert parity.kinds["same"] > 0


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
    from mails import read_mails

    row = re.search(r'^".mbox": .*$', PAGE, re.MULTILINE)[0]
    rows = eval(f"{{{row}}}", {"read_mails": read_mails})
    monkeypatch.setitem(readers.READERS, "documents", readers.READERS["documents"] | rows)
    mail = "From me\nMessage-ID: {0}\nSubject: Pumps\n\nThe pump {0}.\n\n"
    (tmp_path / "box.mbox").write_text("".join(map(mail.format, ("m1", "m2"))))
    found = [*readers.read_documents(tmp_path / "box.mbox")]
    assert found == [readers.Document(name, f"The pump {name}.\n", "Pumps") for name in ("m1", "m2")]
    (tmp_path / "box.mbox").write_text(mail.format("m1") * 2)
    with pytest.raises(InputError, match=r'box\.mbox:2: duplicate document id "m1"'):
        [*readers.read_documents(tmp_path / "box.mbox")]


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
