"""Small random models of every family that can be adapted, each with a tokenizer of its kind: the same each time."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SENTENCES = [
    "Set max connections before the pool of the database is full.",
    "The agent sends its log to the server; the server stores it.",
    "A nightly backup copies the database to a second server every week.",
    "Renew a certificate before it expires, or the client refuses.",
    "The cube control reads nodes, pods and logs; zoo, ox, verb and vex are words.",
    f"{LETTERS} 0123456789 {LETTERS.upper()} -_+.,;:()/#'",
]
WORDPIECE = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SENTENCEPIECE = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def wordpiece() -> PreTrainedTokenizerFast:
    """Lower-case WordPiece, as BERT, DistilBERT, MPNet and ELECTRA have: every sign, and the words of SENTENCES."""
    text = " ".join(SENTENCES).lower()
    signs = sorted(set(text) - {" "})
    words = sorted(set(re.findall("[a-z]{2,}", text)) - {LETTERS})
    tokens = [*WORDPIECE, *signs, *(f"##{sign}" for sign in signs), *words]
    raw = Tokenizer(
        models.WordPiece({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]")
    )
    raw.normalizer = normalizers.BertNormalizer(lowercase=True)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.decoder = decoders.WordPiece()
    return _wrapped(raw, *WORDPIECE)


def byte_level() -> PreTrainedTokenizerFast:
    """Byte-level BPE that keeps case, as RoBERTa and ModernBERT have."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.train_from_iterator(
        SENTENCES,
        trainers.BpeTrainer(
            vocab_size=360,
            special_tokens=list(SENTENCEPIECE),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return _wrapped(raw, "<pad>", "<unk>", "<s>", "</s>", "<mask>")


def modern_byte_level() -> PreTrainedTokenizerFast:
    """Byte-level BPE behind NFC, as ModernBERT has."""
    tokenizer = byte_level()
    tokenizer.backend_tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def unigram() -> PreTrainedTokenizerFast:
    """SentencePiece Unigram behind Metaspace, as XLM-R and DeBERTa-v2 have: every sign, and words after a space."""
    text = " ".join(SENTENCES)
    signs = sorted(set(text) - {" "})
    words = sorted(set(re.findall("[a-zA-Z]{2,}", text)) - {LETTERS, LETTERS.upper()})
    pieces = [*((token, 0.0) for token in SENTENCEPIECE), ("\u2581", -3.0), *((sign, -5.0) for sign in signs)]
    pieces += [(f"\u2581{word}", -6.0) for word in words]
    raw = Tokenizer(models.Unigram(pieces, unk_id=SENTENCEPIECE.index("<unk>")))
    raw.normalizer = normalizers.NFKC()
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    raw.decoder = decoders.Metaspace()
    return _wrapped(raw, "<pad>", "<unk>", "<s>", "</s>", "<mask>")


def uncased_unigram() -> PreTrainedTokenizerFast:
    """Unigram that lowers case and splits off punctuation, as some DeBERTa-v2 models have."""
    tokenizer = unigram()
    raw = tokenizer.backend_tokenizer
    raw.normalizer = normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "),
            normalizers.NFC(),
            normalizers.Strip(left=False, right=True),
        ]
    )
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation(behavior="isolated"), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    return tokenizer


def _wrapped(raw: Tokenizer, pad: str, unk: str, start: str, end: str, mask: str) -> PreTrainedTokenizerFast:
    raw.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {end}",
        special_tokens=[(start, raw.token_to_id(start)), (end, raw.token_to_id(end))],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        model_max_length=40,
        pad_token=pad,
        unk_token=unk,
        cls_token=start,
        sep_token=end,
        mask_token=mask,
    )


SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}
DISTIL = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 64}
DEBERTA = {
    **SMALL,
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
}
MODERN = {**SMALL, "global_attn_every_n_layers": 2, "local_attention": 8}
FAMILIES: dict[str, tuple[str, dict[str, Any], Callable[[], PreTrainedTokenizerFast]]] = {
    "bert": ("bert", SMALL, wordpiece),
    "distilbert": ("distilbert", DISTIL, wordpiece),
    "roberta": ("roberta", SMALL, byte_level),
    "mpnet": ("mpnet", SMALL, wordpiece),
    "modernbert": ("modernbert", MODERN, modern_byte_level),
    "modernbert-bias": ("modernbert", {**MODERN, "decoder_bias": True}, modern_byte_level),
    "modernbert-no-bias": ("modernbert", {**MODERN, "decoder_bias": False}, modern_byte_level),
    "xlm-roberta": ("xlm-roberta", SMALL, unigram),
    "electra": ("electra", {**SMALL, "embedding_size": 8}, wordpiece),
    "deberta-v2": ("deberta-v2", DEBERTA, unigram),
    "deberta-v2-narrow": ("deberta-v2", {**DEBERTA, "embedding_size": 8}, uncased_unigram),
}


def build(folder: Path, family: str, *, tied: bool = True, spare: int = 0, **settings: Any) -> Path:
    """A model folder of that family with random rows: many weights are positive, many are zero.

    `spare`: decoder rows beyond the tokenizer's tokens.
    """
    kind, base, make_tokenizer = FAMILIES[family]
    tokenizer = make_tokenizer()
    special = {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
        "cls_token_id": tokenizer.cls_token_id,
        "sep_token_id": tokenizer.sep_token_id,
    }
    config = AutoConfig.for_model(
        kind,
        **{**base, **special, **settings},
        vocab_size=len(tokenizer) + spare,
        tie_word_embeddings=tied,
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(20)
        model = AutoModelForMaskedLM.from_config(config).eval()
        randomise(model)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def randomise(model: PreTrainedModel) -> None:
    """Rows large enough that logits differ, a bias that silences most of them."""
    model.get_input_embeddings().weight.normal_(0.0, 0.7)
    decoder = model.get_output_embeddings()
    if decoder.weight is not model.get_input_embeddings().weight:
        decoder.weight.normal_(0.0, 0.7)
    if decoder.bias is not None:
        decoder.bias.normal_(-3.0, 0.7)
