"""New words for a model: one decoder row and one bias entry each, beside their pieces or in place of them.

Old tokens keep their ids and, bit for bit, their rows. A new row starts as the mean of its pieces' rows.
Beside its pieces a term has a dimension and no token: texts are read by the pieces as before (`model.entries`).
In place of them it has a token and an input row, so that an extended model begins where the old one stood. So do
terms that the tokenizer has no pieces for: texts that say another unknown word have the same.

Plain words join a WordPiece vocabulary, so that they keep their inflections (`kubectl`, `##s`). Words that the
pre-tokenizer splits (`max_connections`), or that would break ordinary words (`repl` in `replenish`), and all words of
other tokenizers, are matched whole before the model runs; so are all words once a tokenizer has such tokens, whose ids
stand behind its vocabulary. In scripts that put no spaces between words, "whole" means nothing: a term is matched
wherever it stands.
"""

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch
from tokenizers import AddedToken, Tokenizer
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from sparse_adapt.errors import ModelError, SparseAdaptError
from sparse_adapt.files.records import JsonObject
from sparse_adapt.model.encoder import Encoder, NewToken
from sparse_adapt.model.entries import UNSPACED
from sparse_adapt.model.saved import folded
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.terms.mining import Term
from sparse_adapt.terms.words import SPACE_MARK

Pieces = Literal["beside", "replace"]

ORDINARY_WORDS = 200_000
FOLDED = re.compile(r"[\s-]")  # what a term holds that texts write in several ways
INFLECTIONS = frozenset({"s", "es", "ed", "d", "ing", "er", "ers", "ly", "ism", "ist"})


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


def extend(encoder: Encoder, terms: Sequence[Term], pieces: Pieces = "replace") -> Extension:
    """Give each term rows of its own. Changes the encoder in place; ids follow the old ones.

    `pieces`: whether a term has a token in place of its pieces, or a dimension beside them, as sparse models alone can.
    In place of its pieces a term is one token wherever it stands between spaces or punctuation. Tokenizers other than
    WordPiece then take what follows it for the beginning of a word where they do so after any token of their own.
    Raises TermError, before anything is changed, for a term that normalises to nothing, or has more pieces than a text;
    ModelError where the model has terms beside their pieces, and one is to replace its own.
    """
    tokenizer = encoder.tokenizer
    chosen, folded, known = _choose(tokenizer, terms, {each.token for each in encoder.new_tokens})
    if not chosen:
        return Extension((), folded, {}, known)
    pieces_by = dict(zip(chosen, pieces_of(tokenizer, list(chosen)), strict=True))
    if pieces == "beside":
        check_takes_entries(encoder)
        unknown = {token for token, ids in pieces_by.items() if tokenizer.unk_token_id in ids}
        beside = {token: term for token, term in chosen.items() if token not in unknown}
        _check_length(encoder, {chosen[token].text: pieces_by[token] for token in beside})
        chosen = {token: term for token, term in chosen.items() if token in unknown}
    else:
        beside = {}
    if chosen and encoder.entries is not None:
        first = next(iter(chosen.values())).text
        raise ModelError(
            f"the model has terms beside their pieces, so that no token can replace those of {first!r}; extend the "
            "base model with all terms at once"
        )
    new_tokens, guarded = _replace(encoder, chosen, pieces_by) if chosen else ((), {})
    first_beside = 1 + max(
        [*encoder.tokenizer.get_vocab().values(), *(each.token_id for each in encoder.new_tokens)]
    )
    entries = tuple(
        NewToken(first_beside + number, token, term.text, term.category, pieces_by[token], beside=True)
        for number, (token, term) in enumerate(beside.items())
    )
    _grow(encoder, entries)
    encoder.new_tokens = (*encoder.new_tokens, *entries)
    return Extension((*new_tokens, *entries), folded, guarded, known)


def check_takes_entries(encoder: Encoder) -> None:
    """Raise ModelError for a model in which a term without a token would have no weight."""
    if not isinstance(encoder, SparseEncoder):
        raise ModelError("a dense model has no dimension for a term; let terms replace their pieces")
    if encoder.query_side is not None or encoder.query_encoder is not None:
        raise ModelError(
            "its queries are read by something else than its documents, which would never activate a term beside its "
            "pieces; let terms replace their pieces"
        )


