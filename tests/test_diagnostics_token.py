"""The five sections against the model's own logits, and a verdict for every state."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaForMaskedLM

from diagnostics.advice import Places, TermFigures, advise, judge
from diagnostics.token import diagnose, sight, spellings
from sparse_adapt.collection.readers import Document, read_documents
from sparse_adapt.errors import InputError
from sparse_adapt.model.encoder import NewToken
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.terms.mining import Term


@pytest.fixture
def tiny(tiny_model: Path) -> SparseEncoder:
    return SparseEncoder.load(tiny_model)


@pytest.fixture
def with_new_server(tiny) -> Callable[[float], SparseEncoder]:
    """The tiny model as if "server" had been added to it, with this much on top of its output bias."""

    def build(bias: float) -> SparseEncoder:
        server = tiny.tokenizer.get_vocab()["server"]
        pieces = tuple(tiny.tokenizer.convert_tokens_to_ids(["s", "##er", "##v", "##er"]))
        with torch.no_grad():
            tiny.output_bias[server] += bias
        return SparseEncoder(
            tiny.masked_lm, tiny.tokenizer, [NewToken(server, "server", "Server", "jargon", pieces)], 64
        )

    return build


def all_logits(model: SparseEncoder, text: str) -> np.ndarray:
    """Logits (L, V) as transformers computes them."""
    with torch.no_grad():
        ids = torch.tensor([model.tokenize([text])[0]])
        return model.masked_lm(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0].numpy()


# -- the sections -----------------------------------------------------------------------------


def test_a_term_in_pieces_has_every_section_for_each_piece(tiny, twelve_documents):
    report = diagnose("Zorvex", tiny, twelve_documents)
    assert report.state == "pieces"
    assert report.vocabulary["tokens"] == ("z", "##or", "##v", "##e", "##x")
    assert not report.vocabulary["single"]
    assert not report.vocabulary["new"]
    assert report.document_id == "d05"  # twice there and twice in d06: the first of the two
    assert [section["token"] for section in report.logits] == list(report.vocabulary["tokens"])
    assert [weight["token"] for weight in report.weights] == list(report.vocabulary["tokens"])
    assert len(report.ranking["ranks"]) == 5
    # "[CLS] z ##or ##v ##e ##x in brief z ##or ...": the third piece stands at 3 and 10
    assert [spot["position"] for spot in report.logits[2]["positions"] if spot["occurrence"]] == [3, 10]


def test_logits_are_the_models_own(tiny, twelve_documents):
    report = diagnose("zorvex", tiny, twelve_documents)
    logits = all_logits(tiny, report.text)
    for section in report.logits:
        column = logits[:, section["token_id"]]
        assert [spot["logit"] for spot in section["positions"]] == pytest.approx(column, abs=1e-5)
        assert section["everywhere"]["largest"]["position"] == column.argmax()
        spots = [spot["position"] for spot in section["positions"] if spot["occurrence"]]
        for found, over in ((section["everywhere"], column), (section["where_it_stands"], column[spots])):
            of_range = (found["least"]["logit"], found["average"], found["largest"]["logit"])
            assert of_range == pytest.approx((over.min(), over.mean(), over.max()), abs=1e-5)
        assert section["everywhere"]["least"]["logit"] < section["where_it_stands"]["least"]["logit"]
    names = [spot["token"] for spot in report.logits[0]["positions"]]
    assert names == tiny.tokenizer.convert_ids_to_tokens(tiny.tokenize([report.text])[0])


def test_weights_step_by_step(tiny, twelve_documents):
    report = diagnose("zorvex", tiny, twelve_documents)
    logits = all_logits(tiny, report.text).max(axis=0)
    signs = set()
    for weight in report.weights:
        assert weight["maximum_logit"] == pytest.approx(logits[weight["token_id"]], abs=1e-5)
        assert weight["after_relu"] == max(0.0, weight["maximum_logit"])
        assert weight["after_log1p"] == pytest.approx(np.log1p(weight["after_relu"]))
        assert weight["encoder_weight"] == pytest.approx(weight["after_log1p"], abs=1e-5)
        signs.add(weight["maximum_logit"] > 0)
    assert signs == {True, False}  # the fixture shows both a live piece and a dead one


def test_an_encoder_that_disagrees_is_a_bug(tiny, twelve_documents, monkeypatch):
    from diagnostics import token
    from sparse_adapt.retrieve.encode import encode

    monkeypatch.setattr(token, "encode", lambda model, texts, side: encode(model, texts, side) * 1.001)
    with pytest.raises(AssertionError):
        diagnose("zorvex", tiny, twelve_documents)


def test_ranks_are_places_among_the_non_zero_tokens(tiny, twelve_documents):
    report = diagnose("zorvex", tiny, twelve_documents)
    weights = np.log1p(np.maximum(all_logits(tiny, report.text).max(axis=0), 0))
    assert report.ranking["nonzero"] == (weights > 0).sum()
    for token_id, rank in zip(report.vocabulary["token_ids"], report.ranking["ranks"], strict=True):
        expected = None if weights[token_id] == 0 else 1 + int((weights > weights[token_id]).sum())
        assert rank == expected
    heaviest = report.ranking["heaviest"]
    assert [ranked["rank"] for ranked in heaviest] == list(range(1, 11))
    assert [ranked["weight"] for ranked in heaviest] == pytest.approx(np.sort(weights)[:-11:-1])
    assert {ranked["token"] for ranked in heaviest if ranked["of_term"]} <= set(report.vocabulary["tokens"])


def test_the_corpus_is_summarised(tiny, twelve_documents):
    corpus = diagnose("server", tiny, twelve_documents).corpus
    says = [document.document_id for document in twelve_documents if "server" in document.text.split(".")[0]]
    assert corpus["documents"] == 12
    assert {summary["document_id"] for summary in corpus["summaries"]} >= set(says)
    assert corpus["holding"] == len(corpus["summaries"]) == 6  # d01, d03, d04, d07, d09, d10
    assert corpus["others_examined"] == 6
    server = tiny.tokenizer.get_vocab()["server"]
    others = {d.document_id for d in twelve_documents} - {s["document_id"] for s in corpus["summaries"]}
    weights = {
        document.document_id: max(0.0, all_logits(tiny, document.full_text)[:, server].max())
        for document in twelve_documents
    }
    assert corpus["others_firing"] == sum(weights[document_id] > 0 for document_id in others)
    for summary in corpus["summaries"]:
        assert summary["weights"] == pytest.approx([np.log1p(weights[summary["document_id"]])], abs=1e-5)


def test_a_document_can_be_asked_for_even_without_the_term(tiny, twelve_documents):
    report = diagnose("server", tiny, twelve_documents, document_id="d08")
    assert report.document_id == "d08"
    assert report.logits[0]["where_it_stands"] is None
    assert report.logits[0]["verdict"] == "not in this text"
    assert len(report.logits[0]["positions"]) == len(tiny.tokenize([report.text])[0])


def test_a_term_in_no_document_is_read_on_its_own(tiny, twelve_documents):
    report = diagnose("quokka", tiny, twelve_documents)
    assert report.document_id is None
    assert report.text == "quokka"
    assert report.corpus["holding"] == 0
    assert report.corpus["summaries"] == []
    assert all(section["where_it_stands"] is not None for section in report.logits)
    alone = diagnose("server", tiny, [])
    assert alone.state == "absent"
    assert alone.corpus["others_examined"] == 0


def test_a_new_token_names_its_category_and_pieces(with_new_server, twelve_documents):
    vocabulary = diagnose("Server", with_new_server(0.0), twelve_documents).vocabulary
    assert vocabulary["single"]
    assert vocabulary["new"]
    assert vocabulary["category"] == "jargon"
    assert vocabulary["replaced"] == ("s", "##er", "##v", "##er")


def test_an_entry_that_no_text_spells(tiny, twelve_documents):
    report = diagnose("##ing", tiny, twelve_documents)
    assert report.vocabulary["tokens"] == ("##ing",)
    assert report.vocabulary["unspelled"]
    assert report.corpus["holding"] == sum(
        "##ing" in tiny.tokenizer.tokenize(d.full_text) for d in twelve_documents
    )
    nowhere = diagnose("##ing", tiny, twelve_documents[:1])
    assert nowhere.state == "absent"
    assert nowhere.logits[0]["where_it_stands"] is None


def test_json_holds_everything(tiny, twelve_documents):
    report = diagnose("zorvex", tiny, twelve_documents, places=Places("my-model", "my-corpus"))
    content = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert list(content) == [
        "term", "state", "vocabulary", "document_id", "text", "logits", "weights", "ranking", "corpus",
        "next_steps", "glossary",
    ]  # fmt: skip
    assert len(content["logits"][0]["positions"]) == len(report.logits[0]["positions"])
    assert (
        content["logits"][0]["everywhere"]["largest"]
        == content["logits"][0]["positions"][report.logits[0]["everywhere"]["largest"]["position"]]
    )
    assert len(content["ranking"]["heaviest"]) == 10
    commands = [step["command"] for step in content["next_steps"]]
    assert commands[0] == """echo '{"terms": ["zorvex"]}' > terms.json"""
    assert commands[1].startswith("sparse-adapt extend")


def test_mistakes(tiny, twelve_documents):
    with pytest.raises(InputError, match="reduces it to nothing"):
        diagnose("  ", tiny, twelve_documents)
    with pytest.raises(InputError, match="d99"):
        diagnose("server", tiny, twelve_documents, document_id="d99")


# -- where a term stands ----------------------------------------------------------------------


def starts(model: SparseEncoder, term: str, *texts: str) -> list[int]:
    _, sightings = sight(model, term, [Document(str(row), text) for row, text in enumerate(texts)])
    return [len(sighting.starts) for sighting in sightings]


def test_part_of_a_longer_word_is_no_occurrence(tiny):
    texts = ("zorvex", "a zorvex.", "(ZORVEX)", "zorvexed", "prezorvex", "zorvex-zorvex", "Zorvéx")
    assert starts(tiny, "zorvex", *texts) == [1, 1, 1, 0, 0, 2, 1]
    assert starts(tiny, "report", "report", "reports", "reporter", "a report") == [1, 0, 0, 1]


def test_scripts_without_spaces_have_no_word_boundary(tiny):
    vocabulary = tiny.tokenizer.get_vocab()
    unknown = vocabulary["[UNK]"]
    assert spellings(tiny, "東京")[0].token_ids == (unknown, unknown)
    assert starts(tiny, "東京", "東京都", "京") == [2, 0]  # all unknown to this model, so 都 looks the same


@pytest.fixture(scope="module")
def byte_level(twelve_documents) -> SparseEncoder:
    """A RoBERTa of random weights whose tokens start with a letter for the space before them."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    raw.train_from_iterator(
        [document.full_text for document in twelve_documents],
        trainers.BpeTrainer(vocab_size=320, special_tokens=special, show_progress=False),
    )
    raw.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        mask_token="<mask>", model_max_length=64,
    )  # fmt: skip
    torch.manual_seed(1)
    config = RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=70, pad_token_id=1,
    )  # fmt: skip
    return SparseEncoder(RobertaForMaskedLM(config).eval(), tokenizer, (), 64)


