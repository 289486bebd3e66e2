"""`dictionary` with `train = "rows"`: output rows of the defined terms learn, and not one other bit changes."""

from pathlib import Path

import pytest
import torch
from conftest import refused
from families import build
from test_meanings import BACKGROUND, Words

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.errors import ConfigError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.objectives import meanings, rows, texts
from sparse_adapt.objectives.meanings import new_logits
from sparse_adapt.objectives.texts import Texts
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.stages import dictionary
from sparse_adapt.stages.dictionary import teach_rows
from sparse_adapt.terms.mining import Term

ZORVEX = Definition("zorvex", "a report of what the team spent in a month", ())
KUBECTL = Definition("kubectl", "the logs of a server and of its agent", ())
DOCUMENTS = [
    "A zorvex report compares what the team spent, month by month.",
    "kubectl logs show what the agent saw.",
    "A nightly backup copies the database to a second server.",
    "Renew a certificate before it expires.",
]
GENERAL = ["The wood of a tool is from a tree.", "A certificate is what a school gives."]
IN_OTHER_WORDS, OTHER = "what the team spent this month", "the wood of a tool"


@pytest.fixture(autouse=True)
def little_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few synthetic and background texts, few steps, and a labeller that knows two kinds of words."""
    monkeypatch.setattr("sparse_adapt.synthetic.labelled.POOL", 200)
    monkeypatch.setattr("sparse_adapt.synthetic.labelled.like_queries", lambda: BACKGROUND[:100])
    monkeypatch.setattr(dictionary, "A_TERM", 0)
    monkeypatch.setattr(rows, "FITTED", 100)
    monkeypatch.setattr(meanings, "labeller_named", lambda _: Words())
    monkeypatch.setattr(texts, "general_passages", lambda encoder: Texts(encoder, GENERAL))
    monkeypatch.setattr(rows, "STEPS", 60)


@pytest.fixture(params=["bert", "roberta untied"])
def encoder(request: pytest.FixtureRequest, tmp_path: Path) -> SparseEncoder:
    family, _, untied = request.param.partition(" ")
    found = SparseEncoder.load(str(build(tmp_path / "model", family, tied=not untied)))
    extend(found, [Term("zorvex", "jargon")])
    return found


def rows_of(encoder: SparseEncoder, tokens: list[int]) -> list[torch.Tensor]:
    parts = (encoder.input_rows, encoder.output_rows, encoder.output_bias)
    return [part.detach()[tokens].clone() for part in parts if part is not None]


def test_the_term_is_lit_where_it_is_meant_and_everything_else_keeps_its_bits(encoder):
    """Every old row, the body, and of an untied model the input row of the term."""
    settings = settings_for("dictionary", overrides={"train": "rows"})
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    done = teach_rows(encoder, [ZORVEX], DOCUMENTS, settings)
    assert done.record == {"taught": ["zorvex"]}
    texts = encoder.tokenize([IN_OTHER_WORDS, OTHER])
    with torch.no_grad():
        meant, other = new_logits(encoder, texts, Texts(encoder, [])).squeeze(1).tolist()
    assert meant > other
    tied = encoder.output_rows is encoder.input_rows
    moved = {name for name, tensor in encoder.state_dict().items() if not torch.equal(tensor, before[name])}
    assert moved
    for name, tensor in encoder.state_dict().items():
        if name in moved:
            assert len(tensor) == encoder.vocabulary_size, name
            assert torch.equal(tensor[: encoder.old_size], before[name][: encoder.old_size]), name
    for name, tensor in encoder.named_parameters():
        if tensor is encoder.input_rows:
            assert tied or name not in moved


def test_a_single_term_has_no_rival_and_is_lit_the_later(encoder, monkeypatch):
    extend(encoder, [Term("kubectl", "jargon")])
    thresholds: list[float] = []
    monkeypatch.setattr(
        rows, "fit_rows", lambda encoder, ids, examples, how: thresholds.append(examples.targets.threshold)
    )
    settings = settings_for("dictionary", overrides={"train": "rows"})
    for defined in ([ZORVEX], [ZORVEX, KUBECTL]):
        teach_rows(encoder, defined, DOCUMENTS, settings)
    assert thresholds == [1.5, 2.5]


def test_a_term_that_comes_later_leaves_an_earlier_one_alone(encoder):
    settings = settings_for("dictionary", overrides={"train": "rows"})
    teach_rows(encoder, [ZORVEX], DOCUMENTS, settings)
    first = encoder.old_size
    zorvex = rows_of(encoder, [first])
    extend(encoder, [Term("kubectl", "jargon")])
    kubectl = rows_of(encoder, [first + 1])
    done = teach_rows(encoder, [KUBECTL], DOCUMENTS, settings)
    assert done.record == {"taught": ["kubectl"]}
    assert done.message.startswith("1 of 2 new tokens fitted")
    for now, then in zip(rows_of(encoder, [first]), zorvex, strict=True):
        assert torch.equal(now, then)
    assert not torch.equal(rows_of(encoder, [first + 1])[1], kubectl[1])


@pytest.mark.plugins("research")
@pytest.mark.parametrize("stage", ["warmup", "distill", "rank", "preserve", "joint"])
def test_stages_without_a_fit_refuse_it(stage):
    with pytest.raises(
        ConfigError, match=f"{stage}: train is for the stage dictionary, which alone fits rows"
    ):
        settings_for(stage, overrides={"train": "rows"})


@pytest.mark.parametrize("given", [{"labeller": "none"}, {"weights": {"recall": 0.0}}])
def test_without_a_labeller_or_its_examples_it_is_refused(given, tiny_model, zorvex_collection, tmp_path):
    from sparse_adapt.files.place import Place
    from sparse_adapt.stages.runner import carry_out_stage

    settings = settings_for("dictionary", overrides={"train": "rows", **given})
    with pytest.raises(ConfigError, match="name a labeller"):
        carry_out_stage(
            "dictionary",
            str(tiny_model),
            {"dictionary": zorvex_collection},
            Place(tmp_path / "out"),
            settings,
        )
    assert not (tmp_path / "out").exists()


def test_a_model_without_new_tokens_is_refused(sparse_adapt, tiny_model, zorvex_collection, tmp_path):
    said = ["--model", tiny_model, "--glossary", zorvex_collection, "--train", "rows"]
    ran = sparse_adapt("dictionary", *said, "-o", tmp_path / "out")
    assert "none of the 1 definitions is of a new term; extend the model" in refused(ran)
    assert not (tmp_path / "out").exists()


@pytest.mark.plugins("packs")
def test_the_command_writes_a_model_that_a_pack_can_be_made_of(
    sparse_adapt, tiny_model, zorvex_collection, tmp_path
):
    from sparse_adapt.files.place import Place
    from sparse_adapt.stages.record import read_stage_record
    from sparse_adapt.stages.runner import carry_out_stage

    carry_out_stage(
        "extend", str(tiny_model), {"terms": zorvex_collection / "terms.json"}, Place(tmp_path / "extended")
    )
    given = ["--model", tmp_path / "extended", "--glossary", zorvex_collection, "--train", "rows"]
    ran = sparse_adapt("dictionary", *given, "-o", tmp_path / "taught")
    assert ran.status == 0, ran.err
    assert "1 of 1 new tokens fitted to" in ran.err.replace("\n", " ")
    record = read_stage_record(tmp_path / "taught")
    assert record is not None
    assert (record["taught"], record["settings"]["train"]) == (["zorvex"], "rows")
    before, after = (SparseEncoder.load(str(tmp_path / name)) for name in ("extended", "taught"))
    assert torch.equal(after.input_rows[: before.old_size], before.input_rows[: before.old_size])
    ran = sparse_adapt("pack", tmp_path / "taught", "--base", tiny_model, "-o", tmp_path / "zorvex.pack")
    assert ran.status == 0, ran.err
    assert (tmp_path / "zorvex.pack").is_file()