def _check_length(encoder: Encoder, pieces: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a term that no text can say, for it has more pieces than are read. `pieces`: by the term's text."""
    longest = encoder.max_tokens - encoder.tokenizer.num_special_tokens_to_add()
    for term, ids in pieces.items():
        if len(ids) > longest:
            raise TermError(
                term, f"has {len(ids):,} pieces, where {longest:,} of a text are read; shorten it"
            )


def _replace(
    encoder: Encoder, chosen: Mapping[str, Term], pieces: Mapping[str, tuple[int, ...]]
) -> tuple[tuple[NewToken, ...], dict[str, list[str]]]:
    """Give terms, by their names, tokens in place of their pieces; which match whole words, for which words' sake."""
    tokenizer = encoder.tokenizer
    entries, guarded = choose_entries(tokenizer, list(chosen))
    extended = with_entries(tokenizer, entries)
    vocabulary = extended.get_vocab()  # by chance one of two tokens with one id, which gaps lead to
    ids = {token: vocabulary.get(token, len(tokenizer)) for token in chosen}
    new_tokens = [
        NewToken(ids[token], token, chosen[token].text, chosen[token].category, pieces[token])
        for token in sorted(chosen, key=ids.__getitem__)
    ]
    check_kept(extended, new_tokens, 1 + max(tokenizer.get_vocab().values()))
    encoder.tokenizer = extended
    _grow(encoder, new_tokens)
    encoder.new_tokens = (*encoder.new_tokens, *new_tokens)
    return tuple(new_tokens), {chosen[token].text: words for token, words in guarded.items()}


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
    tokenizer: PreTrainedTokenizerFast, terms: Sequence[Term], has: Container[str]
) -> tuple[dict[str, Term], dict[str, str], tuple[str, ...]]:
    """The first term of each token, the others of the same token under their texts, and terms that are tokens.

    `has`: names of terms that the model was given before.
    """
    known: list[str] = []
    chosen: dict[str, Term] = {}
    folded: dict[str, str] = {}
    vocabulary = tokenizer.get_vocab()
    for term in terms:
        token = normalise(tokenizer, term.text)
        if not token:
            raise TermError(term.text, "normalises to nothing; remove it")
        if token in vocabulary or _collapsed(term.text) in vocabulary or token in has:
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
    """The mean of some rows (H) of a parameter (V, H), or of some entries of a bias (V)."""
    return parameter[list(pieces)].double().mean(dim=0).to(parameter.dtype)


# -- how a tokenizer finds a token --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """A token, and how it is matched whole; None where it joins the WordPiece vocabulary."""

    token: str
    whole: AddedToken | None


def choose_entries(
    tokenizer: PreTrainedTokenizerFast, tokens: list[str]
) -> tuple[list[TokenEntry], dict[str, list[str]]]:
    """How each token is best found, and which are matched whole for the sake of which ordinary words."""
    guarded: dict[str, list[str]] = {}
    joins = set[str]()
    model = _state(tokenizer)["model"]
    if is_wordpiece(tokenizer) and len(tokenizer) == len(model["vocab"]):
        plain = [token for token in tokens if _is_one_word(tokenizer, token, model)]
        guarded = _ordinary_words_broken_by(frozenset(plain), model["vocab"])
        joins = {token for token in plain if token not in guarded}
    return [
        TokenEntry(token, None if token in joins else _matched_whole(tokenizer, token)) for token in tokens
    ], guarded


def entries_of(tokenizer: PreTrainedTokenizerFast, tokens: Sequence[str]) -> list[TokenEntry]:
    """How a tokenizer finds tokens that were given to it."""
    added = {str(token): token for token in tokenizer.added_tokens_decoder.values()}
    return [TokenEntry(token, added.get(token)) for token in tokens]