def test_the_spelling_that_documents_use_is_taken(byte_level, twelve_documents):
    both = spellings(byte_level, "zorvex")
    assert len(both) == 2  # with the space before it and without
    report = diagnose("zorvex", byte_level, twelve_documents)
    assert report.vocabulary["token_ids"] == both[0].token_ids
    assert report.vocabulary["tokens"][0].startswith("Ġ")
    assert report.corpus["holding"] == 2  # d06 and d07; d05 has capitals, which are other tokens here
    assert starts(byte_level, "zorvex", "zorvex first", "zorvex", "a word") == [1, 1, 0]


# -- what to do -------------------------------------------------------------------------------

LEARNT = TermFigures("Zorvex", True, True, True, 3.0, 1, 0.0)


@pytest.mark.parametrize(
    ("change", "state", "commands"),
    [
        ({}, "learnt", ["explain Zorvex", "export anserini"]),
        ({"single": False, "new": False}, "pieces", ["extend", "warmup"]),
        ({"occurs": False}, "absent", ["dictionary"]),
        ({"new": False, "rank": 80}, "ordinary", ["explain Zorvex", "distill"]),
        ({"average_logit": -0.1}, "negative", ["warmup", "dictionary", "distill"]),
        ({"rank": None}, "inactive", ["warmup", "dictionary", "distill"]),
        ({"false_activation_share": 0.3}, "false_activation", ["distill"]),
        ({"rank": 11}, "outranked", ["distill", "explain Zorvex"]),
    ],
)
def test_every_state_has_its_next_commands(change, state, commands):
    evidence = replace(LEARNT, **change)
    assert judge(evidence) == state
    files = {"dictionary": "dictionary.jsonl", "candidates": "candidates.jsonl"}
    steps = advise(state, evidence, Places(model="runs/my model", corpus="corpus.jsonl", **files))
    lines = [step.command for step in steps if step.command.startswith("sparse-adapt")]
    assert len(lines) == len(commands)
    for line, command in zip(lines, commands, strict=True):
        assert line.startswith(f"sparse-adapt {command}")
    assert any("'runs/my model'" in line for line in lines)  # quoted, to be pasted as it is


