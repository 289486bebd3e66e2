"""Contradictions: which sentences are fit, what fills their gaps, what is dropped and counted."""

import os
import signal
import time
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import torch
from dense_models import tiny_dense
from hypothesis import given
from hypothesis import strategies as st

from sparse_adapt.errors import ConfigError, ModelError, OutputError
from sparse_adapt.files.journal import noted
from sparse_adapt.files.place import Place
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.plugins.research.contradicting import writing
from sparse_adapt.plugins.research.contradicting.contradict import (
    ContradictionTally,
    contradictions,
    fit,
    read_sentences,
)
from sparse_adapt.plugins.research.contradicting.generator import Gaps, draw_spans, optimiser_of, tune
from sparse_adapt.plugins.research.contradicting.masked import MaskedFiller
from sparse_adapt.plugins.research.contradicting.spans import SpanFiller
from sparse_adapt.plugins.research.contradicting.writing import ContradictRequest, load_filler, write
from sparse_adapt.plugins.research.parsing import Parser
from sparse_adapt.training.loop import random_at

TEXTS = [
    "The server sends a log to the client.",
    "Who signs for spending?",
    "A nightly backup copies the database to a second server.",
    "A long password is better than a strange one.",
] * 4
GAP = Gaps(("the ", " refuses the server"), ("client",))


@pytest.fixture(scope="module")
def parser() -> Parser:
    return Parser("en")


@pytest.fixture
def filler(tiny_model: Path) -> MaskedFiller:
    return MaskedFiller(load_encoder(tiny_model))


# -- masked words ------------------------------------------------------------------------------


def test_fills_are_words_and_no_two_are_the_same(filler):
    (found,) = filler.fill([GAP], 7)
    assert len(found) == 7 == len(set(found))
    for (text,) in found:
        assert any(map(str.isalnum, text))
        assert not text.startswith("##")
        assert "[" not in text


def test_several_gaps_are_filled_as_each_alone(filler):
    gaps = [GAP, Gaps(("a ", " of it"), ("nightly backup",)), Gaps(("", ""), ("team",))]
    together = filler.fill(gaps, 4)
    assert together == [filler.fill([gap], 4)[0] for gap in gaps]


def test_a_wide_beam_finds_the_likeliest_of_all_fills(filler):
    """Two places and four words: every order of two different ones, by the products of their probabilities."""
    encoder, words = filler.encoder, ["server", "team", "log", "office"]
    filler.admit(words)
    ids = encoder.tokenizer("the [MASK][MASK] refuses the server")["input_ids"]
    gap = Gaps(("the ", " refuses the server"), ("password server",))
    places = [place for place, token in enumerate(ids) if token == filler.mask_id]
    vocabulary = encoder.tokenizer.get_vocab()

    def chance(tokens: tuple[str, ...]) -> float:
        filled, total = list(ids), 0.0
        for place, token in zip(places, tokens, strict=True):
            row = torch.tensor([filled])
            with torch.no_grad():
                logits = encoder.masked_lm(input_ids=row, attention_mask=torch.ones_like(row)).logits
            total += float(logits[0, place].log_softmax(0)[vocabulary[token]])
            filled[place] = vocabulary[token]
        return total

    orders = [pair for pair in product(words, words) if pair[0] != pair[1]]
    wanted = [(" ".join(pair),) for pair in sorted(orders, key=chance, reverse=True)]
    assert filler.fill([gap], 12)[0] == wanted


def test_words_that_are_mostly_elsewhere_are_not_written(filler):
    texts = ["the server of the team", "a log of the server", "of of of"]
    filler.admit(["server", "of", "log"], texts)
    assert sorted(filler.fill([GAP], 5)[0]) == [("log",), ("server",)]


def test_the_head_of_a_dense_encoder_fills_too(tiny_model, tmp_path):
    filler = load_filler(tiny_dense(tiny_model, tmp_path / "dense"), " ")
    assert len(filler.fill([GAP], 3)[0]) == 3


def test_japanese_fills_have_no_spaces(tiny_model):
    filler = MaskedFiller(load_encoder(tiny_model), "")
    gap = Gaps(("the ", " refuses"), ("password server log",))
    assert all(" " not in text for (text,) in filler.fill([gap], 3)[0])


def test_what_says_mask_itself_has_no_gap(filler):
    assert filler.fill([Gaps(("a [MASK] and ", ""), ("client",))], 3) == [[]]