def with_entries(
    tokenizer: PreTrainedTokenizerFast, entries: Sequence[TokenEntry]
) -> PreTrainedTokenizerFast:
    """A tokenizer like this one that finds some more tokens: those that join its vocabulary have the first ids.

    Where one of them is a phrase or a compound, every run of white space is a space to it, and U+2011 a hyphen.
    """
    state = _state(tokenizer)
    joins = [entry.token for entry in entries if entry.whole is None]
    if joins:
        state["model"]["vocab"].update({token: len(tokenizer) + number for number, token in enumerate(joins)})
    if any(entry.whole is not None and FOLDED.search(entry.token) for entry in entries):
        state["normalizer"] = folded(state["normalizer"])
    raw = Tokenizer.from_str(json.dumps(state))
    raw.add_tokens([entry.whole for entry in entries if entry.whole is not None])
    return _wrap(raw, tokenizer)


def is_wordpiece(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether words are cut by the longest entry of a vocabulary that they begin with."""
    return type(tokenizer.backend_tokenizer.model).__name__ == "WordPiece"


def normalised(tokenizer: PreTrainedTokenizerFast, text: str) -> str:
    """A text as the tokenizer's normalizer leaves it."""
    normalizer = tokenizer.backend_tokenizer.normalizer
    return text if normalizer is None else str(normalizer.normalize_str(text))


def pieces_of(tokenizer: PreTrainedTokenizerFast, tokens: Sequence[str]) -> list[tuple[int, ...]]:
    """Ids of tokens inside a text, that is after a space where the tokenizer marks one."""
    if not tokens:
        return []
    space = "" if is_wordpiece(tokenizer) else " "
    encoded = tokenizer([f"{space}{token}" for token in tokens], add_special_tokens=False)
    return [tuple(ids) for ids in encoded["input_ids"]]


def _state(tokenizer: PreTrainedTokenizerFast) -> JsonObject:
    state: JsonObject = json.loads(tokenizer.backend_tokenizer.to_str())
    return state


def _wrap(raw: Tokenizer, model: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """A tokenizer that transformers loads just as `tokenizers` does, from tokenizer.json alone."""
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        model_max_length=model.model_max_length,
        model_input_names=model.model_input_names,
        padding_side=model.padding_side,
        truncation_side=model.truncation_side,
        clean_up_tokenization_spaces=False,
        extra_special_tokens=model.extra_special_tokens,
        **model.special_tokens_map,
    )


def _matched_whole(tokenizer: PreTrainedTokenizerFast, token: str) -> AddedToken:
    """A token that is looked for in the normalised text, or in the raw one where normalising marks spaces."""
    return AddedToken(
        token,
        single_word=not (UNSPACED.match(token[0]) and UNSPACED.match(token[-1])),
        normalized=SPACE_MARK not in normalised(tokenizer, " a a"),
        lstrip=not is_wordpiece(tokenizer),  # others write the space before a word into its token
    )


def _is_one_word(tokenizer: PreTrainedTokenizerFast, token: str, model: JsonObject) -> bool:
    """Whether the WordPiece model is asked for this token where it stands in a text: as one word of its own."""
    pre_tokenizer = tokenizer.backend_tokenizer.pre_tokenizer
    if len(token) > model["max_input_chars_per_word"] or UNSPACED.search(token):
        return False
    text = normalised(tokenizer, token)
    return pre_tokenizer is None or [word for word, _ in pre_tokenizer.pre_tokenize_str(text)] == [token]


def _ordinary_words_broken_by(tokens: frozenset[str], vocabulary: dict[str, int]) -> dict[str, list[str]]:
    """Which tokens an insertion into WordPiece would let loose on which ordinary words (wordfreq, English).

    WordPiece takes the longest token that a word begins with; the rest is harmless where it is an inflection.
    """
    shortest = min(map(len, tokens), default=0)
    broken: dict[str, list[str]] = {}
    for word in _ordinary_words() if tokens else ():
        if word in vocabulary or word in tokens:
            continue
        for end in range(len(word) - 1, shortest - 1, -1):
            start = word[:end]
            if start in tokens and word[end:] not in INFLECTIONS:
                broken.setdefault(start, []).append(word)
            if start in tokens or start in vocabulary:
                break
    return broken


@cache
def _ordinary_words() -> list[str]:
    from wordfreq import top_n_list

    return list(top_n_list("en", ORDINARY_WORDS))
