"""New terms moved from one copy of a base model to others: `pack`, `unpack` and `packs`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from sparse_adapt.api.models import Model, ModelGiven, load
from sparse_adapt.collection.given import Corpus, DocumentsGiven
from sparse_adapt.errors import ConfigError, ModelError
from sparse_adapt.files.place import Place
from sparse_adapt.report.progress import watching
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import Column, Row, Table, to_rich
from sparse_adapt.report.watching import silent
from sparse_adapt.term_packs.making import make_pack
from sparse_adapt.term_packs.pack import Header, check_pack_place, write_pack
from sparse_adapt.term_packs.putting import carry_out, packs_in, plan_unpacking

COLUMNS = (
    Column("name", "pack", "text"),
    Column("terms", "terms", "token"),
    Column("taught", "taught by", "text"),
    Column("author", "made by", "text"),
    Column("at", "when", "text"),
    Column("base", "base model", "text"),
)


@dataclass(frozen=True, repr=False)
class Packs(Result):
    """Term packs: those of a model in their order, or the one in a file. `headers` are by their packs' names."""

    source: str
    found: tuple[tuple[str, Header], ...]

    @property
    def headers(self) -> dict[str, Header]:
        """What each pack says of itself, by its name."""
        return dict(self.found)

    @property
    def terms(self) -> list[str]:
        """The terms of all packs."""
        return [token.term for _, header in self.found for token in header.tokens]

    @property
    def headline(self) -> str:
        """How many packs and terms there are, and where."""
        return f"{self.source}: {len(self.found):,} packs with {len(self.terms):,} terms"

    def rows(self) -> Sequence[Row]:
        """For each pack its terms, what taught them, who made it and when, and which base model it fits."""
        return [
            {
                "name": name,
                "terms": ", ".join(token.term for token in header.tokens),
                "taught": header.made.taught_by,
                "author": header.made.author,
                "at": header.made.at[:10],
                "base": header.base.hub_id or header.base.name,
            }
            for name, header in self.found
        ]

    def to_dict(self) -> dict[str, Any]:
        """Every header, in the order of the packs."""
        packs = [{"name": name, **header.model_dump(mode="json")} for name, header in self.found]
        return {"source": self.source, "packs": packs}

    def renderable(self) -> RenderableType:
        """The rows as a table."""
        if not self.found:
            return Text(f"{self.source} holds no term pack")
        return to_rich(Table("", COLUMNS, self.rows()))


@dataclass(frozen=True, repr=False)
class Packed(Packs):
    """A term pack on the disk, made by `pack` for the base model that `base` names."""

    path: Path
    base: str

    @property
    def header(self) -> Header:
        """What the pack says of itself."""
        return self.found[0][1]

    @property
    def headline(self) -> str:
        """The file, its terms, what taught them, and the base model that it fits."""
        return (
            f"{self.path}: {len(self.terms):,} terms for {self.base}, taught by {self.header.made.taught_by}"
        )


@dataclass(frozen=True, repr=False)
class Unpacked(Packs):
    """A model on the disk that has other packs than before, made by `unpack`.

    `encode_again`: the ids of the documents that have another vector now, where a corpus was given; None otherwise.
    """

    folder: Path
    encode_again: tuple[str, ...] | None

    @property
    def model(self) -> Model:
        """The model."""
        return load(self.folder)

    def to_dict(self) -> dict[str, Any]:
        """Every header, and the documents to be encoded again."""
        ids = None if self.encode_again is None else list(self.encode_again)
        return {**super().to_dict(), "encode_again": ids}

    def renderable(self) -> RenderableType:
        """The packs that the model has now, and how many documents have to be encoded again."""
        return Group(super().renderable(), Text(self.advice))

    @property
    def advice(self) -> str:
        """Which documents have to be encoded again, in words."""
        if self.encode_again is None:
            return (
                "encode again the documents that say or light one of the terms; --corpus finds them, and every other "
                "vector stays as it is"
            )
        return (
            f"encode again {len(self.encode_again):,} documents: their ids are in {self.folder}/reencode.txt"
        )


