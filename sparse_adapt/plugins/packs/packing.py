"""New terms moved from one copy of a base model to others: `pack`, `unpack` and `packs`."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from sparse_adapt.api.checks import a_pack, a_pack_or_model, check_free_file, check_output
from sparse_adapt.api.following import free, line
from sparse_adapt.api.options import (
    CORPUS_HELP,
    MODEL_HELP,
    ModelAtPlace,
    Option,
    Out,
    Overwrite,
    corpus_option,
    declared,
    model_option,
    out_option,
)
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.report.progress import no_progress, progress_bars
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import Column, Row, Table

if TYPE_CHECKING:
    from sparse_adapt.api.models import ModelLike
    from sparse_adapt.collection.arguments import DocumentsLike
    from sparse_adapt.plugins.packs.pack import Header


COLUMNS = (
    Column("name", "pack", "text"),
    Column("terms", "terms", "token"),
    Column("taught", "taught by", "text"),
    Column("author", "made by", "text"),
    Column("at", "when", "text"),
    Column("base", "base model", "text"),
)


@declared
def pack(
    model: ModelAtPlace,
    out: Annotated[str | Path, out_option("Term pack to write.")],
    *,
    base: Annotated[
        "ModelLike", model_option(f"The model that MODEL was made from, which the pack is for. {MODEL_HELP}")
    ],
    terms: Annotated[
        Sequence[str],
        Option(
            "The terms to pack, with commas between them. May be given several times.",
            metavar="A,B",
            commas=True,
            shown="all that the base model lacks",
        ),
    ] = (),
    author: Annotated[
        str | None,
        Option("Who is said to have made the pack.", metavar="NAME", shown="who is logged in"),
    ] = None,
    overwrite: Overwrite = False,
) -> Result:
    """Write new terms of a model into a small file, a term pack.

    Every weight that the base model brought has to be as it was: teach the terms with dictionary --train rows, or by a
    stage with --train new, as warmup is unasked.

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
    check_free_file(Place(place, overwrite, reads=[_path_of(model)]), "pack")
    from sparse_adapt.plugins.packs.making import make_pack
    from sparse_adapt.plugins.packs.pack import write_pack

    named = _place_of(base)
    made = make_pack(_place_of(model), named, place, terms, author)
    write_pack(made, place)
    count, by = len(made.header.tokens), made.header.made
    return _result(
        place,
        {made.name: made.header},
        headline=f"{place}: {count:,} terms for {named}, taught by {by.stages_in_words}",
        wrote=[(place, f"{count:,} terms; by {by.author}, whom --author replaces")],
        then=[line("packs", place), line("unpack", place, "--model", named, "-o", free("with-terms"))],
        path=place,
        base=named,
        header=made.header,
    )


