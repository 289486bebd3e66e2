"""Joint and contrastive stages: what is masked, who is a negative, what is learnt, and what a kill leaves."""

import json
import signal
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from dense_models import tiny_dense
from forking import dying_at, forked, forked_by
from safetensors.torch import load_file
from torch.testing import assert_close

from sparse_adapt.collection.examples import Pair, write_pairs
from sparse_adapt.collection.readers import Document, write_documents
from sparse_adapt.errors import ConfigError, InputError, ModelError
from sparse_adapt.files.place import Place
from sparse_adapt.model.encoder import Encoder
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.model.tokens import pad
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.pipeline.plan import make_plan
from sparse_adapt.pipeline.run import run
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.plugins.research.stages import dense as anchors
from sparse_adapt.plugins.research.stages.masked import SHOWN
from sparse_adapt.plugins.research.stages.pair_losses import Projection, related
from sparse_adapt.plugins.research.stages.pairs import Contrast, Joint, PairBatch, Pairing
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.stages.warmup import Warmup
from sparse_adapt.terms.mining import Term, write_terms
from sparse_adapt.training import losses
from sparse_adapt.training.loop import StepProgress, random_at, train

TERMS = [Term("zorvex", "jargon"), Term("kubectl", "jargon")]
DOCUMENTS = {
    "d0": "A zorvex report compares what a team spent, zorvex by zorvex.",
    "d1": "kubectl logs show what the agent saw of zorvex.",
    "d2": "A nightly backup copies the database to a second server.",
    "d3": "The client refuses a certificate that the server sends.",
    "copy": "a nightly  backup copies the database to a second server.",
}
PAIRS = [
    Pair("zorvex reports of a team", "d0"),
    Pair("what the agent saw", "d1"),
    Pair("the kubectl log", "d1"),
    Pair("copies of the database", "d2"),
    Pair("Copies of the  database", "copy"),
    Pair("refused certificates", "d3"),
    Pair("what the agent saw", "d0"),
]
QUICK = {"device": "cpu", "steps": 4, "batch_size": 4, "checkpoint_every": 1, "learning_rate": 1e-3}
KINDS = ("sparse", "dense")


@pytest.fixture(params=KINDS)
def base(request: pytest.FixtureRequest, tiny_model: Path, tmp_path: Path) -> Path:
    """A tiny model of either kind."""
    return tiny_model if request.param == "sparse" else tiny_dense(tiny_model, tmp_path / "dense")


@pytest.fixture
def encoder(base: Path) -> Encoder:
    return extended(base)


@pytest.fixture
def files(base: Path, tmp_path: Path) -> Path:
    """A folder with an extended `model`, `corpus.jsonl`, `terms.json` and `pairs.jsonl`."""
    folder = tmp_path / "files"
    folder.mkdir()
    write_documents(folder / "corpus.jsonl", [Document(name, text, "") for name, text in DOCUMENTS.items()])
    write_pairs(folder / "pairs.jsonl", PAIRS)
    write_terms(folder / "terms.json", TERMS)
    carry_out_stage("extend", str(base), {"terms": folder / "terms.json"}, Place(folder / "model"))
    return folder


def extended(base: Path) -> Encoder:
    encoder = load_encoder(base)
    extend(encoder, TERMS)
    return encoder


def joint(encoder: Encoder, pairs: list[Pair] | None = None, **given: object) -> Pairing:
    settings = Joint.model_validate({**QUICK, **given})
    return Pairing("joint", encoder, pairs or PAIRS, DOCUMENTS, settings)


def contrast(encoder: Encoder, pairs: list[Pair] | None = None, **given: object) -> Pairing:
    settings = Contrast.model_validate({**QUICK, **given})
    return Pairing("contrast", encoder, pairs or PAIRS, DOCUMENTS, settings)


