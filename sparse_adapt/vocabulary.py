"""New words for a model: one token, one input row, one decoder row and one bias entry each.

Old tokens keep their ids and, bit for bit, their rows. A new row starts as the mean of the pieces it
replaces, so that an extended model begins where the old one stood.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from sparse_adapt.errors import SparseAdaptError
from sparse_adapt.model import NewToken, SparseEncoder
from sparse_adapt.terms import Term

ORDINARY_WORDS = 200_000
INFLECTIONS = frozenset({"s", "es", "ed", "d", "ing", "er", "ers", "ly", "ism", "ist"})


class TermError(SparseAdaptError):
    """A term that can't become a token; `term` says which."""

    def __init__(self, term: str, problem: str) -> None:
        self.term, self.problem = term, problem
        super().__init__(f"term {term!r} {problem}")


@dataclass(frozen=True, slots=True)
class Extension:
    """What an extension did: the tokens it added, variants it folded, ordinary words it keeps whole for."""

    new_tokens: tuple[NewToken, ...]
    folded: dict[str, str]  # a term -> the earlier term that normalises to the same token
    guarded: dict[
        str, list[str]
    ]  # a term -> ordinary words it would have broken, so it matches whole words only


def extend(encoder: SparseEncoder, terms: Sequence[Term]) -> Extension:
    """Give each term a token and rows of its own. Changes the encoder in place; ids follow the old ones.

    Raises TermError, before anything is changed, for a term that normalises to nothing or is a token already.
    """
    tokenizer = encoder.tokenizer
    chosen, folded = _choose(tokenizer, terms)
    pieces = {token: _pieces(tokenizer, token) for token in chosen}
    raw, guarded = _extended_backend(tokenizer, list(chosen))
    encoder.tokenizer = _wrap(raw, tokenizer)
    new_tokens = [
        NewToken(raw.token_to_id(token), token, term.text, term.category, pieces[token])
        for token, term in chosen.items()
    ]
    _grow(encoder, new_tokens)
    encoder.new_tokens = (*encoder.new_tokens, *new_tokens)
    for token in new_tokens:
        assert _pieces(encoder.tokenizer, token.token) == (token.token_id,), token
    return Extension(
        tuple(new_tokens), folded, {chosen[token].text: words for token, words in guarded.items()}
    )


def normalise(tokenizer: PreTrainedTokenizerFast, term: str) -> str:
    """A term as the tokenizer sees it: lower case where it lowers case, accents stripped where it strips them."""
    normalizer = tokenizer.backend_tokenizer.normalizer
    if normalizer is None or type(normalizer).__name__ == "Precompiled" or not _is_wordpiece(tokenizer):
        return term.strip()
    return str(normalizer.normalize_str(term)).strip()


def _choose(
    tokenizer: PreTrainedTokenizerFast, terms: Sequence[Term]
) -> tuple[dict[str, Term], dict[str, str]]:
    chosen: dict[str, Term] = {}
    folded: dict[str, str] = {}
    for term in terms:
        token = normalise(tokenizer, term.text)
        if not token:
            raise TermError(term.text, "normalises to nothing; remove it")
        if token in chosen:
            folded[term.text] = chosen[token].text
            continue
        if len(_pieces(tokenizer, token)) == 1 and tokenizer.unk_token_id not in _pieces(tokenizer, token):
            raise TermError(term.text, "is a token of this model already; remove it")
        chosen[token] = term
    return chosen, folded


def _pieces(tokenizer: PreTrainedTokenizerFast, token: str) -> tuple[int, ...]:
    """Ids of a token inside a text, that is after a space where the tokenizer marks one."""
    text = token if _is_wordpiece(tokenizer) else f" {token}"
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def _is_wordpiece(tokenizer: PreTrainedTokenizerFast) -> bool:
    return type(tokenizer.backend_tokenizer.model).__name__ == "WordPiece"


