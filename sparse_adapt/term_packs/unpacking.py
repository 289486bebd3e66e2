"""Packs put into a model folder, or taken out of it: another folder, whole or not at all."""

import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ConfigError, unknown
from sparse_adapt.files.folders import output_folder
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.watching import Heard, silent
from sparse_adapt.retrieve.touched import touched_by, write_ids
from sparse_adapt.stages.card import making_of, with_record, write_card
from sparse_adapt.stages.record import new_record, read_record, write_record
from sparse_adapt.term_packs.held import Opened, copy_cutting, open_model, write_held
from sparse_adapt.term_packs.pack import TermPack, read_pack
from sparse_adapt.term_packs.putting import check_apart, check_fits, put_in


@dataclass(frozen=True)
class Unpacking:
    """A model whose packs are to be others: what it was, and the packs that it will have."""

    source: str
    before: Opened
    packs: tuple[TermPack, ...]

    @property
    def added(self) -> list[TermPack]:
        """The packs that it hasn't yet."""
        return [pack for pack in self.packs if pack not in self.before.packs]


def plan_unpacking(files: Sequence[str | Path], model: str | Path, remove: Sequence[str] = ()) -> Unpacking:
    """The packs that a model is to have: its own but for those to be removed, by name, and those in the files.

    Raises ConfigError for a name that is none of its packs', and InputError for a file that is no pack, or none for
    this model, and for two packs with a term in common.
    """
    added = [read_pack(file) for file in files]
    before = open_model(model)
    names = [pack.name for pack in before.packs]
    for name in remove:
        if not names:
            raise ConfigError(f"{model}: holds no term pack, so there is none to remove")
        if name not in names:
            raise ConfigError(unknown("pack", name, names))
    packs = (*(pack for pack in before.packs if pack.name not in remove), *added)
    for pack in added:
        check_fits(pack, before.sha256, str(model))
    check_apart(packs, before.base, str(model))
    return Unpacking(str(model), before, packs)


def carry_out(
    plan: Unpacking,
    out: Path,
    documents: Iterable[Document] | None = None,
    *,
    overwrite: bool = False,
    heard: Heard = silent,
) -> list[str] | None:
    """Write the model with the packs that it is to have; of documents, the ids of those to be encoded again.

    They are written into `reencode.txt` as well. Raises OutputError for a place that is taken.
    """
    started, opened = time.monotonic(), plan.before
    reads: list[str | Path] = [plan.source, *(pack.source for pack in plan.added)]
    with output_folder(Place(out, overwrite=overwrite, resumable=False, reads=reads)) as work:
        encoder = opened.base
        if plan.packs:
            write_held(work, opened, plan.packs)
            put_in(encoder, plan.packs)
        encoder.save(work)
        if not plan.packs:
            copy_cutting(opened.cutting, work)
        _write_about(work, plan, out.name, started)
        ids = None if documents is None else _to_encode_again(plan, encoder, documents, heard)
        if ids is not None:
            write_ids(work, ids)
    return ids


def _write_about(work: Path, plan: Unpacking, name: str, started: float) -> None:
    """The record and the card: how the model was made of its base; without packs those of the base itself."""
    base = plan.before.model
    if not plan.packs:
        record = read_record(base)
        write_card(work, making_of(base))
    else:
        files = [pack.source.name for pack in plan.packs]
        command = shlex.join(["sparse-adapt", "unpack", *files, "--model", Path(base).name, "-o", name])
        record = {**new_record("unpack", base, {}, {}, started), "stages": [], "command": command}
        write_card(work, with_record(record))
    if record is not None:
        write_record(work, record)


# -- what has to be encoded again -------------------------------------------------------------------


def moved(before: Mapping[str, int], now: Mapping[str, int]) -> list[int]:
    """The ids of tokens that have none, or another one, in the model before."""
    return [token_id for token, token_id in now.items() if before.get(token) != token_id]


def _to_encode_again(
    plan: Unpacking, encoder: SparseEncoder, documents: Iterable[Document], heard: Heard
) -> list[str]:
    """The ids of the documents whose vectors the two models make differently.

    They say or light a token that is new, that has gone, or that has another id: engines may know it by that.
    """
    before, names = plan.before.tokens, _names(plan)
    now = {token.token: token.token_id for token in encoder.new_tokens if token.token in names}
    asked = [(encoder, moved(before, now))]
    if gone := [token_id for token, token_id in before.items() if token not in now]:
        asked.append((SparseEncoder.load(plan.source), gone))
    return touched_by(asked, documents, heard)


def _names(plan: Unpacking) -> set[str]:
    return {token.token for pack in plan.packs for token in pack.header.tokens}