def teach(
    files: Path,
    name: str,
    stage: str = "joint",
    *,
    resume: bool = False,
    progress: StepProgress | None = None,
    **given: object,
) -> Path:
    kind = Joint if stage == "joint" else Contrast
    settings = kind.model_validate({**QUICK, **given})
    place = Place(files / name, resume=resume)
    named = {"pairs": files / "pairs.jsonl", "corpus": files / "corpus.jsonl"}
    carry_out_stage(stage, str(files / "model"), named, place, settings, progress)
    return files / name


# -- what is masked --------------------------------------------------------------------------------


def test_new_words_alone_are_masked_at_their_rate(encoder):
    stage, hidden, seen = joint(encoder, mask_rate=0.3), 0, 0
    mask = encoder.tokenizer.mask_token_id
    for step in range(300):
        batch = stage.batch(random_at(0, step))
        for ids, labels in zip(batch.ids, batch.labels, strict=True):
            for token, label in zip(ids, labels, strict=True):
                assert (label != SHOWN) == (token == mask)
                assert label == SHOWN or label >= 200
                hidden += label != SHOWN
                seen += label != SHOWN or token >= 200
    assert hidden / seen == pytest.approx(0.3, abs=0.04)


def test_all_words_but_the_special_ones_are_masked_when_asked(encoder):
    stage, hidden, seen = joint(encoder, masked="all", mask_rate=0.3), 0, 0
    special = set(encoder.tokenizer.all_special_ids)
    for step in range(100):
        for labels in stage.batch(random_at(0, step)).labels:
            assert not special & set(labels)
            hidden += sum(label != SHOWN for label in labels)
            seen += len(labels) - 2
    assert hidden / seen == pytest.approx(0.3, abs=0.03)
    assert len(stage.vocabulary) == encoder.vocabulary_size == 202


def test_the_contrastive_stage_hides_nothing(encoder):
    stage = contrast(encoder)
    batch = stage.batch(random_at(0, 0))
    assert {label for labels in batch.labels for label in labels} == {SHOWN}
    assert "mlm" not in stage.terms(encoder, batch)


def test_both_branches_see_the_same_masked_texts(encoder):
    """Terms from the encoder's own steps on the batch as it is."""
    stage = joint(encoder, mask_rate=0.9)
    batch = stage.batch(random_at(0, 3))
    terms = stage.terms(encoder, batch)
    ids, mask = pad(batch.ids, encoder.tokenizer.pad_token_id)
    states = encoder.hidden(ids, mask)
    found = encoder.vectors(states, mask, ids)
    count = len(batch.own)
    expected = losses.infonce(found[:count] @ found[count:].T, batch.own, batch.relevant, stage.temperature)
    assert_close(terms["infonce"], expected, rtol=1e-4, atol=1e-5)
    labels = pad(batch.labels, SHOWN)[0]
    assert (labels >= 200).any()
    logits = (
        encoder.for_words(states[labels >= 200]) @ encoder.output_rows[200:].T + encoder.output_bias[200:]
    )
    masked = torch.nn.functional.cross_entropy(logits, labels[labels >= 200] - 200)
    assert_close(terms["mlm"], masked, rtol=1e-4, atol=1e-5)


def test_a_batch_without_a_new_word_has_nothing_masked_to_tell(encoder):
    stage = joint(encoder, [PAIRS[3], PAIRS[5]], mask_rate=0.9)
    batch = stage.batch(random_at(0, 0))
    terms = stage.terms(encoder, batch)
    assert terms["mlm"].item() == 0.0
    losses.total(terms, stage.weights).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in encoder.parameters())


# -- who is a negative -----------------------------------------------------------------------------


def batch_of(stage: Pairing) -> PairBatch:
    """All pairs at once."""
    stage.settings = stage.settings.model_copy(update={"batch_size": 99})
    return stage.batch(random_at(0, 0))


def test_documents_of_a_query_and_copies_are_no_negatives(encoder):
    batch = batch_of(contrast(encoder))
    # columns as the pairs name them first: d0, d1, d2 (and its copy), d3
    assert batch.own.tolist() == [0, 1, 1, 2, 2, 3, 0]
    assert batch.relevant.int().tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],  # what the agent saw: d1 and d0
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [1, 1, 0, 0],
    ]
    assert len(batch.ids) == 7 + 4


