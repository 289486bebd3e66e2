"""Checks of what a call or a command names: nothing heavy loads for them.

A mistake in the last word of a command line is known at once, in the words of whoever would read the file later.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from pkgutil import resolve_name

from sparse_adapt.errors import ConfigError, InputError, OutputError
from sparse_adapt.files.place import Place
from sparse_adapt.registry import registry

FILE_KINDS = {  # of which commands write one: in words, and what reads the first entry or refuses the file
    "terms": ("list of terms", "sparse_adapt.terms.mining:read_terms"),
    "dictionary": ("definitions", "sparse_adapt.collection.glossary:read_dictionary"),
    "candidates": ("scored candidates", "sparse_adapt.collection.examples:read_candidates"),
    "pairs": ("pairs of queries and documents", "sparse_adapt.collection.examples:read_pairs"),
    "triplets": ("texts and what contradicts them", "sparse_adapt.collection.examples:read_triplets"),
    "results": ("TREC run", "sparse_adapt.collection.readers:read_run"),
    "pack": ("term pack", ""),  # as a page, read by a plug-in
    "page": ("page of sparse-adapt", ""),
}


def a_model(source: str) -> None:
    """Raise ModelError where no model can be of that name."""
    from sparse_adapt.model.folder import resolve

    resolve(source)


def a_model_or_none(source: str) -> None:
    """The same for an option that takes the word none."""
    if source != "none":
        a_model(source)


def a_baseline(source: str) -> None:
    """Raise ModelError for what is neither bm25, nor a run file, nor a model."""
    if source != "bm25" and not Path(source).is_file():
        a_model(source)


def a_pack(source: str) -> None:
    """Raise InputError for what is neither a file nor the name of a repository on the Hub."""
    from sparse_adapt.model.hub import hub_id_in

    if not hub_id_in(source):
        a_file(source)


def a_pack_or_model(source: str) -> None:
    """Raise ModelError for what is neither a file nor a model."""
    if not Path(source).is_file():
        a_model(source)


def a_teacher(source: str) -> None:
    """Raise InputError or ModelError where there is no such teacher: a name, a file of scores or a model."""
    from sparse_adapt.teachers.settings import ENSEMBLE, QUICK, SCORE_FILES

    if source in (ENSEMBLE, QUICK):
        return
    if source.endswith(SCORE_FILES):
        a_file(source)
    else:
        a_model(source)


def a_server(llm: str) -> None:
    """Raise ConfigError for what isn't the address and the model of a server."""
    registry().find("writers", "address")(llm)


def some_words(query: str) -> None:
    """Raise InputError for a query without a word."""
    if not query.strip():
        raise InputError("query", "is empty; say what to look for")


def a_device(name: str) -> None:
    """Raise ConfigError for a device of another name."""
    from sparse_adapt.model.reading import DEVICES

    if name not in DEVICES:
        raise ConfigError(f"--device {name}: choose {', '.join(DEVICES)}")


def a_corpus(source: str) -> None:
    """Raise InputError where a source holds no documents. An address is checked when it is read."""
    from sparse_adapt.collection.readers import DOCUMENT_FILES

    _located(source, DOCUMENT_FILES)


def a_corpus_or_vectors(source: str) -> None:
    """The same for a function that takes vectors on the disk, or an index of them, as well."""
    if not any((Path(source) / name).is_file() for name in ("manifest.json", "index.json")):
        a_corpus(source)


def some_queries(source: str) -> None:
    """Raise InputError where a source holds no queries."""
    from sparse_adapt.collection.readers import QUERY_FILES

    _located(source, QUERY_FILES)


def a_file(source: str) -> None:
    """Raise InputError where no file is there."""
    from sparse_adapt.collection.opening import readable

    if not _is_address(source):
        readable(source)


def run_file(source: str | Path) -> Path:
    """Where a run file is: on disk, or among those that come with the project."""
    import corpora

    place = Path(source)
    return corpora.run_file(str(source)) if str(source) in corpora.RUN_FILES and not place.exists() else place


def a_run_file(source: str) -> None:
    """Raise InputError where no run file is there, neither on disk nor under a bundled name."""
    a_file(str(run_file(source)))


def a_file_or_folder(source: str) -> None:
    """Raise InputError where nothing is there, neither on disk nor under a bundled name."""
    from sparse_adapt.collection.sources import bundled

    if not bundled(source).is_dir():
        a_file(source)


def a_folder(source: str) -> None:
    """Raise InputError where no folder is there."""
    if not Path(source).is_dir():
        raise InputError(source, "no such folder; check the path")


def check_output(place: Place) -> None:
    """Raise OutputError where an output folder is there already, or an unfinished one that isn't gone on with."""
    from sparse_adapt.files.folders import check_free

    if not place.resume:
        check_free(place)


def check_free_file(place: Place | None, kind: str) -> None:
    """Raise OutputError where a file that is to be written is there already, unless it is one of the same kind.

    `kind`: a key of FILE_KINDS.
    """
    if place is not None and place.folder.is_dir():
        raise OutputError(f"{place.folder}: is a folder, where a file is to be written; choose another -o")
    if place is None or not place.folder.is_file():
        return
    from sparse_adapt.files.folders import check_replaceable, tidy

    tidy(place.folder)
    what, reader = FILE_KINDS[kind]
    read = resolve_name(reader) if reader else registry().find("readers.files", kind)
    check_replaceable(place, read=lambda file: _begin(read(file)), what=what)


def _begin(content: object) -> None:
    """Read the first entry of what is read one by one."""
    if isinstance(content, Iterable):
        next(iter(content), None)


def check_split(collection: str, split: str) -> None:
    """Raise InputError where a collection on disk has no judgements of that name."""
    from sparse_adapt.collection.sources import bundled, split_file

    if bundled(collection).is_dir():
        split_file(bundled(collection), split)


def _located(source: str, names: Sequence[str]) -> None:
    from sparse_adapt.collection.sources import locate

    if not _is_address(source):
        locate(source, names)


def _is_address(source: str) -> bool:
    from sparse_adapt.collection.opening import Address, place_of

    return isinstance(place_of(source), Address)
