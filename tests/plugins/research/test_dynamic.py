"""Dynamic masking: which words are candidates, how hard each is, which are hidden, and what a kill leaves."""

import json
import signal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from dense_models import tiny_dense
from families import build
from forking import dying_at, forked, forked_by
from torch.testing import assert_close

from sparse_adapt.collection.examples import Pair, write_pairs
from sparse_adapt.collection.readers import Document, write_documents
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.model.encoder import Encoder
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.pipeline.run import run
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.plugins.research.stages.dynamic import Dynamic, HardestWords
from sparse_adapt.plugins.research.stages.masked import SHOWN
from sparse_adapt.plugins.research.stages.sentences import Sentences
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.terms.mining import Term, write_terms
from sparse_adapt.training.loop import StepProgress, random_at, train

TERMS = [Term("zorvex", "jargon"), Term("kubectl", "jargon")]
TEXTS = [
    "A zorvex report compares what a team spent, zorvex by zorvex. The team of the server plans the quibble.",
    "kubectl logs show what the agent saw of zorvex in the long list of the server.",
    "A nightly backup copies the database to a second server. 12 34 5.",
    "The client refuses a certificate that the server sends. The client refuses a certificate that the server sends.",
    "",
]
QUICK = {"device": "cpu", "steps": 4, "batch_size": 3, "checkpoint_every": 1, "learning_rate": 1e-3}
KINDS = ("sparse", "dense")
WORDS = ("zorvex", "quibble", "agent")


@pytest.fixture(params=KINDS)
def base(request: pytest.FixtureRequest, tiny_model: Path, tmp_path: Path) -> Path:
    """A tiny model of either kind."""
    return tiny_model if request.param == "sparse" else tiny_dense(tiny_model, tmp_path / "dense")


@pytest.fixture
def encoder(base: Path) -> Encoder:
    loaded = load_encoder(base)
    extend(loaded, TERMS)
    return loaded


@pytest.fixture
def files(base: Path, tmp_path: Path) -> Path:
    """A folder with an extended `model`, `corpus.jsonl`, `terms.json` and `pairs.jsonl`."""
    folder = tmp_path / "files"
    folder.mkdir()
    write_documents(folder / "corpus.jsonl", [Document(f"d{n}", text) for n, text in enumerate(TEXTS)])
    write_pairs(folder / "pairs.jsonl", [Pair("zorvex reports", "d0"), Pair("a nightly copy", "d2")])
    write_terms(folder / "terms.json", TERMS)
    carry_out_stage("extend", str(base), {"terms": folder / "terms.json"}, Place(folder / "model"))
    return folder


def dynamic(encoder: Encoder, texts: list[str] | None = None, **given: object) -> HardestWords:
    return HardestWords(encoder, texts or TEXTS, Dynamic.model_validate({**QUICK, **given}))


def teach(
    files: Path, name: str, *, resume: bool = False, progress: StepProgress | None = None, **given: object
) -> Path:
    settings = Dynamic.model_validate({**QUICK, **given})
    place = Place(files / name, resume=resume)
    carry_out_stage(
        "dynamic", str(files / "model"), {"corpus": files / "corpus.jsonl"}, place, settings, progress
    )
    return files / name


def words_of(encoder: Encoder, sentences: Sentences) -> list[list[str]]:
    return [
        [encoder.tokenizer.decode([ids[place] for place in word]).replace(" ", "") for word in words]
        for ids, words, *_ in sentences.usable
    ]


# -- candidates ------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["sparse"], indirect=True)
def test_the_domains_words_come_first_and_whole(encoder):
    sentences = Sentences(encoder, TEXTS, longest=64, candidates=5)
    found = words_of(encoder, sentences)
    assert found[0][0] == "zorvex"
    assert found[0].count("zorvex") == 1  # said three times, masked where it stands first
    assert found[2][:2] == ["zorvex", "kubectl"]  # what one sentence alone says comes last of its kind
    assert "quibble" in found[1]  # several pieces, one word
    words = sentences.usable[1].words
    quibble = words[found[1].index("quibble")]
    assert len(quibble) > 1
    assert list(quibble) == list(range(quibble[0], quibble[-1] + 1))
    assert all(len(words) <= 5 for words in found)
    assert not {"the", "server", "a"} & {word for words in found for word in words}  # in many sentences
    assert "team" in found[1]  # in two, before those that are said once
    assert found[1].index("team") < found[1].index("quibble")
    assert len(found) == 5
    assert (sentences.skipped, sentences.repeated) == (1, 1)  # "12 34 5.", and the certificate again