def test_texts_that_belong_together_are_no_negatives_either_way(encoder):
    stage = contrast(encoder, form="nt-xent")
    batch = batch_of(stage)
    marks = related(batch.relevant)
    assert torch.equal(marks, marks.T)
    assert marks.diagonal().all()
    queries, documents = marks[:7, :7].int().tolist(), marks[7:, 7:].int().tolist()
    assert queries[0] == [1, 1, 0, 0, 0, 0, 1]  # d0, which 1 and 6 find too
    assert queries[3] == [0, 0, 0, 1, 1, 0, 0]  # the same words, each with a copy of d2
    assert documents == [
        [1, 1, 0, 0],
        [1, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]  # "what the agent saw" finds both


def test_nt_xent_goes_both_ways_behind_a_projection_of_dense_vectors(encoder):
    """The loss from vectors, one text at a time."""
    stage = contrast(encoder, form="nt-xent")
    dense = "masked_lm" not in dict(encoder.named_children())
    assert isinstance(stage.beside, Projection) == dense
    assert stage.temperature == (0.1 if dense else 3.0)
    batch = batch_of(stage)
    ids, mask = pad(batch.ids, encoder.tokenizer.pad_token_id)
    with torch.no_grad():
        found = stage._projected(encoder.vectors(encoder.hidden(ids, mask), mask, ids))
        value = stage.terms(encoder, batch)["infonce"].item()
    if dense:
        assert_close(found.norm(dim=1), torch.ones(len(found)))
    alike, marks, costs = found @ found.T / stage.temperature, related(batch.relevant), []
    for query, own in enumerate(batch.own.tolist()):
        for anchor, partner in ((query, 7 + own), (7 + own, query)):
            others = [text for text in range(len(found)) if text == partner or not marks[anchor, text]]
            costs.append((alike[anchor, others].logsumexp(0) - alike[anchor, partner]).item())
    assert value == pytest.approx(np.mean(costs), rel=1e-4)


def test_nt_xent_of_one_pair_trains_all_the_same(encoder, tmp_path):
    stage = contrast(encoder, PAIRS[:1], form="nt-xent")
    assert stage.terms(encoder, stage.batch(random_at(0, 0)))["infonce"].item() == 0.0
    assert len(train(encoder, stage, tmp_path)) == 4
    assert all(parameter.isfinite().all() for parameter in encoder.parameters())


@pytest.mark.parametrize("base", ["dense"], indirect=True)
def test_a_projection_learns_and_stays_behind(files):
    encoder = load_encoder(files / "model")
    stage = contrast(encoder, projection=True, batch_size=7)
    before = [parameter.detach().clone() for parameter in stage.beside.parameters()]
    (files / "state").mkdir()
    train(encoder, stage, files / "state")
    after = list(stage.beside.parameters())
    assert all(not torch.equal(*each) for each in zip(before, after, strict=True))
    assert contrast(encoder).weights == stage.weights
    folder = teach(files, "taught", "contrast", projection=True)
    assert (
        load_file(folder / "model.safetensors").keys()
        == load_file(files / "model" / "model.safetensors").keys()
    )


@pytest.mark.parametrize("base", ["sparse"], indirect=True)
def test_a_sparse_encoder_takes_no_projection(files):
    with pytest.raises(ConfigError, match="projection = true is for dense encoders"):
        teach(files, "taught", "contrast", projection=True)
    assert not list(files.glob("taught*"))


def test_one_pair_has_no_negatives_and_trains_all_the_same(encoder, tmp_path):
    stage = contrast(encoder, PAIRS[:1])
    assert stage.terms(encoder, stage.batch(random_at(0, 0)))["infonce"].item() == 0.0
    assert len(train(encoder, stage, tmp_path)) == 4
    assert all(parameter.isfinite().all() for parameter in encoder.parameters())


def test_mined_negatives_are_neither_relevant_nor_as_good_as_the_own_document(encoder):
    stage = contrast(encoder, hard_negatives=2, depth=3, below=0.999)
    assert any(stage.hard)
    for pair, rows in enumerate(stage.hard):
        assert not set(rows) & stage.relevant[pair]
        assert len(rows) <= 3
        assert 4 not in rows  # a copy of d2
    batch = stage.batch(random_at(0, 0))
    alone = contrast(encoder).batch(random_at(0, 0))
    assert len(batch.ids) > len(alone.ids)
    assert stage.terms(encoder, batch)["infonce"] > 0.0


def test_negatives_are_mined_as_a_match_counts(tiny_model):
    encoder = extended(tiny_model)
    plain = contrast(encoder, hard_negatives=4, depth=4, below=0.999)
    counted = np.zeros(encoder.vocabulary_size, np.float32)
    counted[encoder.tokenize(["database"])[0]] = 1.0
    encoder.token_scales = counted
    stage = contrast(encoder, hard_negatives=4, depth=4, below=0.999)
    with torch.no_grad():
        queries, documents = (
            encoder.weights(ids)[:, counted > 0] for ids in (stage.queries, stage.documents)
        )
    scores = queries @ documents.T
    for pair, rows in enumerate(stage.hard):
        assert rows == sorted(rows, key=lambda row: -scores[pair, row])
        assert all(scores[pair, row] < 0.999 * scores[pair, stage.own[pair]] for row in rows)
    assert stage.hard != plain.hard


def test_long_texts_are_cut_and_keep_their_end(encoder):
    stage = joint(encoder, longest=8)
    assert all(len(ids) <= 8 and ids[-1] == 3 for ids in [*stage.queries, *stage.documents])


# -- what is learnt --------------------------------------------------------------------------------


def test_the_terms_of_each_kind(encoder):
    keys = {"infonce", "mlm", *(("sparsity",) if "masked_lm" in dict(encoder.named_children()) else ())}
    stage = joint(encoder)
    assert stage.weights.keys() == keys
    assert stage.weights["mlm"] == 0.3
    assert stage.terms(encoder, stage.batch(random_at(0, 0))).keys() == keys


def test_the_terms_fall_on_the_same_texts(encoder, tmp_path):
    given = {"steps": 60, "batch_size": 7, "learning_rate": 3e-3, "new_learning_rate": 3e-3}
    stage = joint(encoder, masked="all", mask_rate=0.3, weights={"mlm": 1.0}, **given)

    @torch.no_grad()
    def measured() -> dict[str, float]:
        found = [stage.terms(encoder, stage.batch(random_at(1, step))) for step in range(8)]
        return {key: float(np.mean([each[key] for each in found])) for key in ("infonce", "mlm")}

    before = measured()
    train(encoder, stage, tmp_path)
    for key, value in measured().items():
        assert value < 0.8 * before[key], key


def test_a_masked_word_teaches_the_rows_of_new_tokens_alone_when_asked(encoder, tmp_path):
    before = {name: value.detach().clone() for name, value in encoder.named_parameters()}
    train(encoder, joint(encoder, train="new", mask_rate=0.5), tmp_path)
    for name, value in encoder.named_parameters():
        old = slice(0, 200) if value.shape[:1] == (202,) else slice(None)
        assert torch.equal(value[old], before[name][old]), name
    assert not torch.equal(encoder.input_rows, before[next(n for n in before if "word_emb" in n)])


LEARNT = {"token_scales": "learnt", "token_scale_rate": 1e-2}


def test_learnt_scales_count_a_match_and_stay_with_the_model(tiny_model, tmp_path):
    encoder = extended(tiny_model)
    stage = contrast(encoder, **LEARNT)
    assert stage.token_scales is not None
    begun = stage.token_scales.values
    batch = stage.batch(random_at(0, 0))
    with torch.no_grad():
        counted = encoder.weights(batch.ids) * torch.from_numpy(begun)
        scores = counted[: len(batch.own)] @ counted[len(batch.own) :].T
        wanted = losses.infonce(scores, batch.own, batch.relevant, stage.temperature)
        assert float(stage.terms(encoder, batch)["infonce"]) == pytest.approx(float(wanted), rel=1e-5)
    train(encoder, stage, tmp_path)
    stage.conclude(encoder)
    learnt = encoder.token_scales_of()
    assert (learnt >= 0).all()  # a token of every document tells nothing
    assert not np.allclose(learnt, begun, rtol=1e-3)
    held = contrast(encoder)  # an encoder that has token scales is taught as it is searched, and keeps them
    assert held.token_scales is not None
    assert [parameter.requires_grad for parameter in held.beside.parameters()] == [False]
    assert np.allclose(held.token_scales.values, learnt)


def test_scales_by_idf_are_held(tiny_model):
    encoder = extended(tiny_model)
    stage = contrast(encoder, token_scales="idf")
    assert stage.token_scales is not None
    assert [parameter.requires_grad for parameter in stage.beside.parameters()] == [False]
    assert np.allclose(stage.token_scales.values, contrast(encoder, **LEARNT).token_scales.values)


@pytest.mark.parametrize("base", ["dense"], indirect=True)
def test_a_dense_encoder_counts_each_token_in_its_mean_by_idf(encoder, files):
    plain = encoder.encode([DOCUMENTS["d0"]])
    stage = contrast(encoder, token_scales="idf", weights={"anchor": 1.0})
    counted = encoder.token_scales_of()
    special, zorvex = encoder.tokenizer.cls_token_id, encoder.new_tokens[0].token_id
    background = stage.background.share(encoder.vocabulary_size)
    assert background[special] == 1.0 and background[zorvex] == 0.0
    assert counted[special] == np.float32(0.25)  # of every text
    n = (1 - 0.25) * 2  # of five documents two say it
    assert counted[zorvex] == pytest.approx(0.25 + 0.75 * np.log(6 / (n + 1)) / np.log(6))
    assert not np.allclose(encoder.encode([DOCUMENTS["d0"]]), plain)
    # the model before counts so, too
    assert background_distance(encoder, stage) == pytest.approx(0.0, abs=1e-6)
    assert contrast(encoder, token_scales="idf").token_scales is None  # which stays as it is
    assert np.array_equal(encoder.token_scales_of(), counted)
    made = load_encoder(teach(files, "weighed", "contrast", token_scales="idf"))
    assert made.token_scales[special] == np.float32(0.25)


def test_a_dense_encoder_learns_no_scales_and_has_none_without_a_mean(tiny_model, tmp_path):
    dense = extended(tiny_dense(tiny_model, tmp_path / "dense"))
    with pytest.raises(ConfigError, match='"learnt" is for sparse encoders; a dense one takes "idf"'):
        contrast(dense, **LEARNT)
    first = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    dense = extended(tiny_dense(tiny_model, tmp_path / "first", **first))
    with pytest.raises(ConfigError, match="contrast: this model's vectors are no means"):
        contrast(dense, token_scales="idf")


def background_distance(encoder: Encoder, stage: Pairing) -> float:
    with torch.no_grad():
        return float(stage.background.distance(encoder, stage.background.draw(random_at(9, 9))))


def test_background_texts_stay_nearer_where_they_are_anchored(encoder, tmp_path):
    """The same training example with and without the anchor; what an extension didn't touch begins where it was."""
    start = deepcopy(encoder)
    given = {"steps": 30, "learning_rate": 3e-3, "new_learning_rate": 3e-3}
    anchored = contrast(encoder, weights={"anchor": 10.0}, **given)
    assert anchored.weights["anchor"] == 10.0
    assert background_distance(start, anchored) == pytest.approx(0.0, abs=1e-6)
    train(encoder, anchored, tmp_path / "anchored")
    free = contrast(start, **given)
    assert "anchor" not in free.weights
    train(start, free, tmp_path / "free")
    assert 0.0 < background_distance(encoder, anchored) < 0.5 * background_distance(start, anchored)


def test_the_anchor_holds_what_was_before_the_extension(files, base, monkeypatch):
    """The stages between may have moved background texts: the first of them is asked what the base model says."""
    seen, made = [], anchors.background_for

    def watched(encoder: Encoder, before: Encoder, seed: int) -> object:
        seen.append(before)
        return made(encoder, before, seed)

    monkeypatch.setattr(anchors, "background_for", watched)
    teach(files, "taught", "contrast")
    teach(files, "anchored", "contrast", weights={"anchor": 1.0, "infonce": 1.0})
    assert [before.vocabulary_size for before in seen] == [load_encoder(base).vocabulary_size]


# -- as steps of a run -----------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["joint", "contrast"])
def test_a_step_leaves_a_model_of_the_same_kind(files, stage):
    folder = teach(files, stage, stage)
    made, before = load_encoder(folder), load_encoder(files / "model")
    assert type(made) is type(before)
    assert made.new_tokens == before.new_tokens
    assert not torch.equal(made.input_rows, before.input_rows)
    record = json.loads((folder / "stage.json").read_text())
    assert (record["stage"], record["steps"]) == (stage, 4)
    assert record["files"].keys() == {"pairs", "corpus"}


BOTH_WAYS = {"form": "nt-xent"}  # of dense encoders with a projection, which a resumed stage needs


@pytest.mark.parametrize(
    "stage, more",
    [
        pytest.param("joint", {"token_scales": "idf"}, marks=pytest.mark.nightly),
        ("contrast", BOTH_WAYS),
    ],
)
def test_a_killed_stage_resumes_to_the_same_bits(files, stage, more):
    torch.set_num_threads(1)
    given = {"hard_negatives": 1, "below": 0.999, "weights": {"anchor": 1.0}, **more}
    whole = teach(files, "whole", stage, **given)
    ended = forked(lambda: teach(files, "killed", stage, progress=dying_at(3), **given))
    assert ended.status == -signal.SIGKILL, ended.messages
    assert (files / "killed.partial" / "state.safetensors").is_file()
    killed = teach(files, "killed", stage, resume=True, **given)
    timed = {"stage.json", "sparse-adapt.json"}  # how long it took, and the checksum of that
    names = [path.name for path in whole.iterdir() if path.is_file() and path.name not in timed]
    assert {"model.safetensors", "history.jsonl", "vocabulary.json"} <= set(names)
    for name in names:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name


MASKED = {"mask_rate": 0.5, "weights": {"anchor": 1.0}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "stage", "given"),
    [
        ("sparse", "joint", MASKED),
        pytest.param("sparse", "contrast", BOTH_WAYS, marks=pytest.mark.nightly),
        pytest.param("dense", "joint", MASKED, marks=pytest.mark.nightly),
        pytest.param("dense", "contrast", BOTH_WAYS, marks=pytest.mark.nightly),
    ],
    indirect=["base"],
)
def test_two_processes_train_as_one_does(files, stage, given):
    """Four pairs are seven or eight texts, so that one process may have more of them, or no masked word."""
    one = teach(files, "one", stage, **given)
    for ended in forked_by(2, lambda _: teach(files, "two", stage, **given)):
        assert ended.status == 0, ended.messages
    alone, together = (
        [json.loads(line) for line in (files / name / "history.jsonl").read_text().splitlines()]
        for name in ("one", "two")
    )
    assert len(alone) == len(together) == 4
    for first, second in zip(alone, together, strict=True):
        assert second == pytest.approx(first, rel=2e-4, abs=2e-5)
    weights = [load_file(folder / "model.safetensors") for folder in (one, files / "two")]
    for name, tensor in weights[0].items():
        assert_close(weights[1][name], tensor, rtol=1e-3, atol=1e-4)


