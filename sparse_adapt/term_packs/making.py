"""A term pack out of a taught model, whose body has to have stood still.

Its base is the earliest model that the records of its stages lead back to, and of which nothing has moved since.
"""

import getpass
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sparse_adapt import __version__
from sparse_adapt.errors import ConfigError, ModelError, unknown
from sparse_adapt.model.encoder import NewToken
from sparse_adapt.model.folder import UNKNOWN, ModelFolder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import entries_of, pieces_of
from sparse_adapt.stages.card import in_short
from sparse_adapt.stages.made_from import PATH
from sparse_adapt.stages.record import EXTENDING, read_record
from sparse_adapt.term_packs.base import check_takes_packs, difference
from sparse_adapt.term_packs.held import Opened, described, open_model
from sparse_adapt.term_packs.pack import (
    FORMAT,
    VERSION,
    Header,
    Made,
    PackToken,
    TermPack,
    Whole,
    checksum_of,
)
from sparse_adapt.term_packs.putting import rows_at

Record = Mapping[str, Any]


class Step(NamedTuple):
    """A model on the way from a base to a taught model: what it was made from, and the record of how."""

    before: str
    record: Record
    model: str


def make_pack(
    source: str | Path,
    out: Path,
    terms: Sequence[str] = (),
    base: str | Path | None = None,
    author: str | None = None,
) -> tuple[TermPack, str]:
    """A pack of some terms of a model, by default of all that its base lacks, to be written to `out`; and its base.

    base: the model that it was made from; by default what the records of its stages lead back to.

    Raises ModelError where there is no base, where the model's old weights aren't its base's and where it has no new
    term, and ConfigError for a term that is none of its new ones.
    """
    encoder = SparseEncoder.load(source)
    check_takes_packs(encoder, source)
    if not encoder.new_tokens:
        raise ModelError(f"{source}: has no new term; give it one with: sparse-adapt extend")
    steps = _steps_to(str(source))
    found = _base_of(encoder, str(source), None if base is None else str(base), steps)
    first = len(found.base.tokenizer)
    new = [token for token in encoder.new_tokens if token.token_id >= first]
    if not new:
        raise ModelError(
            f"{source}: has no term that {found.model} lacks; name the model before the extension with --base"
        )
    chosen = _chosen(new, terms)
    rows = rows_at(encoder, [token.token_id for token in chosen])
    header = Header(
        format=FORMAT,
        format_version=VERSION,
        base=described(found),
        made=Made(
            author=author or _user(),
            at=time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
            version=__version__,
            stages=tuple(_stages(_since(found.model, steps))),
        ),
        tokens=tuple(_tokens(encoder, found.base, chosen)),
        sha256="",
    )
    whole = header.model_copy(update={"sha256": checksum_of(header, rows)})
    return TermPack(out, whole, rows), found.model


# -- the base -------------------------------------------------------------------------------------


def _steps_to(source: str) -> list[Step]:
    """How a model was made, by the records of its stages, the first stage first; empty where none tells."""
    steps, place, seen = list[Step](), source, set[str]()
    while (record := read_record(place)) is not None and place not in seen:
        seen.add(place)
        before = str(record["model"][PATH])
        steps.insert(0, Step(before, record, place))
        place = before
    return steps


def _base_of(encoder: SparseEncoder, source: str, named: str | None, steps: Sequence[Step]) -> Opened:
    """The earliest model on the way of which nothing has moved since, without packs; the one that is named instead."""
    candidates = [step.before for step in steps] if named is None else [named]
    if not candidates:
        raise ModelError(
            f"{source}: nothing in it tells which model it was made from; name that model with --base"
        )
    there = [each for each in candidates if _is_there(each)]
    if not there:
        raise ModelError(
            f"{source}: was made from {candidates[0]}, which isn't there; name that model with --base"
        )
    faults: dict[str, str] = {}
    for each in there:
        opened = open_model(each)
        faults[each] = difference(encoder, opened.base)
        if not faults[each]:
            return opened
    extended = (step.before for step in reversed(steps) if step.record["stage"] in EXTENDING)
    nearest = next((each for each in extended if each in faults), there[-1])
    by = _mover(nearest, steps) if named is None else ""
    raise ModelError(
        f"{source}: {faults[nearest]} isn't what it is in {nearest}{by}, so its body didn't stand still; teach the new "
        "terms with `dictionary --train rows`, or by a stage with --train new, as warmup is unasked"
    )


def _mover(base: str, steps: Sequence[Step]) -> str:
    """By which stage the first weight of a base was moved, as far as the models between them are there."""
    before, first = SparseEncoder.load(base), [step.before for step in steps].index(base)
    for step in steps[first:]:
        if _is_there(step.model) and difference(SparseEncoder.load(step.model), before):
            return f": the stage {step.record['stage']} moved it"
    return ""


def _since(base: str, steps: Sequence[Step]) -> Sequence[Step]:
    """The steps behind a model; all, where none of them made it."""
    made = [number for number, step in enumerate(steps, start=1) if _same(step.model, base)]
    return steps[max(made, default=0) :]


def _is_there(model: str) -> bool:
    try:
        return ModelFolder.of(model).local is not None
    except ModelError:
        return False


def _same(one: str, other: str) -> bool:
    return one == other or (Path(one).exists() and Path(one).resolve() == Path(other).resolve())


# -- its terms, and what taught them ----------------------------------------------------------------


def _chosen(new: Sequence[NewToken], terms: Sequence[str]) -> list[NewToken]:
    """The new tokens of some terms, by default all. Raises ConfigError for a term that is none."""
    if not terms:
        return list(new)
    exact = {name: token.token_id for token in new for name in (token.token, token.term)}
    in_any_case = {name.casefold(): token_id for name, token_id in exact.items()}
    wanted = set[int]()
    for term in terms:
        token_id = exact.get(term, in_any_case.get(term.casefold()))
        if token_id is None:
            raise ConfigError(unknown("term", term, [token.term for token in new]))
        wanted.add(token_id)
    return [token for token in new if token.token_id in wanted]


def _tokens(encoder: SparseEncoder, base: SparseEncoder, chosen: Sequence[NewToken]) -> Iterator[PackToken]:
    """Each token with how it is found, and with the pieces that the base makes of it."""
    names = [token.token for token in chosen]
    found = zip(chosen, entries_of(encoder.tokenizer, names), pieces_of(base.tokenizer, names), strict=True)
    for token, entry, pieces in found:
        held = entry.whole
        whole = held and Whole(
            single_word=held.single_word,
            normalized=held.normalized,
            lstrip=held.lstrip,
            rstrip=held.rstrip,
        )
        yield PackToken(
            token=token.token, term=token.term, category=token.category, pieces=pieces, whole=whole
        )


def _stages(steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
    """The stages that taught a model, without a path of this machine; those of `adapt` are in its own record."""
    for step in steps:
        yield from map(in_short, step.record.get("stages", [step.record]))


def _user() -> str:
    """The name of whoever is logged in."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return UNKNOWN
