"""The file of a term pack: safetensors with the rows of its tokens alone, and a header that says the rest.

The header is JSON under one key of the file's metadata: which base model the pack fits, its tokens and how a tokenizer
finds them, what taught them, who made it and when. Dimensions: T tokens of the pack, H width of a row.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import torch
from pydantic import (
    BaseModel,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from tokenizers import AddedToken
from torch import Tensor

from sparse_adapt.errors import InputError
from sparse_adapt.files.records import Record, parse_record
from sparse_adapt.files.writing import write_bytes
from sparse_adapt.model.folder import CARD_FILE
from sparse_adapt.model.vocabulary import TokenEntry

FORMAT, HEADER = "sparse-adapt term pack", "pack"
REPLACING, VERSION = 1, 2  # of packs whose tokens all replace pieces, and of those with others
INPUT, OUTPUT, BIAS, TABLE = "input", "output", "bias", "table"
AGAIN = "get it again from whoever made it"
CARD_TAGS = ["sparse-adapt", "term-pack", "sparse-encoder", "splade"]

DIMENSIONS = {INPUT: 2, OUTPUT: 2, BIAS: 1, TABLE: 1}  # of rows; without INPUT there is no token
UNKNOWN_TENSORS = (TypeError, ValueError, AttributeError, RuntimeError)  # of types that torch hasn't

Rows = Mapping[str, Tensor]
"""What a token has in a model: `input` (T, H), `output` (T, H) unless tied to it, `bias` (T), `table` (T)."""


class Whole(Record):
    """How a token is matched whole, as `tokenizers` has it."""

    single_word: bool
    normalized: bool
    lstrip: bool
    rstrip: bool

    @classmethod
    def of(cls, token: AddedToken) -> "Whole":
        """How a token of a tokenizer is matched."""
        return cls(
            single_word=token.single_word,
            normalized=token.normalized,
            lstrip=token.lstrip,
            rstrip=token.rstrip,
        )


class PackToken(Record):
    """A token, the term that it stands for, and the base model's pieces of it.

    `whole`: how it is matched before the tokenizer's model runs; None where it joins the WordPiece vocabulary.
    `beside`: whether it stands beside its pieces, so that no tokenizer has it.
    """

    token: str
    term: str
    category: str
    pieces: tuple[int, ...]
    whole: Whole | None
    beside: bool = False

    @model_serializer(mode="wrap")
    def _as_it_was(self, serialise: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Without the mark of terms beside their pieces where it is none, as packs had it before."""
        content: dict[str, object] = serialise(self)
        return (
            content
            if content.get("beside")
            else {key: value for key, value in content.items() if key != "beside"}
        )

    @property
    def entry(self) -> TokenEntry:
        """How a tokenizer finds it."""
        entry = None if self.whole is None else AddedToken(self.token, **self.whole.model_dump())
        return TokenEntry(self.token, entry)


class Base(Record):
    """The model that a pack fits: its name, its licence, and the checksum of all its weights and its vocabulary."""

    name: str
    hub_id: str
    licence: str
    tokens: int
    sha256: str


class Made(Record):
    """Who made a pack, when, by which version, and which stages taught its terms, each with its settings."""

    author: str
    at: str
    version: str
    stages: tuple[dict[str, object], ...]

    @field_validator("stages")
    @classmethod
    def _are_named(cls, stages: tuple[dict[str, object], ...]) -> tuple[dict[str, object], ...]:
        for each in stages:
            if not isinstance(each.get("stage"), str) or type(each.get("steps", 0)) is not int:
                raise ValueError("a stage has a name, and whole steps where it has any")
        return stages

    @field_validator("at")
    @classmethod
    def _is_a_moment(cls, at: str) -> str:
        datetime.fromisoformat(at)
        return at

    @property
    def stages_in_words(self) -> str:
        """The stages, in words."""
        stages = [
            f"{each['stage']} ({each['steps']:,} steps)" if "steps" in each else str(each["stage"])
            for each in self.stages
        ]
        return ", ".join(stages) or "nothing that a record tells of"


class Header(Record):
    """All that a pack says beside its rows; `sha256` is over both."""

    format: str
    format_version: int
    base: Base
    made: Made
    tokens: tuple[PackToken, ...]
    sha256: str

    @model_validator(mode="after")
    def _is_of_its_base(self) -> "Header":
        if not self.tokens or len({each.token for each in self.tokens}) < len(self.tokens):
            raise ValueError("has no token, or one twice")
        if not all(0 <= piece < self.base.tokens for each in self.tokens for piece in each.pieces):
            raise ValueError("has a piece that is no token of its base")
        return self


class _Version(BaseModel):
    """What is read of a header first: whether the rest can be read."""

    format: str
    format_version: int


@dataclass(frozen=True, eq=False)
class TermPack:
    """A term pack. `source` is the file that it was read from, or is to be written to."""

    source: Path
    header: Header
    rows: Rows

    @property
    def name(self) -> str:
        """What the pack is called in a model: its file's name without the ending."""
        return self.source.stem

    @property
    def terms(self) -> list[str]:
        """Its terms."""
        return [token.term for token in self.header.tokens]


