"""A term pack out of a taught model, whose body has to have stood still since its base."""

import getpass
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from sparse_adapt import __version__
from sparse_adapt.errors import ConfigError, ModelError, unknown
from sparse_adapt.files.place import absolute
from sparse_adapt.files.steps import PATH
from sparse_adapt.model.encoder import NewToken
from sparse_adapt.model.folder import UNKNOWN, origin_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import entries_of, pieces_of
from sparse_adapt.plugins.packs.base import check_takes_packs, difference, ids_of, rows_at
from sparse_adapt.plugins.packs.pack import (
    FORMAT,
    REPLACING,
    VERSION,
    Base,
    Header,
    Made,
    PackToken,
    TermPack,
    Whole,
    checksum_of,
)
from sparse_adapt.plugins.packs.putting import Opened, open_model
from sparse_adapt.stages.card import in_short
from sparse_adapt.stages.record import StageRecord, read_stage_record


def make_pack(
    source: str | Path,
    base: str | Path,
    out: Path,
    terms: Sequence[str] = (),
    author: str | None = None,
) -> TermPack:
    """A pack of some terms of a model, by default of all that its base lacks, to be written to `out`.

    base: the model that it was made from, with or without packs. Raises ModelError where the model's old weights aren't
    its base's and where it has no new term, and ConfigError for a term that is none of its new ones.
    """
    encoder, before = SparseEncoder.load(source), open_model(base)
    check_takes_packs(encoder, source)
    if moved := difference(encoder, before.base):
        raise ModelError(
            f"{source}: {moved} isn't what it is in {before.model}, so its body didn't stand still; teach the new "
            "terms with `dictionary --train rows`, or by a stage with --train new, as warmup is unasked"
        )
    known = ids_of(before.base)
    new = [token for token in encoder.new_tokens if token.token_id not in known]
    if not new:
        raise ModelError(
            f"{source}: has no term that {before.model} lacks; give it one with: sparse-adapt extend"
        )
    chosen = _chosen(new, terms)
    rows = rows_at(encoder, [token.token_id for token in chosen])
    header = Header(
        format=FORMAT,
        format_version=VERSION if any(token.beside for token in chosen) else REPLACING,
        base=_described(before),
        made=Made(
            author=author or _user(),
            at=time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
            version=__version__,
            stages=tuple(dict(each) for each in _stages(absolute(str(source)), absolute(str(base)))),
        ),
        tokens=tuple(_tokens(encoder, before.base, chosen)),
        sha256="",
    )
    return TermPack(out, header.model_copy(update={"sha256": checksum_of(header, rows)}), rows)


def _described(opened: Opened) -> Base:
    """The base of a model as a pack's header names it."""
    origin = origin_of(opened.model)
    return Base(
        name=origin.name,
        hub_id=origin.hub_id,
        licence=origin.licence,
        tokens=len(opened.base.tokenizer),
        sha256=opened.sha256,
    )


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
    entries = zip(chosen, entries_of(encoder.tokenizer, names), pieces_of(base.tokenizer, names), strict=True)
    for token, entry, pieces in entries:
        whole = None if entry.whole is None else Whole.of(entry.whole)
        yield PackToken(
            token=token.token,
            term=token.term,
            category=token.category,
            pieces=pieces,
            whole=whole,
            beside=token.beside,
        )


def _stages(model: str, base: str) -> list[StageRecord]:
    """The stages between a base and a model, by the records in their folders, without a path of this machine."""
    stages, seen = list[StageRecord](), {base}
    while model not in seen and (record := read_stage_record(model)) is not None:
        stages = [*map(in_short, record.get("stages", [record])), *stages]
        seen.add(model)
        model = str(record["model"][PATH])
    return stages


def _user() -> str:
    """The name of whoever is logged in."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return UNKNOWN