@pytest.mark.parametrize("base", ["sparse"], indirect=True)
def test_a_sentence_with_fewer_words_has_what_it_has_and_keeps_half(encoder):
    sentences = Sentences(encoder, ["zorvex.", "zorvex kubectl the agent"], longest=64, candidates=5)
    assert [sentence.sizes for sentence in sentences.usable] == [(1,), (4,)]
    assert [most for *_, most in sentences.usable] == [(1,), (2,)]  # of two words with the full stop, of four
    stage = dynamic(encoder, ["zorvex kubectl the agent", "zorvex."], batch_size=2, candidates=2)
    hidden = [{label for label in labels if label != SHOWN} for labels in stage.batch(random_at(0, 0)).labels]
    assert sorted(map(len, hidden)) == [1, 2]


def test_a_long_sentence_goes_in_parts_that_the_model_takes(encoder):
    long = " ".join(["zorvex agent saw the list of a server"] * 30)
    sentences = Sentences(encoder, [long], longest=16, candidates=5)
    assert all(len(ids) <= 16 for ids, *_ in sentences.usable)
    assert sentences.usable
    assert max(place for _, words, *_ in sentences.usable for word in words for place in word) < 15


# -- importances -----------------------------------------------------------------------------------


def test_an_importance_is_the_loss_on_a_words_pieces_masked_together(encoder):
    stage = dynamic(encoder, softmax="full", context=99)
    found = stage.importances(stage.sentences.usable)
    assert found.shape == (5, 5)
    for row, (ids, words, *_) in enumerate(stage.sentences.usable):
        for number, word in enumerate(words):
            masked = [stage.mask_id if place in word else token for place, token in enumerate(ids)]
            with torch.no_grad():
                states = encoder.hidden(torch.tensor([masked]), torch.ones(1, len(ids), dtype=torch.long))[0]
                logits = encoder.for_words(states) @ encoder.output_rows.T + encoder.output_bias
            costs = -logits.log_softmax(dim=1)[list(word), [ids[place] for place in word]]
            assert_close(found[row, number], costs.sum(), atol=1e-4, rtol=1e-4)
        assert (found[row, len(words) :] == 0).all()


def test_an_importance_is_told_from_the_tokens_around_a_word(encoder):
    stage = dynamic(encoder, context=4)
    for ids, words, *_ in stage.sentences.usable:
        for word in words:
            masked, labels = stage._copy(ids, word)
            assert len(masked) == len(labels) <= 2 + max(4, len(word))
            assert [masked[0], masked[-1]] == [2, 3]
            assert [label for label in labels if label != SHOWN] == [ids[place] for place in word]
            assert masked.count(stage.mask_id) == len(word)


def test_the_hardest_words_are_masked_and_others_at_random(encoder):
    hard, any_of = dynamic(encoder, hardest=2), dynamic(encoder, hardest=2, masking="random")
    for step in range(12):
        batches = [stage.batch(random_at(0, step)) for stage in (hard, any_of)]
        assert [len(ids) for ids in batches[0].ids] == [len(ids) for ids in batches[1].ids]
    assert torch.equal(hard.pool.rows, any_of.pool.rows)  # the same sentences, so that the masks alone differ
    assert (any_of.pool.importances == 0).all()
    assert any_of.choosing_seconds == 0.0 < hard.choosing_seconds
    importances = hard.pool.importances.numpy()
    for place, row in enumerate(hard.pool.rows.tolist()):
        sentence = hard.sentences.usable[row]
        chosen = hard._chosen(sentence, importances[place], random_at(0, 0))
        ranked = importances[place][: len(sentence.words)]
        assert sorted(chosen) == sorted(np.argsort(-ranked, kind="stable")[: len(chosen)].tolist())
        assert len(chosen) == min(2, *sentence.most, len(sentence.words))
    sentence = max(any_of.sentences.usable, key=lambda each: len(each.words))
    drawn = {tuple(any_of._chosen(sentence, importances[0], random_at(0, step))) for step in range(40)}
    assert len(drawn) > 3