def read_pack(path: str | Path) -> TermPack:
    """The pack in a file. Raises InputError for a file that is none, is damaged, or is of a newer version."""
    place = Path(path)
    try:
        with safe_open(place, framework="pt") as file:
            metadata = file.metadata() or {}
            rows = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - safe_open has no __iter__
    except (OSError, SafetensorError, *UNKNOWN_TENSORS) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(path, f"no term pack that can be read ({reason}); {AGAIN}") from error
    if HEADER not in metadata:
        raise InputError(path, "holds tensors, but no header of a term pack; `sparse-adapt pack` makes one")
    pack = TermPack(place, _read_header(metadata[HEADER], place), rows)
    _check_rows(pack)
    return pack


def _read_header(text: str, path: Path) -> Header:
    """A header from its JSON. Raises InputError for one that is damaged or of a newer version."""
    advice = f"{AGAIN}, or make it anew with `sparse-adapt pack`"
    kind = parse_record(text, path, _Version, advice)
    if kind.format != FORMAT:
        raise InputError(path, f"is {kind.format!r}, no {FORMAT}; check the path")
    if kind.format_version > VERSION:
        raise InputError(
            path,
            f"was made by a newer sparse-adapt (version {kind.format_version} of the file, where {VERSION} is read "
            "here); upgrade with: pip install -U sparse-adapt",
        )
    return parse_record(text, path, Header, advice)


def _check_rows(pack: TermPack) -> None:
    """Raise InputError for a header and rows that aren't what was written, or aren't a row for each token."""
    for name, tensor in pack.rows.items():
        if tensor.dtype != torch.float32 or tensor.dim() != DIMENSIONS.get(name):
            kind = f"{tensor.dtype}, {tensor.dim()} dimensions".removeprefix("torch.")
            raise InputError(pack.source, f"damaged: its {name!r} are no rows of float32 ({kind}); {AGAIN}")
    if INPUT not in pack.rows:
        raise InputError(pack.source, f"damaged: it has no rows of its tokens; {AGAIN}")
    if checksum_of(pack.header, pack.rows) != pack.header.sha256:
        raise InputError(pack.source, f"damaged: it isn't what was written, by its checksum; {AGAIN}")
    for name, tensor in pack.rows.items():
        if not tensor.isfinite().all() or len(tensor) != len(pack.header.tokens):
            raise InputError(
                pack.source, f"damaged: {name} isn't a row of numbers for each of its tokens; {AGAIN}"
            )


def write_pack(pack: TermPack, path: Path) -> None:
    """Put a pack at a place, whole or not at all."""
    tensors = {name: tensor.contiguous() for name, tensor in pack.rows.items()}
    write_bytes(path, save(tensors, {HEADER: pack.header.model_dump_json()}))


def checksum_of(header: Header, rows: Rows) -> str:
    """SHA-256 of all that a header says, but for its own, and of rows by their names, shapes and bytes."""
    fields = header.model_dump(mode="json", exclude={"sha256"})
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode())
    for name in sorted(rows):
        digest.update(f"{name} {checksum_of_tensor(rows[name])}\n".encode())
    return digest.hexdigest()


def checksum_of_tensor(tensor: Tensor) -> str:
    """SHA-256 of a tensor's type, shape and bytes."""
    whole = tensor.detach().cpu().contiguous()
    digest = hashlib.sha256(f"{whole.dtype} {tuple(whole.shape)}\n".encode())
    digest.update(whole.numpy().data)
    return digest.hexdigest()


def pack_card(pack: TermPack) -> str:
    """The README.md beside a pack: its terms, what taught them, which base model it fits, and how it is put in."""
    from huggingface_hub import ModelCardData

    from sparse_adapt.stages.card import code

    base, made = pack.header.base, pack.header.made
    header = ModelCardData(license=base.licence, tags=CARD_TAGS, base_model=base.hub_id or None).to_yaml()
    terms = ", ".join(map(code, pack.terms))
    return (
        f"---\n{header}\n---\n\n# {pack.name}: {len(pack.terms):,} terms for {base.name}\n\n"
        f"Rows of new tokens, without a model, for `{base.hub_id or base.name}` alone: {terms}.\n\n"
        f"Taught by {made.stages_in_words}; made by {made.author} with sparse-adapt {made.version}, {made.at[:10]}.\n\n"
        f"```shell\nsparse-adapt unpack PACK_OR_HUB_ID --model {base.name} -o with-terms\n```\n\n"
        f"The licence of the base model is {base.licence}. What the stages learnt from may have a licence of its own.\n"
    )


def files_to_push(path: Path) -> dict[str, Path | bytes]:
    """What a repository gets of a term pack: the pack and its card. Raises InputError for a file that is none."""
    pack = read_pack(path)
    return {f"{pack.name}.pack": path, CARD_FILE: pack_card(pack).encode()}