def test_what_is_not_there_is_not_named():
    """Without definitions the help says what they are; adapt makes candidates; without a corpus nothing runs."""
    inactive = replace(LEARNT, rank=None)
    lines = [step.command for step in advise("inactive", inactive, Places("my-model", "my-corpus"))]
    assert lines == [
        "sparse-adapt warmup --model my-model --corpus my-corpus -o warm",
        "sparse-adapt dictionary --help",
        "sparse-adapt adapt my-corpus --model warm -o adapted",
    ]
    for state in ("pieces", "absent", "ordinary", "negative", "false_activation", "outranked", "learnt"):
        lines = [step.command for step in advise(state, LEARNT, Places())]
        assert set(lines) <= {
            "",
            "sparse-adapt dictionary --help",
            """echo '{"terms": ["Zorvex"]}' > terms.json""",
        }


def test_a_file_that_is_there_is_not_written_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "terms.json").write_text("edited for hours")
    (tmp_path / "extended").mkdir()
    steps = advise("pieces", replace(LEARNT, single=False), Places("my-model", "my-corpus"))
    assert [step.command for step in steps] == [
        """echo '{"terms": ["Zorvex"]}' > terms-2.json""",
        "sparse-adapt extend --model my-model --terms terms-2.json -o extended-2",
        "sparse-adapt warmup --model extended-2 --corpus my-corpus -o warm",
    ]


