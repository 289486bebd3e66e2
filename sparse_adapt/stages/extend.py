"""Extend: each term becomes a token of the model, with an input row, an output row and a bias of its own."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sparse_adapt.errors import InputError, ModelError
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import TERMS, Inputs
from sparse_adapt.stages.stage import Changed, Stage

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.vocabulary import Extension


SHOWN = 10  # terms that are named in a sentence


class Extend(Settings):
    """Each term gets an output row and a bias, which begin as the mean of its pieces; in place of them an input row."""

    pieces: Literal["beside", "replace"] = setting(
        "replace",
        "Whether a term has a token in place of its pieces, or a dimension beside them, so that texts are read as "
        "before and the tokenizer stays the base model's.",
    )


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Extend) -> Changed:
    """Extend the encoder. Raises InputError with the line of a term that can't become a token."""
    from sparse_adapt.model import vocabulary

    try:
        extension = vocabulary.extend(encoder, inputs[TERMS], settings.pieces)
    except vocabulary.TermError as error:
        path = inputs.paths[TERMS.key]
        raise InputError(path, str(error), line=_line_of(Path(path), error.term)) from error
    except ModelError as error:
        raise ModelError(f"{inputs.model}: {error}") from error
    record: dict[str, object] = {"folded": extension.folded, "guarded": extension.guarded}
    if extension.known:
        record["known"] = list(extension.known)
    return Changed(_summary(extension, encoder.vocabulary_size), record)


def _summary(extension: "Extension", size: int) -> str:
    """How many tokens a model has now, and how many of them are new."""
    beside = sum(token.beside for token in extension.new_tokens)
    summary = f"{len(extension.new_tokens):,} new tokens, {size:,} in all"
    if beside:
        summary = f"{beside:,} terms beside their pieces, {size:,} dimensions in all"
    if beside and beside < len(extension.new_tokens):
        summary += f"; {len(extension.new_tokens) - beside:,} that the tokenizer doesn't know have a token"
    summary += known_terms_note(extension.known)
    if extension.folded:
        summary += f"; {len(extension.folded):,} variants of the same token folded"
    if extension.guarded:
        summary += f"; {len(extension.guarded):,} match whole words only, to leave ordinary words unbroken"
    return summary


def known_terms_note(terms: Sequence[str]) -> str:
    """The end of a sentence that names terms which needn't become tokens; nothing without any."""
    named = ", ".join([*terms[:SHOWN], *(["..."] if len(terms) > SHOWN else [])])
    return f"; {len(terms):,} terms are tokens already and were skipped: {named}" if terms else ""


def _line_of(path: Path, term: str) -> int | None:
    """The line of a file that first holds a term as a JSON string."""
    wanted = json.dumps(term, ensure_ascii=False)
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if wanted in line or json.dumps(term) in line:
            return number
    return None


EXTEND = Stage("extend", Extend, (TERMS,), build)
