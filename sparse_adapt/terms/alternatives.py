"""Terms by another way than mining: a vocabulary trained on the corpus.

A WordPiece vocabulary is trained on the corpus; of its words those stay that the model's tokenizer lacks and can
spell (Pavlova and Makhlouf, MOSAIC). `mine_terms` asks instead what a token saves: it finds fewer words, knows
what general language says anyway, and takes compounds, which WordPiece cuts at every sign.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from sparse_adapt.collection.readers import Document
from sparse_adapt.terms.mining import Term, category_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

SIZE = 30_000  # entries of the trained vocabulary at most, its pieces and signs included
LEAST = 2  # occurrences, for a pair of pieces to be joined and for a word to be one
UNKNOWN = "[UNK]"
INSIDE = "##"  # before what stands within words, which no term can be
PART = 1000  # texts encoded at once


def is_token(tokenizer: "PreTrainedTokenizerFast", name: str) -> bool:
    """Whether a word is one token of a tokenizer, in the middle of a text."""
    return len(tokenizer(f" {name}", add_special_tokens=False)["input_ids"]) <= 1


def trained_vocabulary(
    documents: Iterable[Document],
    tokenizer: "PreTrainedTokenizerFast",
    size: int = SIZE,
    top: int | None = None,
) -> list[Term]:
    """Words of a vocabulary trained on the corpus that the tokenizer splits, the most frequent first.

    Left out: pieces that stand within words or never for a whole one, what holds no letter, and what the
    tokenizer can't spell. The documents are read once and kept.
    """
    texts = [document.full_text for document in documents]
    raw = _trained(texts, tokenizer, size)
    whole_words = _whole_words(texts, raw)
    words = [
        word
        for word in sorted(raw.get_vocab(), key=lambda word: (-whole_words[word], word))
        if not word.startswith(INSIDE) and whole_words[word] >= LEAST and any(map(str.isalpha, word))
    ]
    lacking = _lacking(tokenizer, words)
    return [Term(word, category_of(word)) for word in lacking[:top]]


def _trained(texts: list[str], tokenizer: "PreTrainedTokenizerFast", size: int) -> "Tokenizer":
    """A WordPiece tokenizer for the texts, normalised as the model's is where that is WordPiece too."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    model = tokenizer.backend_tokenizer
    raw = Tokenizer(models.WordPiece({UNKNOWN: 0}, unk_token=UNKNOWN))
    is_wordpiece = type(model.model).__name__ == "WordPiece" and model.normalizer is not None
    raw.normalizer = model.normalizer if is_wordpiece else normalizers.NFC()
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=LEAST,
        special_tokens=[UNKNOWN],
        continuing_subword_prefix=INSIDE,
        show_progress=False,
    )
    raw.train_from_iterator(texts, trainer)
    return raw


def _whole_words(texts: list[str], raw: "Tokenizer") -> Counter[str]:
    """How often each word is one token of the trained vocabulary."""
    counts: Counter[str] = Counter()
    for part in _parts(texts):
        for encoding in raw.encode_batch(part, add_special_tokens=False):
            for token, following in pairwise([*encoding.tokens, ""]):
                if not token.startswith(INSIDE) and not following.startswith(INSIDE):
                    counts[token] += 1
    return counts


def _parts(texts: list[str]) -> Iterator[list[str]]:
    """At most so many texts at a time."""
    for start in range(0, len(texts), PART):
        yield texts[start : start + PART]


def _lacking(tokenizer: "PreTrainedTokenizerFast", words: list[str]) -> list[str]:
    """The words of which the model's tokenizer makes several pieces, none of them the unknown one."""
    vocabulary, missing = tokenizer.get_vocab(), []
    for part in _parts(words):
        encoded = tokenizer([f" {word}" for word in part], add_special_tokens=False)["input_ids"]
        for word, pieces in zip(part, encoded, strict=True):
            if word not in vocabulary and len(pieces) > 1 and tokenizer.unk_token_id not in pieces:
                missing.append(word)
    return missing