def test_importances_are_told_anew_when_their_time_is_over(encoder):
    stage = dynamic(encoder, refresh=3, visits=1)
    seen = []
    for step in range(7):
        stage.batch(random_at(0, step))
        seen.append(stage.pool.importances.clone())
        with torch.no_grad():
            encoder.input_rows.add_(0.05 * torch.randn_like(encoder.input_rows))
    same = [torch.equal(first, second) for first, second in pairwise(seen)]
    assert same == [True, True, False, True, True, False]


# -- learning --------------------------------------------------------------------------------------


def test_the_terms_of_each_kind(encoder):
    keys = {"mlm", *(("sparsity",) if "masked_lm" in dict(encoder.named_children()) else ())}
    stage = dynamic(encoder)
    assert stage.weights.keys() == keys == stage.terms(encoder, stage.batch(random_at(0, 0))).keys()


def test_the_words_are_learnt(encoder, tmp_path):
    stage = dynamic(encoder, steps=60, batch_size=5, learning_rate=3e-3, new_learning_rate=3e-3)
    history = train(encoder, stage, tmp_path)
    first, last = (np.mean([row["mlm"] for row in rows]) for rows in (history[:5], history[-5:]))
    assert last < 0.7 * first


@pytest.mark.parametrize("train_what", ["biases", "attention", "new", "all"])
def test_only_what_is_chosen_moves(encoder, tmp_path, train_what):
    before = {name: value.detach().clone() for name, value in encoder.named_parameters()}
    old = encoder.old_size
    train(encoder, dynamic(encoder, train=train_what, hardest=1), tmp_path)
    moved = set()
    for name, value in encoder.named_parameters():
        known = slice(0, old) if value.shape[:1] == (encoder.vocabulary_size,) else slice(None)
        if not torch.equal(value[known], before[name][known]):
            moved.add(name)
    expected = {
        "new": lambda name: False,
        "all": lambda name: True,
        "biases": lambda name: name.endswith(".bias"),
        "attention": lambda name: ".attention." in name,
    }[train_what]
    assert all(map(expected, moved)), moved
    assert bool(moved) == (train_what != "new")
    rows = next(name for name, value in encoder.named_parameters() if value is encoder.input_rows)
    assert not torch.equal(encoder.input_rows[old:], before[rows][old:])  # new rows learn always


@pytest.mark.parametrize("family", ["roberta", "modernbert-no-bias", "xlm-roberta", "deberta-v2-narrow"])
def test_words_of_every_family_are_whole_and_learnt(family, tmp_path):
    encoder = load_encoder(build(tmp_path / "model", family))
    extend(encoder, TERMS)
    stage = dynamic(encoder, batch_size=5)
    words = {word for words in words_of(encoder, stage.sentences) for word in words}
    assert {"zorvex", "kubectl", "quibble"} <= words
    assert len(train(encoder, stage, tmp_path)) == 4


def test_a_step_leaves_a_model_and_says_what_it_left_out(files):
    folder = teach(files, "taught")
    record = json.loads((folder / "stage.json").read_text())
    assert (record["stage"], record["steps"]) == ("dynamic", 4)
    assert (record["sentences"], record["sentences_without_words"], record["sentences_repeated"]) == (5, 1, 1)
    assert 0.0 <= record["choosing_seconds"] <= record["seconds"] + 0.1
    assert not (folder / "state.safetensors").exists()
    assert load_encoder(folder).new_tokens == load_encoder(files / "model").new_tokens


def test_a_run_file_goes_from_words_to_pairs(files, base):
    (files / "run.toml").write_text(
        f'model = "{base}"\ncorpus = "corpus.jsonl"\nstages = ["extend", "dynamic", "contrast"]\n'
        '[extend]\nterms = "terms.json"\n[dynamic]\nmasking = "random"\ntrain = "biases"\n'
        '[contrast]\npairs = "pairs.jsonl"\nform = "nt-xent"\n'
    )
    given = {key: value for key, value in QUICK.items() if key != "batch_size"}
    done = run(read_plan(files / "run.toml", given), Place(files / "run"))
    assert [stage.get("steps") for stage in done.report["stages"]] == [None, 4, 4]
    again = run(read_plan(files / "run" / "run.toml"), Place(files / "again"))
    weights = [(each.model / "model.safetensors").read_bytes() for each in (done, again)]
    assert weights[0] == weights[1]


