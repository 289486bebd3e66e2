"""The packs of a model folder: what lies in its folder `packs`, and the base that the model would be without them.

`packs.json` holds the header of each pack, in the order in which they stand, and where the base was. Beside it lie the
files of the base's tokenizer, as they were, and, where tokens of packs took spare rows of the base, these rows. The
packs' own rows are in the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from sparse_adapt.errors import ModelError
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.marker import MODEL_MARK
from sparse_adapt.files.place import absolute
from sparse_adapt.files.records import Record, read_record
from sparse_adapt.files.writing import write_bytes
from sparse_adapt.model.folder import ModelFolder, origin_of
from sparse_adapt.model.saved import read_tokenizer
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.term_packs.base import check_takes_packs, checksum_of_base, rows_of
from sparse_adapt.term_packs.pack import Base, Header, Rows, TermPack, checksum_of
from sparse_adapt.term_packs.putting import rows_at, spare_rows, take_out

FOLDER, LIST_FILE, SPARE_FILE = "packs", "packs.json", "model.safetensors"
CUTTING = (  # files of a tokenizer
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.*", "merges.txt", "*.model"),
)


class HeldPack(Record):
    """A pack of a model: its file's name when it was put in, and its header."""

    file: str
    header: Header


class Held(Record):
    """The packs of a model, and its base: how that was named, how many rows it has, and what identifies it."""

    model: str
    rows: int
    base: Base
    packs: tuple[HeldPack, ...]


@dataclass(frozen=True)
class Opened:
    """A model as its base and its packs.

    `model`: how the base was named; `cutting`: the folder with the files of its tokenizer; `tokens`: the ids of the
    tokens of packs.
    """

    base: SparseEncoder
    model: str
    cutting: Path
    sha256: str
    packs: tuple[TermPack, ...]
    tokens: dict[str, int]


def read_held(folder: Path) -> Held | None:
    """The packs of a model folder; None where it holds none. Raises InputError for a list that is damaged."""
    path = folder / FOLDER / LIST_FILE
    return read_record(path, Held, "put the packs into the base model anew") if path.is_file() else None


def open_model(source: str | Path) -> Opened:
    """The base of a model and its packs. A model without packs is its own base.

    Raises ModelError for one that isn't what it was when packs were put in.
    """
    folder = ModelFolder.of(source).path
    encoder = SparseEncoder.load(source)
    check_takes_packs(encoder, source)
    held = read_held(folder)
    if held is None:
        return Opened(encoder, str(source), folder, checksum_of_base(encoder), (), {})
    ids = encoder.tokenizer.get_vocab()
    names = [token.token for pack in held.packs for token in pack.header.tokens]
    tokens = {name: ids[name] for name in names if name in ids}
    if len(tokens) < len(names):
        raise _changed(source, held)
    packs = tuple(_pack(encoder, each, source, held, tokens) for each in held.packs)
    place = folder / FOLDER
    tokenizer, spare = read_tokenizer(place, source), _read_spare(place)
    if not _leads_back(encoder, len(tokenizer), spare, held):
        raise _changed(source, held)
    take_out(encoder, tokenizer, spare, held.rows)
    sha256 = checksum_of_base(encoder)
    if sha256 != held.base.sha256:
        raise _changed(source, held)
    return Opened(encoder, held.model, place, sha256, packs, tokens)


def described(opened: Opened) -> Base:
    """The base of a model as a pack's header names it."""
    origin = origin_of(opened.model)
    return Base(
        name=origin.name,
        hub_id=origin.hub_id,
        licence=origin.licence,
        tokens=len(opened.base.tokenizer),
        sha256=opened.sha256,
    )


def write_held(folder: Path, opened: Opened, packs: Sequence[TermPack]) -> None:
    """Write, into a model's folder, packs and what leads back to its base, before they are put into it."""
    place, base = folder / FOLDER, opened.base
    place.mkdir(parents=True)
    held = Held(
        model=absolute(opened.model),
        rows=base.vocabulary_size,
        base=described(opened),
        packs=tuple(HeldPack(file=pack.source.name, header=pack.header) for pack in packs),
    )
    write_json(place / LIST_FILE, held.model_dump(mode="json"))
    copy_cutting(opened.cutting, place)
    if (kind := opened.cutting / MODEL_MARK).is_file():  # some tokenizers can't be loaded without
        write_bytes(place / MODEL_MARK, kind.read_bytes())
    if spare := spare_rows(base):
        save_file(spare, place / SPARE_FILE)


def copy_cutting(source: Path, folder: Path) -> None:
    """Copy the files of a model's tokenizer as they are, and those of its table for queries, from folder to folder."""
    places = (path.parent for path in source.glob("*/tokenizer.json") if path.parent.name != FOLDER)
    for place in (source, *places):
        for path in (path for pattern in CUTTING for path in place.glob(pattern)):
            write_bytes(folder / path.relative_to(source), path.read_bytes())


def _pack(
    encoder: SparseEncoder, held: HeldPack, source: str | Path, of: Held, ids: dict[str, int]
) -> TermPack:
    """A pack with its rows out of the model that it is in."""
    rows = rows_at(encoder, [ids[token.token] for token in held.header.tokens])
    if checksum_of(held.header, rows) != held.header.sha256:
        raise _changed(source, of)
    return TermPack(Path(held.file), held.header, rows)


def _leads_back(encoder: SparseEncoder, tokens: int, spare: Rows, held: Held) -> bool:
    """Whether a base of so many tokens, with these spare rows, can be in a model."""
    behind = held.rows - tokens
    wanted = {kind: (behind, *rows.shape[1:]) for kind, rows in rows_of(encoder).items()} if behind else {}
    fits = {kind: tuple(rows.shape) for kind, rows in spare.items()} == wanted
    return fits and tokens == held.base.tokens and tokens <= held.rows <= encoder.vocabulary_size


def _read_spare(place: Path) -> Rows:
    path = place / SPARE_FILE
    try:
        return load_file(path) if path.is_file() else {}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path}: damaged ({error}); put the packs into the base model anew") from error


def _changed(source: str | Path, held: Held) -> ModelError:
    return ModelError(
        f"{source}: isn't what it was when its packs were put in; put them into {held.base.name} anew"
    )