def _extended_backend(
    tokenizer: PreTrainedTokenizerFast, tokens: list[str]
) -> tuple[Tokenizer, dict[str, list[str]]]:
    """The tokenizer's own pipeline with the tokens in it, and the ordinary words that made some whole-word only.

    Plain words join a WordPiece vocabulary, so that they keep their inflections (`kubectl`, `##s`). Words that
    the pre-tokenizer splits (`max_connections`), or that would break ordinary words (`repl` in `replenish`),
    and all words of other tokenizers, are matched whole before the model runs.
    """
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    guarded: dict[str, list[str]] = {}
    joins: list[str] = []
    if _is_wordpiece(tokenizer) and len(tokenizer) == len(state["model"]["vocab"]):
        guarded = _ordinary_words_starting_with(tokens, state["model"]["vocab"])
        joins = [token for token in tokens if token not in guarded and _is_one_word(tokenizer, token)]
        for token in joins:
            state["model"]["vocab"][token] = len(state["model"]["vocab"])
    raw = Tokenizer.from_str(json.dumps(state))
    spaced = not _is_wordpiece(tokenizer)  # such tokenizers write the space before a word into its token
    whole = [token for token in tokens if token not in set(joins)]
    raw.add_tokens(
        [AddedToken(token, single_word=True, normalized=not spaced, lstrip=spaced) for token in whole]
    )
    return raw, guarded


def _is_one_word(tokenizer: PreTrainedTokenizerFast, token: str) -> bool:
    pre_tokenizer = tokenizer.backend_tokenizer.pre_tokenizer
    return pre_tokenizer is None or len(pre_tokenizer.pre_tokenize_str(token)) == 1


def _ordinary_words_starting_with(tokens: list[str], vocabulary: dict[str, int]) -> dict[str, list[str]]:
    """Which tokens an insertion into WordPiece would let loose on which ordinary words (wordfreq, English)."""
    wanted = frozenset(tokens)
    shortest = min(map(len, tokens), default=0)
    broken: dict[str, list[str]] = {}
    for word in _ordinary_words():
        if word in vocabulary or word in wanted:
            continue
        for end in range(shortest, len(word)):
            if word[:end] in wanted and word[end:] not in INFLECTIONS:
                broken.setdefault(word[:end], []).append(word)
    return broken


@cache
def _ordinary_words() -> list[str]:
    from wordfreq import top_n_list

    return list(top_n_list("en", ORDINARY_WORDS))


def _wrap(raw: Tokenizer, model: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """A tokenizer that transformers loads just as `tokenizers` does: its pipeline comes from tokenizer.json alone."""
    special = {name: str(token) for name, token in model.special_tokens_map.items() if isinstance(token, str)}
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        model_max_length=model.model_max_length,
        model_input_names=model.model_input_names,
        padding_side=model.padding_side,
        clean_up_tokenization_spaces=False,
        **special,
    )


@torch.no_grad()
def _grow(encoder: SparseEncoder, new_tokens: Sequence[NewToken]) -> None:
    """Room for the new rows, each the mean of its pieces' rows; a model's spare rows are used first."""
    rows = max(encoder.vocabulary_size, 1 + max((token.token_id for token in new_tokens), default=0))
    if rows > encoder.vocabulary_size:
        encoder.masked_lm.resize_token_embeddings(rows, mean_resizing=False)
    for parameter in _row_parameters(encoder):
        for token in new_tokens:
            parameter[token.token_id] = _mean_of(parameter, token.pieces)


def _row_parameters(encoder: SparseEncoder) -> Iterator[nn.Parameter]:
    yield encoder.input_rows
    if encoder.output_rows is not encoder.input_rows:
        yield encoder.output_rows
    if encoder.output_bias is not None:
        yield encoder.output_bias


def _mean_of(parameter: Tensor, pieces: tuple[int, ...]) -> Tensor:
    return parameter[list(pieces)].double().mean(dim=0).to(parameter.dtype)
