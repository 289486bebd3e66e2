"""New words for a model: one token, one input row, one decoder row and one bias entry each.

Old tokens keep their ids and, bit for bit, their rows. A new row starts as the mean of the pieces it
replaces, so that an extended model begins where the old one stood.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from sparse_adapt.errors import ModelError, SparseAdaptError
from sparse_adapt.model.encoder import Encoder, NewToken
from sparse_adapt.model.entries import choose_entries, normalised, pieces_of, with_entries
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.terms.mining import Term
from sparse_adapt.terms.signs import SPACE_MARK


class TermError(SparseAdaptError):
    """A term that can't become a token; `term` says which."""

    def __init__(self, term: str, problem: str) -> None:
        self.term, self.problem = term, problem
        super().__init__(f"term {term!r} {problem}")


@dataclass(frozen=True, slots=True)
class Extension:
    """What an extension did.

    `folded`: a term and the earlier one that normalises to the same token; `guarded`: a term that matches
    whole words only, and the ordinary words that it would have broken otherwise; `known`: terms that are tokens
    already, and were left out.
    """

    new_tokens: tuple[NewToken, ...]
    folded: dict[str, str]
    guarded: dict[str, list[str]]
    known: tuple[str, ...] = ()


def extend(encoder: Encoder, terms: Sequence[Term]) -> Extension:
    """Give each term a token and rows of its own. Changes the encoder in place; ids follow the old ones.

    A term is one token wherever it stands between spaces or punctuation. Tokenizers other than WordPiece
    then take what follows it for the beginning of a word where they do so after any token of their own.
    Raises TermError, before anything is changed, for a term that normalises to nothing.
    """
    tokenizer = encoder.tokenizer
    chosen, folded, known = _choose(tokenizer, terms)
    if not chosen:
        return Extension((), folded, {}, known)
    pieces = dict(zip(chosen, pieces_of(tokenizer, list(chosen)), strict=True))
    entries, guarded = choose_entries(tokenizer, list(chosen))
    extended = with_entries(tokenizer, entries)
    told = extended.get_vocab()  # by chance one of two tokens with one id, which gaps lead to
    ids = {token: told.get(token, len(tokenizer)) for token in chosen}
    new_tokens = [
        NewToken(ids[token], token, chosen[token].text, chosen[token].category, pieces[token])
        for token in sorted(chosen, key=ids.__getitem__)
    ]
    check_kept(extended, new_tokens, 1 + max(tokenizer.get_vocab().values()))
    encoder.tokenizer = extended
    _grow(encoder, new_tokens)
    encoder.new_tokens = (*encoder.new_tokens, *new_tokens)
    return Extension(
        tuple(new_tokens), folded, {chosen[token].text: words for token, words in guarded.items()}, known
    )


def normalise(tokenizer: PreTrainedTokenizerFast, term: str) -> str:
    """A term as the tokenizer sees it: lower case where it lowers case, without accents where it strips them.

    Spaces that a normalizer puts in of its own accord, as BERT's does around Chinese signs, are left out.
    """
    spaced = "".join(
        sign if sign.isalnum() or not normalised(tokenizer, sign).isspace() else " " for sign in term
    )
    words = (normalised(tokenizer, word) for word in _collapsed(spaced).split(" "))
    return _collapsed(" ".join(word.replace(" ", "").replace(SPACE_MARK, "") for word in words))


def _collapsed(text: str) -> str:
    """A text with single spaces; signs beyond ASCII, such as the no-break space, stay as they are."""
    return re.sub(r"[ \t\r\n\f\v]+", " ", text).strip()


def _choose(
    tokenizer: PreTrainedTokenizerFast, terms: Sequence[Term]
) -> tuple[dict[str, Term], dict[str, str], tuple[str, ...]]:
    """The first term of each token, the others of the same token under their texts, and terms that are tokens."""
    known: list[str] = []
    chosen: dict[str, Term] = {}
    folded: dict[str, str] = {}
    vocabulary = tokenizer.get_vocab()
    for term in terms:
        token = normalise(tokenizer, term.text)
        if not token:
            raise TermError(term.text, "normalises to nothing; remove it")
        if token in vocabulary or _collapsed(term.text) in vocabulary:
            known.append(term.text)
        elif token in chosen:
            folded[term.text] = chosen[token].text
        else:
            chosen[token] = term
    for token, pieces in zip(chosen, pieces_of(tokenizer, list(chosen)), strict=True):
        if not pieces:
            raise TermError(chosen[token].text, "is nothing to this tokenizer; remove it")
        if len(pieces) == 1 and pieces[0] != tokenizer.unk_token_id:
            known.append(chosen[token].text)
    chosen = {token: term for token, term in chosen.items() if term.text not in known}
    return chosen, folded, tuple(known)


def check_kept(tokenizer: PreTrainedTokenizerFast, new_tokens: Sequence[NewToken], first: int) -> None:
    """Refuse a term that this tokenizer can't keep whole, and a tokenizer with gaps in its ids."""
    for number, token in enumerate(new_tokens, start=first):
        if token.token_id != number:
            raise ModelError(
                f"the tokenizer's ids have gaps: its largest is {first - 1:,}, but {token.token!r} would be "
                f"{token.token_id:,}; choose a model whose ids have none"
            )
    for spellings in (
        [token.token for token in new_tokens],
        [_collapsed(token.term) for token in new_tokens],
    ):
        for token, ids in zip(new_tokens, pieces_of(tokenizer, spellings), strict=True):
            if ids != (token.token_id,):
                raise TermError(token.term, "can't be kept whole by this tokenizer; remove it")


@torch.no_grad()
def _grow(encoder: Encoder, new_tokens: Sequence[NewToken]) -> None:
    """Room for the new rows, each the mean of its pieces' rows; a model's spare rows are used first."""
    rows = max(encoder.vocabulary_size, 1 + max((token.token_id for token in new_tokens), default=0))
    if rows > encoder.vocabulary_size:
        encoder.grow(rows)
    for parameter in _row_parameters(encoder):
        for token in new_tokens:
            parameter[token.token_id] = _mean_of(parameter, token.pieces)
    if isinstance(encoder, SparseEncoder) and encoder.query_side is not None:
        pieces = {token.token_id: token.pieces for token in new_tokens}
        encoder.query_side = encoder.query_side.grown(rows, pieces)


def _row_parameters(encoder: Encoder) -> Iterator[nn.Parameter]:
    yield encoder.input_rows
    if encoder.output_rows is not encoder.input_rows:
        yield encoder.output_rows
    if encoder.output_bias is not None:
        yield encoder.output_bias


def _mean_of(parameter: Tensor, pieces: tuple[int, ...]) -> Tensor:
    return parameter[list(pieces)].double().mean(dim=0).to(parameter.dtype)
