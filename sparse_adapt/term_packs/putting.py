"""Packs put into their base, and the base that is left when they are taken out again.

A model with packs is made from two things alone: its base, and the packs in their order. So a pack that is taken out
leaves what would be there without it. Tokens that join a WordPiece vocabulary have ids before those that are matched
whole, as `tokenizers` numbers them; within each kind the packs stand in their order. Dimensions: V rows of a model.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from transformers import PreTrainedTokenizerFast

from sparse_adapt.errors import InputError
from sparse_adapt.model.encoder import NewToken
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import TermError, check_kept, is_wordpiece, with_entries
from sparse_adapt.term_packs.base import rows_of
from sparse_adapt.term_packs.pack import AGAIN, PackToken, Rows, TermPack


def check_fits(pack: TermPack, sha256: str, model: str) -> None:
    """Raise InputError for a pack of another base than a model, whose checksum is given."""
    base = pack.header.base
    if base.sha256 != sha256:
        raise InputError(
            pack.source,
            f"fits {base.hub_id or base.name} ({base.tokens:,} tokens), and {model} isn't that model, by the checksum "
            "of its weights and vocabulary; name the pack's base with --model",
        )


def check_apart(packs: Sequence[TermPack], base: SparseEncoder, model: str) -> None:
    """Raise InputError for a term that the base has, or that two packs have, and for two packs of one name."""
    vocabulary, owners, names = base.tokenizer.get_vocab(), dict[str, TermPack](), dict[str, TermPack]()
    for pack in packs:
        if (other := names.setdefault(pack.name, pack)) is not pack:
            raise InputError(
                pack.source,
                f"another pack is called {pack.name} as well ({other.source}); rename the file, or take the other out "
                f"with --remove {pack.name}",
            )
        for token in pack.header.tokens:
            if token.token in vocabulary:
                raise InputError(
                    pack.source,
                    f"{model} has its term {token.term!r} already; make the pack anew without it",
                )
            if (other := owners.setdefault(token.token, pack)) is not pack:
                raise InputError(
                    pack.source,
                    f"{other.source} has its term {token.term!r} as well; leave one of the packs out, or --remove it",
                )


def put_in(base: SparseEncoder, packs: Sequence[TermPack]) -> None:
    """Give a base the tokens of some packs, which are known to fit and to be apart. Changes the base in place.

    Raises InputError for rows of another shape, and for a term that isn't kept whole beside those of other packs.
    """
    tokens = [token for pack in packs for token in pack.header.tokens]
    if not tokens:
        return
    _check_shapes(packs, base)
    tokenizer = with_entries(base.tokenizer, [token.entry for token in tokens])
    new_tokens = _numbered(tokenizer, tokens)
    _check_whole(tokenizer, new_tokens, packs, first=len(base.tokenizer))
    base.tokenizer = tokenizer
    rows = max(base.vocabulary_size, 1 + new_tokens[-1].token_id)
    if rows > base.vocabulary_size:
        base.grow(rows)
    if base.query_side is not None:
        base.query_side = base.query_side.grown(rows, {})
    ids = tokenizer.get_vocab()
    for pack in packs:
        places = [ids[token.token] for token in pack.header.tokens]
        for kind, held in rows_of(base).items():
            held[places] = pack.rows[kind].to(held)
    base.new_tokens = (*base.new_tokens, *new_tokens)


def take_out(encoder: SparseEncoder, tokenizer: PreTrainedTokenizerFast, spare: Rows, rows: int) -> None:
    """Leave of a model with packs its base: that tokenizer, so many rows. Changes the model in place.

    `spare`: the base's rows behind its last token, which tokens of packs may have taken.
    """
    first = len(tokenizer)
    encoder.tokenizer = tokenizer
    encoder.new_tokens = tuple(token for token in encoder.new_tokens if token.token_id < first)
    if rows < encoder.vocabulary_size:
        encoder.grow(rows)
    if encoder.query_side is not None:
        encoder.query_side = replace(encoder.query_side, weights=encoder.query_side.weights[:rows].copy())
    for kind, held in rows_of(encoder).items():
        if rows > first:
            held[first:] = spare[kind].to(held)


def spare_rows(base: SparseEncoder) -> dict[str, torch.Tensor]:
    """The rows behind a base's last token, of each kind; empty where each row stands for a token."""
    first = len(base.tokenizer)
    if first == base.vocabulary_size:
        return {}
    return {kind: held[first:].clone().contiguous() for kind, held in rows_of(base).items()}


def rows_at(encoder: SparseEncoder, ids: Sequence[int]) -> dict[str, torch.Tensor]:
    """Copies of a model's rows of some tokens, of each kind."""
    return {kind: held[list(ids)].cpu().clone() for kind, held in rows_of(encoder).items()}


def _numbered(tokenizer: PreTrainedTokenizerFast, tokens: Sequence[PackToken]) -> list[NewToken]:
    """The tokens under their ids, in the order of these."""
    ids = tokenizer.get_vocab()
    found = [NewToken(ids[each.token], each.token, each.term, each.category, each.pieces) for each in tokens]
    return sorted(found, key=lambda each: each.token_id)


def _check_whole(
    tokenizer: PreTrainedTokenizerFast,
    new_tokens: Sequence[NewToken],
    packs: Sequence[TermPack],
    first: int,
) -> None:
    try:
        check_kept(tokenizer, new_tokens, first)
    except TermError as error:
        holder = next(pack for pack in packs if error.term in pack.terms)
        raise InputError(
            holder.source,
            f"its term {error.term!r} isn't kept whole by this tokenizer beside the other terms; leave the pack out",
        ) from error


def _check_shapes(packs: Sequence[TermPack], base: SparseEncoder) -> None:
    """Raise InputError for rows of other shapes than a base's, and for words that its tokenizer can't be given."""
    wanted = {kind: tuple(held.shape[1:]) for kind, held in rows_of(base).items()}
    for pack in packs:
        if {kind: tuple(held.shape[1:]) for kind, held in pack.rows.items()} != wanted:
            raise InputError(pack.source, f"damaged: its rows aren't of its base's shapes; {AGAIN}")
        if any(token.whole is None for token in pack.header.tokens) and not is_wordpiece(base.tokenizer):
            raise InputError(pack.source, f"damaged: its words join no vocabulary of its base; {AGAIN}")