# -- T5 ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny_t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random T5 of two layers, 16 wide, whose words are those of TEXTS."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    folder = tmp_path_factory.mktemp("t5") / "model"
    sentinels = [f"<extra_id_{number}>" for number in range(20)]
    words = sorted({word for text in TEXTS for word in text.replace(".", " .").replace("?", " ?").split()})
    names = ["<pad>", "</s>", "<unk>", *words, *sentinels]
    raw = Tokenizer(models.WordLevel({name: index for index, name in enumerate(names)}, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    raw.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        model_max_length=48,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        additional_special_tokens=sentinels,
    )
    tokenizer.save_pretrained(folder)
    shape = T5Config(
        vocab_size=len(names),
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        T5ForConditionalGeneration(shape).save_pretrained(folder)
    return folder


def test_a_t5_fills_gaps_after_it_learnt_to(tiny_t5):
    filler = load_filler(tiny_t5, " ")
    assert isinstance(filler, SpanFiller)
    history = tune(filler, TEXTS, 80, learning_rate=1e-2)
    assert np.mean(history[-10:]) < 0.7 * np.mean(history[:10])
    found = filler.fill(
        [Gaps(("The server sends a ", " to the client."), ("log",)), Gaps(("A ", ""), ("saw",))], 4
    )
    assert [len(texts) <= 4 for texts in found] == [True, True]
    assert found[0]
    assert all("<" not in text for texts in found for (text,) in texts)


def test_a_span_is_what_stands_between_two_sentinels(tiny_t5):
    filler = load_filler(tiny_t5, " ")
    ids = filler.tokenizer("<extra_id_0> nightly backup <extra_id_1> server")["input_ids"]
    assert filler._texts([[0, *ids], [0, *ids], [0, 1], [0, filler.sentinels[0], 1]]) == [("nightly backup",)]


def test_a_text_of_sentinels_is_what_t5_learns_from(tiny_t5):
    """Ids 10 to 19, of which 12, 13 and 17 are hidden: the loss is the model's own on the pair of texts."""
    filler = load_filler(tiny_t5, " ")
    first, second, *_ = filler.sentinels
    text = list(range(10, 20))
    shown = torch.tensor([[10, 11, first, 14, 15, 16, second, 18, 19, 1]])
    hidden = torch.tensor([[first, 12, 13, second, 17, 1]])
    wanted = filler.model(input_ids=shown, attention_mask=torch.ones_like(shown), labels=hidden).loss
    torch.testing.assert_close(filler.denoising([text], [[(2, 4), (7, 8)]]), wanted)


def test_a_generator_without_sentinels_is_refused(tiny_t5, tmp_path):
    import shutil

    folder = shutil.copytree(tiny_t5, tmp_path / "published")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        path = folder / name
        path.write_text(path.read_text().replace("extra_id", "other_id"))
    with pytest.raises(ModelError, match="has no sentinels"):
        load_filler(folder, " ")


# -- denoising ---------------------------------------------------------------------------------


@given(st.integers(0, 400), st.integers(0, 99))
def test_spans_hide_their_share(length, seed):
    spans = draw_spans(length, random_at(seed, 0))
    hidden = sum(end - start for start, end in spans)
    assert hidden == (0 if length < 2 else min(max(1, round(0.15 * length)), length // 2))
    ends = [0, *(place for span in spans for place in span), length]
    assert ends == sorted(ends)
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    if length > 40:
        assert hidden / len(spans) == pytest.approx(3.0, abs=0.7)


def test_a_masked_language_model_learns_the_domain(filler):
    before = {name: value.clone() for name, value in filler.encoder.state_dict().items()}
    history = tune(filler, TEXTS, 60, learning_rate=1e-2)
    assert np.mean(history[-10:]) < 0.7 * np.mean(history[:10])
    assert not filler.encoder.training
    again = []
    for _ in range(2):
        filler.encoder.load_state_dict(before)
        again.append(tune(filler, TEXTS, 3, learning_rate=1e-2))
    assert again[0] == again[1]


def test_texts_too_short_to_hide_anything_teach_nothing(filler):
    assert tune(filler, ["a", ""], 5) == []


# -- from sentences to triplets ----------------------------------------------------------------


def test_every_sentence_is_a_triplet_or_counted(parser, filler, tmp_path):
    path = tmp_path / "lines.txt"
    long = "The server sends a log and " * 20
    path.write_text(
        "\n".join(
            [
                "The server sends a log.",
                "the server  sends a log.",
                "",
                "12 + 30",
                "It rains.",
                long,
                "A saw cuts a long tree.",
            ]
        )
    )
    account = ContradictionTally()
    found = list(fit(read_sentences(str(path), parser), filler, account))
    assert [sentence.text for sentence in found] == ["The server sends a log.", "A saw cuts a long tree."]
    assert (account.sentences, account.without_words, account.too_short, account.too_long) == (5, 1, 1, 1)
    triplets = []
    for written in contradictions(found, filler, each=4, at_once=False):
        account.add(written)
        triplets.append(written.triplet)
    assert [triplet.anchor for triplet in triplets] == [sentence.text for sentence in found]
    assert account.anchors == 2
    assert account.contradictions == 8
    for triplet in triplets:
        assert len(set(triplet.contradictions)) == len(triplet.contradictions) == len(triplet.replaced) == 4
        for text, chunk in zip(triplet.contradictions, triplet.replaced, strict=True):
            before, after = triplet.anchor.split(chunk, 1)
            assert text.startswith(before)
            assert text.endswith(after)
            assert text != triplet.anchor
    assert {"server", "log"} == set(triplets[0].replaced)


def test_a_generator_that_gives_what_was_there_is_found_out(parser, filler):
    account = ContradictionTally()
    filler.admit(["server"])
    (written,) = contradictions(list(parser.whole(["The server."])), filler)
    assert written == ("The server.", (), (), 1, 0)
    account.add(written)
    assert (account.unchanged, account.without_contradictions, account.anchors) == (1, 1, 0)


def test_the_same_fill_of_two_gaps_counts_once(parser, filler):
    """Of "log log" one chunk each is replaced; where both become "server", the texts differ."""
    filler.admit(["server", "log"])
    (written,) = contradictions(list(parser.whole(["The log has a log."])), filler, at_once=False)
    assert sorted(written.contradictions) == ["The log has a server.", "The server has a log."]
    assert written.unchanged == 2


def test_documents_come_in_an_order_that_the_seed_draws(parser, zorvex_collection):
    first, again, other = (
        [each.text for each in read_sentences(str(zorvex_collection), parser, seed)] for seed in (0, 0, 1)
    )
    assert first == again != other
    assert sorted(first) == sorted(other)


# -- from a corpus to a file ---------------------------------------------------------------------


@pytest.fixture(params=["sparse", "dense", "t5"])
def generator(request: pytest.FixtureRequest, tiny_model: Path, tiny_t5: Path, tmp_path: Path) -> Path:
    if request.param == "t5":
        return tiny_t5
    return tiny_model if request.param == "sparse" else tiny_dense(tiny_model, tmp_path / "dense")


def killed_in(work: Path, lines: int, asked: ContradictRequest, out: Path) -> None:
    """Write contradictions in a process of its own, and kill that once its journal has so many lines."""
    journal = work / "sentences.jsonl"
    child = os.fork()
    if child == 0:
        try:
            write(asked, Place(out, resume=True))
        finally:
            os._exit(0)
    while not journal.is_file() or journal.read_bytes().count(b"\n") < lines:
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_a_killed_run_goes_on_to_the_same_bytes(generator, zorvex_collection, tmp_path, monkeypatch):
    """Killed twice: tuned once, and no sentence a second time."""
    torch.set_num_threads(1)  # a forked process has no other threads
    asked = ContradictRequest(str(zorvex_collection), str(generator), each=3, tune=2)
    whole, out, tuned = (tmp_path / name for name in ("whole.jsonl", "out.jsonl", "tuned"))
    account = write(asked, Place(whole))
    work = tmp_path / "out.jsonl.partial"
    killed_in(work, 3, asked, out)
    killed_in(work, 6, asked, out)
    done = len(noted(work / "sentences.jsonl"))
    with pytest.raises(ConfigError, match=r"made with another seed \(0\); go on with the same"):
        write(asked._replace(seed=1), Place(out, resume=True))
    with pytest.raises(OutputError, match=r"an unfinished run is in .*; pass --resume"):
        write(asked, Place(out))
    monkeypatch.setattr(writing, "tune", None)
    counted: dict[str, int] = {}

    def progress_for(what: str, total: int | None) -> Callable[[int], None]:
        return lambda more: counted.update({what: counted.get(what, 0) + more})

    assert write(asked, Place(out, resume=True), tuned=tuned, progress_for=progress_for) == account
    assert 6 <= done < counted["sentences"]
    assert out.read_bytes() == whole.read_bytes()
    assert not work.exists()
    again = write(asked._replace(generator=str(tuned), tune=0), Place(tmp_path / "again.jsonl"))
    assert again == account
    assert (tmp_path / "again.jsonl").read_bytes() == whole.read_bytes()


def test_a_journal_of_other_sentences_is_refused(parser, filler, tmp_path):
    journal = tmp_path / "sentences.jsonl"
    first, *others = parser.whole(["The server sends a log.", "A saw cuts."])
    written = list(contradictions([first], filler, journal=journal))
    journal.write_text(f"{journal.read_text()}cut by a kill")
    assert next(contradictions([first, *others], filler, journal=journal)) == written[0]
    with pytest.raises(ConfigError, match="begun with other sentences"):
        list(contradictions(others, filler, journal=journal))


# -- all chunks of a sentence at once -----------------------------------------------------------

BOTH = Gaps(("the ", " refuses the ", "."), ("client", "nightly backup"))


def test_all_gaps_of_a_sentence_are_filled_together(filler):
    (found,) = filler.fill([BOTH], 5)
    assert len(found) == 5 == len(set(found))
    assert all(len(fills) == 2 and all(fills) for fills in found)
    assert BOTH.filled(found[0]) == f"the {found[0][0]} refuses the {found[0][1]}."


def test_every_chunk_has_a_sentinel_of_its_own(tiny_t5):
    filler = load_filler(tiny_t5, " ")
    asked = []
    generate = filler.model.generate

    def noted_down(**given):
        asked.append(filler.tokenizer.decode(given["input_ids"][0]))
        return generate(**given)

    filler.model.generate = noted_down
    filler.fill([Gaps(("A ", " sends a ", "."), ("server", "log"))], 2)
    assert "A <extra_id_0> sends a <extra_id_1> ." in asked[0]
    ids = filler.tokenizer("<extra_id_0> nightly backup <extra_id_1> server")["input_ids"]
    assert filler._texts([[0, *ids], [0, *ids[:3], 1]], 2) == [("nightly backup", "server")]
    many = Gaps(("", *[" "] * 20), ("log",) * 20)
    assert filler.fill([many], 2) == [[]]


def test_at_once_every_chunk_gives_way(parser, filler):
    (sentence,) = list(parser.whole(["The server sends a log to the client."]))
    (written,) = contradictions([sentence], filler, each=3)
    assert len(written.contradictions) == 3
    assert set(written.replaced) == {"server, log, client"}
    for text in written.contradictions:
        assert text.startswith("The ") and " sends a " in text and " to the " in text
        assert text != sentence.text
    one = next(contradictions([sentence], filler, each=3, at_once=False))
    assert set(one.replaced) <= {"server", "log", "client"}


def test_short_sentences_are_dropped(parser, filler):
    account = ContradictionTally()
    sentences = list(parser.whole(["A team decides.", "A team decides what it may spend."]))
    assert [each.text for each in fit(sentences, filler, account)] == [sentences[1].text]
    assert (account.sentences, account.too_short) == (2, 1)
    assert len(list(fit(sentences, filler, ContradictionTally(), shortest=1))) == 2


def test_sentences_in_other_languages_are_left_out(parser, filler, tmp_path):
    (tmp_path / "lines.txt").write_text("The server sends a log.\nDer Server schreibt das Protokoll.\n")
    account = ContradictionTally()
    found = list(fit(read_sentences(str(tmp_path / "lines.txt"), parser), filler, account, language="en"))
    assert [sentence.text for sentence in found] == ["The server sends a log."]
    assert account.other_language == 1


def test_a_sentence_has_no_markup_and_keeps_its_placeholders(parser, tmp_path):
    """The same whether a sentence is a line, or stands in a document of a collection."""
    (tmp_path / "lines.txt").write_text(
        "The <b>server</b> sends a log.<br>\nA script copies <source> to <target>.\n"
    )
    (tmp_path / "c.jsonl").write_text('{"_id": "1", "text": "<p>The <i>server</i> sends a log."}\n')
    lines, corpus = (list(read_sentences(str(tmp_path / name), parser)) for name in ("lines.txt", "c.jsonl"))
    assert [each.text for each in lines] == [
        "The server sends a log.",
        "A script copies <source> to <target>.",
    ]
    assert corpus == lines[:1]


def test_adafactor_tunes_too(filler):
    history = tune(filler, TEXTS, 20, learning_rate=1e-2, optimiser_name="adafactor")
    assert np.mean(history[-5:]) < np.mean(history[:5])
    with pytest.raises(ConfigError, match="unknown optimiser 'adam'; did you mean 'adamw'"):
        tune(filler, TEXTS, 1, optimiser_name="adam")


@pytest.mark.parametrize(
    ("name", "moved"),
    # a first step along the gradient's sign, by Adafactor times the root of the weights' mean square, (9 + 16) / 2
    [("adamw", 3e-4), ("adafactor", 1e-3 * 12.5**0.5)],
)
def test_each_optimiser_has_its_own_rate(name, moved):
    weights = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    optimiser = optimiser_of(name, [weights])
    (5 * weights[0] + 0.1 * weights[1]).backward()
    optimiser.step()
    torch.testing.assert_close(weights.detach(), torch.tensor([3.0 - moved, 4.0 - moved]))