def test_a_killed_stage_resumes_to_the_same_bits_with_the_importances_it_had(files):
    torch.set_num_threads(1)
    given = {"steps": 8, "refresh": 3, "visits": 3, "learning_rate": 3e-2, "new_learning_rate": 3e-2}
    whole = teach(files, "whole", **given)
    ended = forked(lambda: teach(files, "killed", progress=dying_at(5), **given))
    assert ended.status == -signal.SIGKILL, ended.messages
    assert (files / "killed.partial" / "state.safetensors").is_file()
    killed = teach(files, "killed", resume=True, **given)
    for name in ("model.safetensors", "history.jsonl", "vocabulary.json"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.nightly
def test_two_processes_train_as_one_does(files):
    one = teach(files, "one")
    for ended in forked_by(2, lambda _: teach(files, "two")):
        assert ended.status == 0, ended.messages
    alone, together = (
        [json.loads(line) for line in (files / name / "history.jsonl").read_text().splitlines()]
        for name in ("one", "two")
    )
    assert len(alone) == len(together) == 4
    for first, second in zip(alone, together, strict=True):
        assert second == pytest.approx(first, rel=2e-4, abs=2e-5)
    assert one.is_dir()


# -- what is refused -------------------------------------------------------------------------------


def refused(files: Path, texts: list[str], **given: object) -> str:
    write_documents(files / "corpus.jsonl", [Document(f"d{n}", text) for n, text in enumerate(texts)])
    with pytest.raises(ConfigError) as caught:
        teach(files, "taught", **given)
    assert "\n" not in str(caught.value)
    assert not list(files.glob("taught*"))
    return str(caught.value)


def test_a_corpus_without_new_terms_or_words_is_refused(files):
    said = refused(files, ["The agent saw the long list."])
    assert "none of the 1 sentences holds any of the 2 new terms; teach on a corpus" in said
    said = refused(files, ["12 34.", "", "5 + 5."])
    assert "none of the 2 sentences of the corpus holds a word to mask" in said


def test_a_tokenizer_without_a_mask_is_refused(encoder):
    encoder.tokenizer.mask_token = None
    with pytest.raises(ConfigError, match="dynamic: this model's tokenizer has no token that masks"):
        dynamic(encoder)


def test_a_model_without_new_words_learns_rare_ones(base):
    stage = dynamic(load_encoder(base))
    assert stage.sentences.usable
    assert not stage.sentences.new


def test_bad_settings_are_named_with_their_line(files):
    head = 'corpus = "corpus.jsonl"\nmodel = "model"\nstages = ["dynamic"]\n[dynamic]\n'
    for line, said in (
        ("candidates = 0", "candidates "),
        ('masking = "hard"', "masking "),
        ('train = "bias"', "train "),
        ("refreshed = 3", "did you mean 'refresh'"),
    ):
        (files / "run.toml").write_text(f"{head}{line}\n")
        with pytest.raises(ConfigError, match=rf":5: \[dynamic\] .*{said}"):
            read_plan(files / "run.toml")


def test_the_sum_is_the_mean_times_the_masked_pieces(encoder):
    mean, whole = dynamic(encoder), dynamic(encoder, summed=True)
    batch = mean.batch(random_at(0, 0))
    count = sum(label != SHOWN for text in batch.labels for label in text)
    with torch.no_grad():
        found = [float(stage.terms(encoder, batch)["mlm"]) for stage in (mean, whole)]
    assert found[1] == pytest.approx(count * found[0], rel=1e-5)


def test_the_published_recipe_weighs_whole_texts_anew_for_each_batch(encoder):
    asked = settings_for("dynamic", "zhang", {"batch_size": 2})
    assert asked.context >= asked.longest
    task = HardestWords(encoder, TEXTS, asked)
    assert task.vocabulary == list(range(encoder.vocabulary_size))
    random, told = np.random.default_rng(0), []
    for _ in range(3):
        told.append(len(task.batch(random).ids))
        assert int(task.pool.left) == 0  # the next batch has importances of its own
        assert len(task.pool.rows) == 2
    assert told == [2, 2, 2]


def test_as_published_candidates_are_drawn_anew_from_all_words(encoder):
    published = settings_for("dynamic", "zhang", {"batch_size": 5})
    assert (published.among, published.candidates, published.easing) == ("all", 5, False)
    task = HardestWords(encoder, TEXTS, published)
    whole = Sentences(encoder, TEXTS, longest=128, candidates=0, together=2, every_word=True).usable
    assert [sentence.words for sentence in task.sentences.usable] == [sentence.words for sentence in whole]
    seen = set()
    for time in range(30):
        task.pool.rows.copy_(torch.arange(len(whole))[: len(task.pool.rows)])
        for row, sentence in enumerate(task._considered(time)):
            assert set(sentence.words) <= set(whole[row].words)
            assert list(sentence.words) == sorted(sentence.words)
            assert sentence.sizes == tuple(min(5, size) for size in whole[row].sizes)
            seen |= {(row, word) for word in sentence.words}
    rows = range(len(task.pool.rows))
    assert seen == {(row, word) for row in rows for word in whole[row].words}  # common words and signs too
    assert task._considered(3) == task._considered(3)


def test_importances_are_those_of_the_words_that_were_drawn(encoder):
    """A batch masks candidates that were weighed, though another part of the stage draws them again."""
    task = HardestWords(
        encoder, TEXTS, settings_for("dynamic", "zhang", {"batch_size": 2, "refresh": 2, "candidates": 2})
    )
    random, weighed = np.random.default_rng(0), []
    measured = task.importances
    task.importances = lambda sentences: weighed.append(list(sentences)) or measured(sentences)
    for number in range(4):
        task.batch(random)
        assert task._considered(number // 2) == weighed[-1]
    assert len(weighed) == 2


@pytest.mark.parametrize("base", ["sparse"], indirect=True)
def test_a_word_of_one_sentence_may_come_before_more_common_ones(encoder):
    texts = ["The agent saw a quibble of zorvex.", "An agent of the client."]
    orders = {}
    for single_last in (False, True):
        sentences = Sentences(encoder, texts, longest=64, candidates=9, single_last=single_last)
        orders[single_last] = [word for word in words_of(encoder, sentences)[0] if word in WORDS]
    assert orders == {False: ["zorvex", "quibble", "agent"], True: ["zorvex", "agent", "quibble"]}


def test_each_sentence_of_a_pair_has_candidates_and_masked_words_of_its_own(encoder):
    long, short = "Zorvex reports compare the spending of teams by month. ", "Kubectl logs the agent. "
    sentences = Sentences(encoder, [long + short], longest=64, candidates=5, together=2).usable
    assert [sentence.sizes for sentence in sentences] == [(5, 4)]  # the article is said by both
    between = sentences[0].token_ids.index(encoder.tokenizer.sep_token_id)
    assert [word[0] < between for word in sentences[0].words] == 5 * [True] + 4 * [False]
    for masking in ("dynamic", "random"):
        stage = dynamic(encoder, [long + short], together=2, masking=masking, batch_size=1)
        (labels,) = stage.batch(random_at(0, 0)).labels
        hidden = [sum(any(labels[p] != SHOWN for p in word) for word in part) for part in halves(stage)]
        assert hidden == [3, 2]  # N of the first; of the second, of five words and signs, half


def halves(stage: HardestWords) -> list[list[tuple[int, ...]]]:
    """The candidates of each sentence of the only text."""
    (sentence,) = stage.sentences.usable
    return [[sentence.words[word] for word in words] for words, _ in sentence.by_sentence()]


def test_fewer_words_are_masked_the_longer_it_learns(encoder):
    stage = dynamic(encoder, easing=True, steps=9, hardest=3)
    counts = []
    for step in range(9):
        stage.batch(random_at(0, step))
        counts.append(stage.hardest)
    assert (counts[0], counts[4], counts[-1]) == (3, 2, 1)
    assert counts == sorted(counts, reverse=True)
    assert dynamic(encoder, hardest=3).hardest == 3


def test_neighbouring_sentences_are_read_as_one_text(encoder):
    texts = ["Zorvex is a plan. The agent sends a log. Kubectl is a tool."]
    pairs = Sentences(encoder, texts, longest=64, candidates=9, together=2)
    separator = encoder.tokenizer.sep_token_id
    assert [sentence.token_ids.count(separator) for sentence in pairs.usable] == [2, 1]
    for sentence in pairs.usable:
        assert all(sentence.token_ids[place] != separator for word in sentence.words for place in word)