def test_a_run_file_takes_the_stages_in_any_order(files, base):
    (files / "run.toml").write_text(
        f'model = "{base}"\ncorpus = "corpus.jsonl"\nstages = ["extend", "contrast", "joint"]\n'
        '[extend]\nterms = "terms.json"\n'
        '[joint]\npairs = "pairs.jsonl"\nmasked = "all"\nmask_rate = 0.3\nweights = { mlm = 0.5 }\n'
    )
    plan = read_plan(files / "run.toml", QUICK)
    assert plan.files["pairs"] == str(files / "pairs.jsonl")
    assert plan.settings["joint"].weights.mlm == 0.5
    done = run(plan, Place(files / "run"))
    assert [path.name for path in sorted((files / "run").iterdir()) if path.is_dir()] == [
        "1-extend",
        "2-contrast",
        "3-joint",
    ]
    assert [stage.get("steps") for stage in done.report["stages"]] == [None, 4, 4]
    again = run(read_plan(files / "run" / "run.toml"), Place(files / "again"))
    assert run(plan, Place(files / "run", resume=True)).model == done.model  # nothing left to do
    weights = [(each.model / "model.safetensors").read_bytes() for each in (done, again)]
    assert weights[0] == weights[1]


def test_a_corpus_folder_brings_its_pairs(files, base):
    plan = make_plan(str(files), model=str(base), stages=("joint",), overrides=QUICK)
    assert plan.files == {"pairs": str(files / "pairs.jsonl")}


