"""Packs put into a model, or taken out of it: the base, and the packs that it is to have, in their order.

The folder `packs` of a model holds a copy of each pack and `packs.json`, which names the base and its checksum. A model
with packs is always made from its base anew, so a pack that is taken out leaves what would be there without it. Tokens
that join a WordPiece vocabulary have ids before those that are matched whole, as `tokenizers` numbers them; within each
kind the packs stand in their order.
"""

import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ConfigError, InputError, ModelError, unknown
from sparse_adapt.files.folders import output_folder, write_json
from sparse_adapt.files.place import Place, absolute
from sparse_adapt.files.records import Record
from sparse_adapt.files.records import read_record as read_list
from sparse_adapt.model.encoder import NewToken
from sparse_adapt.model.folder import ModelFolder
from sparse_adapt.model.hub import PACK_FILES, fetch, hub_id_in
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import TermError, check_kept, is_wordpiece, with_entries
from sparse_adapt.plugins.packs.base import check_takes_packs, checksum_of_weights, rows_of
from sparse_adapt.plugins.packs.pack import AGAIN, TermPack, read_pack, write_pack
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.touched import touched_by, write_ids
from sparse_adapt.stages.card import making_of, with_record, write_card
from sparse_adapt.stages.record import new_record, read_stage_record, write_record

FOLDER, LIST_FILE = "packs", "packs.json"


class _PackList(Record):
    """The base of a model with packs, by its name and checksum, its packs' files, and the checksum of all of it."""

    model: str
    base_sha256: str
    packs: tuple[str, ...]
    sha256: str


@dataclass(frozen=True)
class Opened:
    """A model as its base and its packs. `whole`: the model with the packs; None where it has none."""

    base: SparseEncoder
    model: str  # how the base is named
    sha256: str  # of the base
    packs: tuple[TermPack, ...] = ()
    whole: SparseEncoder | None = None

    def ids_of_packs(self) -> dict[str, int]:
        """The tokens of the packs, with their ids."""
        return {} if self.whole is None else _ids(self.whole, self.packs)


def packs_in(source: str | Path) -> list[TermPack]:
    """The packs of a model in their order, none where it holds none; or the one in a file or on the Hub."""
    if Path(source).is_file():
        return [read_pack(source)]
    if hub_id := hub_id_in(str(source)):
        return [read_pack(path) for path in sorted(fetch(hub_id, PACK_FILES).glob("*.pack"))]
    place = ModelFolder.of(source).path / FOLDER
    entries = _read_list(place)
    return [] if entries is None else [read_pack(place / name) for name in entries.packs]


def open_model(source: str | Path) -> Opened:
    """The base of a model and its packs. A model without packs is its own base.

    Raises ModelError for one that isn't what it was when packs were put in, and where its base has gone or changed.
    """
    model = SparseEncoder.load(source)
    check_takes_packs(model, source)
    entries = _read_list(ModelFolder.of(source).path / FOLDER)
    if entries is None:
        return Opened(model, str(source), checksum_of_weights(model))
    if checksum_of_weights(model) != entries.sha256:
        raise ModelError(
            f"{source}: isn't what it was when its packs were put in; put them into {entries.model} anew"
        )
    base = SparseEncoder.load(entries.model)
    if checksum_of_weights(base) != entries.base_sha256:
        raise ModelError(
            f"{entries.model}: isn't what it was when packs were put in; put them into a copy of it anew"
        )
    return Opened(base, entries.model, entries.base_sha256, tuple(packs_in(source)), model)


# -- what is to be done -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Unpacking:
    """A model whose packs are to be others: what it was, and the packs that it will have."""

    source: str
    before: Opened
    packs: tuple[TermPack, ...]