def test_a_file_that_holds_the_term_is_not_written_over():
    steps = advise("pieces", replace(LEARNT, single=False), Places(model="my-model", terms="mine.json"))
    assert not any("echo" in step.command for step in steps)
    assert "--terms mine.json" in steps[0].command


def test_states_of_a_real_vector(with_new_server, twelve_documents):
    assert diagnose("server", with_new_server(-50.0), twelve_documents).state == "negative"
    loud = diagnose("server", with_new_server(100.0), twelve_documents)
    assert loud.state == "false_activation"
    assert loud.corpus["others_firing"] == 6
    assert loud.corpus["heaviest_other"] is not None
    assert loud.ranking["ranks"] == (1,)


def test_the_invented_word_in_the_bundled_model():
    model = SparseEncoder.load("splade-tiny")
    report = diagnose("Gatrocraptic", model, list(read_documents("gatrocraptic")))
    assert report.state == "pieces"
    assert report.vocabulary["tokens"] == ("ga", "##tro", "##cr", "##ap", "##tic")
    assert report.document_id == "gatrocraptic-overview"
    assert report.corpus["holding"] == 5
    assert all(section["where_it_stands"]["average"] > 0 for section in report.logits)


def test_the_invented_word_as_a_token_of_its_own():
    model = SparseEncoder.load("splade-tiny")
    extend(model, [Term("Gatrocraptic", "coined")])
    places = Places("extended", "gatrocraptic")
    report = diagnose("gatrocraptic", model, list(read_documents("gatrocraptic")), places=places)
    assert report.vocabulary["token_ids"] == (model.old_size,)
    assert report.vocabulary["category"] == "coined"
    assert report.vocabulary["replaced"] == ("ga", "##tro", "##cr", "##ap", "##tic")
    assert report.corpus["holding"] == 5
    averages = [summary["average_logits"][0] for summary in report.corpus["summaries"]]
    assert report.state == ("negative" if sum(averages) < 0 else "inactive")  # rows that nothing has trained
    assert "sparse-adapt warmup" in report.next_steps[0].command