def pack(
    model: ModelGiven,
    out: str | Path,
    *,
    base: str | Path,
    terms: Sequence[str] = (),
    author: str | None = None,
    overwrite: bool = False,
) -> Packed:
    """Write new terms of a model, whose body stood still while they were taught, into one small file.

    model: a folder, or a `Model` that was saved there. base: the model that it was made from, to which the pack fits.
    terms: some of those that its base lacks; by default all. author: who is said to have made the pack; by default
    whoever is logged in.

    Raises ModelError where an old weight has moved, and where there is no new term; ConfigError for a term that is
    none; OutputError for a place that is taken.

    >>> import tempfile, sparse_adapt as sa
    >>> place = tempfile.mkdtemp()
    >>> model = sa.load("splade-tiny", device="cpu")
    >>> _ = model.extend(["kubectl", "max_connections"])
    >>> _ = model.save(place + "/extended")
    >>> sa.pack(model, place + "/pods.pack", base="splade-tiny", terms=["kubectl"]).terms
    ['kubectl']
    """
    place = Path(out)
    check_pack_place(place, overwrite=overwrite)
    made = make_pack(_place_of(model), base, place, terms, author)
    write_pack(made, place)
    return Packed(str(place), ((made.name, made.header),), place, str(base))


def unpack(
    files: str | Path | Sequence[str | Path],
    model: ModelGiven,
    out: str | Path,
    *,
    remove: Sequence[str] = (),
    corpus: DocumentsGiven | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Unpacked:
    """Write a model that has the terms of one or several packs; every other weight stays as it is, bit for bit.

    model: the base of the packs, or a model that other packs were put into. remove: names of packs that are taken out
    of it. Whatever the order in which packs are put in, the same texts have the same weights for the same tokens; the
    tokens' ids follow the order. corpus: documents of which those are found that have another vector now; the body of
    the model reads each of them once.

    Raises InputError for a file that is no pack, is damaged or of a newer version, or is for another base, and for a
    term that the model or another pack has; ConfigError for a name that is none of the model's packs'.

    >>> import tempfile, sparse_adapt as sa
    >>> place = tempfile.mkdtemp()
    >>> model = sa.load("splade-tiny", device="cpu")
    >>> _ = model.extend(["kubectl"])
    >>> _ = model.save(place + "/extended")
    >>> _ = sa.pack(model, place + "/pods.pack", base="splade-tiny")
    >>> done = sa.unpack(place + "/pods.pack", "splade-tiny", place + "/with-pods", corpus=["kubectl logs", "a saw"])
    >>> done.terms, done.encode_again
    (['kubectl'], ('1',))
    >>> sa.unpack([], place + "/with-pods", place + "/without", remove=["pods"]).model.terms
    []
    """
    named = [files] if isinstance(files, str | Path) else list(files)
    if not named and not remove:
        raise ConfigError("name packs to put in, or remove some by their names")
    given = None if corpus is None else Corpus.of(corpus)
    plan = plan_unpacking(named, _place_of(model), remove)
    with watching(progress) as bars:
        heard = silent if given is None else bars.count("documents", given.count())
        documents = None if given is None else given.read()
        ids = carry_out(plan, Place(Path(out), overwrite, resumable=False), documents, heard)
    found = tuple((each.name, each.header) for each in plan.packs)
    return Unpacked(str(out), found, Path(out), None if ids is None else tuple(ids))


def packs(source: ModelGiven) -> Packs:
    """The term packs of a model, or the one in a file: their terms, what taught them, who made them, and their base.

    >>> import sparse_adapt as sa
    >>> sa.packs("splade-tiny")
    <Packs: splade-tiny: 0 packs with 0 terms>
    """
    place = _place_of(source)
    return Packs(place, tuple((each.name, each.header) for each in packs_in(place)))


def _place_of(given: ModelGiven) -> str:
    """Where a model can be read. Raises ModelError for one that was extended in memory and saved nowhere."""
    if not isinstance(given, Model):
        return str(given)
    if given.extended:
        raise ModelError(f"{given.source}: was extended since it was read; save it first")
    return given.source