def plan_unpacking(files: Sequence[str | Path], model: str | Path, remove: Sequence[str] = ()) -> Unpacking:
    """The packs that a model is to have: its own but for those to be removed, by name, and those in the files.

    Raises ConfigError for a name that is none of its packs', and InputError for a file that is no pack, or none for
    this model, and for two packs with a term in common.
    """
    added = [pack for file in files for pack in _packs_of(file)]
    before = open_model(model)
    names = [pack.name for pack in before.packs]
    for name in remove:
        if not names:
            raise ConfigError(f"{model}: holds no term pack, so there is none to remove")
        if name not in names:
            raise ConfigError(unknown("pack", name, names))
    for pack in added:
        _check_fits(pack, before.sha256, str(model))
    packs = (*(pack for pack in before.packs if pack.name not in remove), *added)
    _check_apart(packs, before.base, str(model))
    return Unpacking(str(model), before, packs)


def _packs_of(file: str | Path) -> list[TermPack]:
    """The pack in a file, or of a repository of the Hub. Raises InputError where there is none."""
    packs = packs_in(file) if hub_id_in(str(file)) else [read_pack(file)]
    if not packs:
        raise InputError(file, "holds no term pack; check the name")
    return packs


def _check_fits(pack: TermPack, sha256: str, model: str) -> None:
    """Raise InputError for a pack of another base than a model, whose checksum is given."""
    base = pack.header.base
    if base.sha256 != sha256:
        raise InputError(
            pack.source,
            f"fits {base.hub_id or base.name} ({base.tokens:,} tokens), and {model} isn't that model, by the checksum "
            "of its weights and vocabulary; name the pack's base with --model",
        )


def _check_apart(packs: Sequence[TermPack], base: SparseEncoder, model: str) -> None:
    """Raise InputError for a term that the base has, or that two packs have, and for two packs of one name."""
    vocabulary = {*base.tokenizer.get_vocab(), *(token.token for token in base.new_tokens)}
    owners, names = dict[str, TermPack](), dict[str, TermPack]()
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


# -- and done -----------------------------------------------------------------------------------------


def write_unpacked(
    plan: Unpacking,
    place: Place,
    documents: Iterable[Document] | None = None,
    progress: Progress = no_progress,
) -> list[str] | None:
    """Write the model with the packs that it is to have; of documents, the ids of those to be encoded again.

    They are written into `reencode.txt` as well. Raises OutputError for a place that is taken.
    """
    started, encoder = time.monotonic(), plan.before.base
    with output_folder(
        place.reading([plan.source, plan.before.model, *(pack.source for pack in plan.packs)])
    ) as work:
        if plan.packs:
            _put_in(encoder, plan.packs)
            _write_packs(work / FOLDER, plan, checksum_of_weights(encoder))
        encoder.save(work)
        _write_about(work, plan, place.folder.name, started)
        ids = None if documents is None else _to_encode_again(plan, encoder, documents, progress)
        if ids is not None:
            write_ids(work, ids)
    return ids


def _put_in(base: SparseEncoder, packs: Sequence[TermPack]) -> None:
    """Give a base the tokens of some packs, which are known to fit and to be apart. Changes the base in place.

    Raises InputError for rows of another shape, and for a term that isn't kept whole beside those of other packs.
    """
    _check_shapes(packs, base)
    tokens = [token for pack in packs for token in pack.header.tokens if not token.beside]
    if tokens and base.entries is not None:
        holder = next(pack for pack in packs if tokens[0].term in pack.terms)
        problem = "is to replace its pieces, and the model has terms beside theirs; leave the pack out"
        raise InputError(holder.source, f"its term {tokens[0].term!r} {problem}")
    first, tokenizer = len(base.tokenizer), with_entries(base.tokenizer, [token.entry for token in tokens])
    ids = tokenizer.get_vocab()
    new_tokens = [
        NewToken(ids[each.token], each.token, each.term, each.category, each.pieces) for each in tokens
    ]
    new_tokens.sort(key=lambda each: each.token_id)
    try:
        check_kept(tokenizer, new_tokens, first)
    except TermError as error:
        holder = next(pack for pack in packs if error.term in pack.terms)
        raise InputError(
            holder.source,
            f"its term {error.term!r} isn't kept whole by this tokenizer beside the other terms; leave the pack out",
        ) from error
    base.tokenizer = tokenizer
    beside = [token for pack in packs for token in pack.header.tokens if token.beside]
    behind = 1 + max([*ids.values(), *(each.token_id for each in base.new_tokens)])
    new_tokens += [
        NewToken(behind + number, each.token, each.term, each.category, each.pieces, beside=True)
        for number, each in enumerate(beside)
    ]
    ids |= {each.token: each.token_id for each in new_tokens}
    rows = max(base.vocabulary_size, 1 + new_tokens[-1].token_id)
    if rows > base.vocabulary_size:
        base.grow(rows)
    if base.query_side is not None:
        base.query_side = base.query_side.grown(rows, {})
    for pack in packs:
        places = [ids[token.token] for token in pack.header.tokens]
        for kind, tensor in rows_of(base).items():
            tensor[places] = pack.rows[kind].to(tensor)
    base.new_tokens = (*base.new_tokens, *new_tokens)