# -- what is refused -------------------------------------------------------------------------------


def refused(text: str, files: Path) -> str:
    (files / "run.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_plan(files / "run.toml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("base", ["sparse"], indirect=True)
def test_bad_settings_are_named_with_their_line(files):
    head = 'corpus = "corpus.jsonl"\nstages = ["joint", "contrast"]\n'
    assert ":4: [joint] mask_rate " in refused(f"{head}[joint]\nmask_rate = 1.0\n", files)
    assert ":4: [joint] masked " in refused(f'{head}[joint]\nmasked = "some"\n', files)
    assert "unknown key 'mask_rate'" in refused(f"{head}[contrast]\nmask_rate = 0.1\n", files)
    assert "unknown key 'mlm'" in refused(f"{head}[contrast]\nweights = {{ mlm = 0.1 }}\n", files)
    assert "temperature" in refused(f"{head}[contrast]\ntemperature = 0.0\n", files)
    two = '[joint]\npairs = "pairs.jsonl"\n[contrast]\npairs = "other.jsonl"\n'
    assert "for an earlier stage; a run has one" in refused(head + two, files)
    alone = refused('stages = ["contrast"]\n[contrast]\npairs = "pairs.jsonl"\n', files)
    assert "the stage contrast needs a corpus" in alone
    (files / "pairs.jsonl").unlink()
    assert "the stage joint needs pairs" in refused('corpus = "."\nstages = ["joint"]\n', files)


def test_a_model_without_new_words_has_nothing_to_mask(base, files):
    settings = Joint.model_validate(QUICK)
    given = "joint", str(base), {"pairs": files / "pairs.jsonl", "corpus": files / "corpus.jsonl"}
    with pytest.raises(ConfigError, match="no new tokens to mask; extend it first"):
        carry_out_stage(*given, Place(files / "joint"), settings)
    assert not (files / "joint").exists()
    assert not (files / "joint.partial").exists()
    everything = settings.model_copy(update={"masked": "all"})
    carry_out_stage(*given, Place(files / "joint"), everything)


def test_a_pair_of_no_document_is_named_before_anything_is_written(files):
    write_pairs(files / "pairs.jsonl", [*PAIRS, Pair("more", "d9")])
    with pytest.raises(InputError, match=r'pairs\.jsonl:8: no document "d9"'):
        teach(files, "joint")
    assert not list(files.glob("joint*"))


@pytest.mark.parametrize("base", ["dense"], indirect=True)
def test_stages_of_sparse_models_refuse_a_dense_one(files):
    settings = Warmup.model_validate({**QUICK})
    with pytest.raises(ModelError, match="is a dense model, where a SPLADE model is needed"):
        named = {"corpus": files / "corpus.jsonl"}
        carry_out_stage("warmup", str(files / "model"), named, Place(files / "warmup"), settings)
    assert not list(files.glob("warmup*"))
