"""Where two tokenizers cut texts differently, beside their vocabularies."""

import json
from collections.abc import Sequence

from transformers import PreTrainedTokenizerFast

BEFORE_PIECES = ("normalizer", "pre_tokenizer")  # what is done to a text before its words are looked up


def differing_part(
    one: PreTrainedTokenizerFast, other: PreTrainedTokenizerFast, parts: Sequence[str] = BEFORE_PIECES
) -> str | None:
    """The first of some parts, by their names in `tokenizer.json`, that two tokenizers have differently."""
    states = [json.loads(each.backend_tokenizer.to_str()) for each in (one, other)]
    return next((part for part in parts if states[0][part] != states[1][part]), None)