def _check_shapes(packs: Sequence[TermPack], base: SparseEncoder) -> None:
    """Raise InputError for rows of other shapes than a base's, and for words that its tokenizer can't be given."""
    wanted = {kind: tuple(rows.shape[1:]) for kind, rows in rows_of(base).items()}
    for pack in packs:
        if {kind: tuple(rows.shape[1:]) for kind, rows in pack.rows.items()} != wanted:
            raise InputError(pack.source, f"damaged: its rows aren't of its base's shapes; {AGAIN}")
        if any(token.whole is None for token in pack.header.tokens) and not is_wordpiece(base.tokenizer):
            raise InputError(pack.source, f"damaged: its words join no vocabulary of its base; {AGAIN}")


def _write_packs(folder: Path, plan: Unpacking, sha256: str) -> None:
    """A copy of each pack, and what names the base."""
    folder.mkdir()
    for pack in plan.packs:
        write_pack(pack, folder / f"{pack.name}.pack")
    stored = _PackList(
        model=absolute(plan.before.model),
        base_sha256=plan.before.sha256,
        packs=tuple(f"{pack.name}.pack" for pack in plan.packs),
        sha256=sha256,
    )
    write_json(folder / LIST_FILE, stored.model_dump(mode="json"))


def _read_list(folder: Path) -> _PackList | None:
    """What names the base; None for a model without packs. Raises InputError for a list that is damaged."""
    path = folder / LIST_FILE
    return read_list(path, _PackList, "put the packs into the base model anew") if path.is_file() else None


def _write_about(work: Path, plan: Unpacking, name: str, started: float) -> None:
    """The record and the card: how the model was made of its base; without packs those of the base itself."""
    base = plan.before.model
    if not plan.packs:
        record = read_stage_record(base)
        write_card(work, making_of(base))
    else:
        files = [pack.source.name for pack in plan.packs]
        command = shlex.join(["sparse-adapt", "unpack", *files, "--model", Path(base).name, "-o", name])
        record = {**new_record("unpack", base, {}, {}, started), "stages": [], "command": command}
        write_card(work, with_record(record))
    if record is not None:
        write_record(work, record)


def _to_encode_again(
    plan: Unpacking, encoder: SparseEncoder, documents: Iterable[Document], progress: Progress
) -> list[str]:
    """The ids of the documents whose vectors the two models make differently.

    They say or activate a token that is new, that has gone, or that has another id: engines may know it by that.
    """
    before, now = plan.before.ids_of_packs(), _ids(encoder, plan.packs)
    changes = [(encoder, [token_id for token, token_id in now.items() if before.get(token) != token_id])]
    gone = [token_id for token, token_id in before.items() if token not in now]
    if gone and plan.before.whole is not None:
        changes.append((plan.before.whole, gone))
    return touched_by(changes, documents, progress)


def _ids(encoder: SparseEncoder, packs: Sequence[TermPack]) -> dict[str, int]:
    """The tokens of some packs, with their ids in a model that has them."""
    ids = encoder.tokenizer.get_vocab() | {each.token: each.token_id for each in encoder.new_tokens}
    return {token.token: ids[token.token] for pack in packs for token in pack.header.tokens}