@declared
def unpack(
    files: Annotated[
        str | Path | Sequence[str | Path] | None,
        Option(
            "Term packs to put in: files, or hub:owner/name.",
            metavar="FILE...",
            place=True,
            check=a_pack,
            shown="none",
        ),
    ],
    model: Annotated[
        "ModelLike",
        model_option(f"The base model of the packs, or a model that holds other packs. {MODEL_HELP}"),
    ],
    out: Out,
    *,
    remove: Annotated[
        Sequence[str],
        Option(
            "Take this pack out of the model, by the name that `packs` shows. May be given several times.",
            metavar="NAME",
        ),
    ] = (),
    corpus: Annotated[
        "DocumentsLike | None",
        corpus_option(f"Find which of these documents have to be encoded again. {CORPUS_HELP}"),
    ] = None,
    overwrite: Overwrite = False,
    progress: bool | None = None,
) -> Result:
    """Put term packs into a model, or take some out of it.

    Every other weight stays as it is, bit for bit, and a pack that is taken out leaves no trace.

    Whatever the order in which packs are put in, the same texts have the same weights for the same tokens; the tokens'
    ids follow the order. The body of the model reads each document of `corpus` once; `encode_again` has the ids of
    those that have another vector now.

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
    named = [files] if isinstance(files, str | Path) else list(files or ())
    if not named and not remove:
        raise ConfigError("unpack needs FILE, a term pack to put in, or --remove NAME, one to take out")
    place = Place(Path(out), overwrite, reads=[_path_of(model), *named], resumable=False)
    check_output(place)
    from sparse_adapt.api.models import load
    from sparse_adapt.collection.arguments import Corpus
    from sparse_adapt.plugins.packs.putting import plan_unpacking, write_unpacked

    source = None if corpus is None else Corpus.of(corpus)
    plan = plan_unpacking(named, _place_of(model), remove)
    with progress_bars(progress) as bars:
        advance = no_progress if source is None else bars.count("documents", source.count())
        documents = None if source is None else source.read()
        ids = write_unpacked(plan, place, documents, advance)
    again = (
        "encode again the documents that say or activate one of the terms; --corpus finds them, and every other vector "
        "stays as it is"
        if ids is None
        else f"encode again {len(ids):,} documents: their ids are in {out}/reencode.txt"
    )
    count = sum(len(each.header.tokens) for each in plan.packs)
    packs = f"{len(plan.packs):,} pack{'s' * (len(plan.packs) != 1)}"
    return _result(
        out,
        {each.name: each.header for each in plan.packs},
        again,
        {"encode_again": ids},
        wrote=[(Path(out), f"a model with {count:,} terms of {packs}")],
        then=[line("packs", out)],
        folder=Path(out),
        model=partial(load, out),
        encode_again=None if ids is None else tuple(ids),
    )


@declared
def packs(
    source: Annotated[
        "ModelLike",
        Option(
            "A model folder, the file of a term pack, or hub:owner/name of either. Also as --model.",
            metavar="MODEL_OR_FILE",
            place=True,
            check=a_pack_or_model,
        ),
    ],
) -> Result:
    """List the term packs of a model, or show the one in a file.

    Each with its terms, what taught them, who made it and when, and the base model that it fits.

    >>> import sparse_adapt as sa
    >>> sa.packs("splade-tiny")
    <Result: splade-tiny: 0 packs with 0 terms>
    """
    from sparse_adapt.plugins.packs.putting import packs_in

    place = _place_of(source)
    return _result(place, {each.name: each.header for each in packs_in(place)})


def _result(
    place: str | Path,
    packs: "Mapping[str, Header]",
    again: str = "",
    further: Mapping[str, object] = {},
    **known: Any,  # noqa: ANN401 - of any field
) -> Result:
    """Packs in their order: the terms of each, what taught them, who made it and when, and the base that it fits.

    again: which documents have to be encoded again, in words. further: data beside the packs.
    """
    rows: list[Row] = [
        {
            "name": name,
            "terms": ", ".join(token.term for token in header.tokens),
            "taught": header.made.stages_in_words,
            "author": header.made.author,
            "at": header.made.at[:10],
            "base": header.base.hub_id or header.base.name,
        }
        for name, header in packs.items()
    ]
    terms = [token.term for header in packs.values() for token in header.tokens]
    plain = [{"name": name, **header.model_dump(mode="json")} for name, header in packs.items()]
    table = Table("", COLUMNS, rows)
    named = {
        "headline": f"{place}: {len(packs):,} packs with {len(terms):,} terms",
        "data": {"source": str(place), "packs": plain, **further},
        "shown": [table, again] if again else [table if packs else f"{place} holds no term pack"],
        "rows": rows,
        "packs": tuple(packs.items()),
        "headers": packs,
        "terms": terms,
    }
    return Result(**named | known)


def _path_of(source: "ModelLike") -> str | Path | None:
    return source if isinstance(source, str | Path) else None


def _place_of(source: "ModelLike") -> str:
    """Where a model can be read. Raises ModelError for one that was extended in memory and saved nowhere."""
    if isinstance(source, str | Path):
        return str(source)
    return source.saved_at()
