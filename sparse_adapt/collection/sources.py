"""Where a collection comes from: a file, a folder in the BEIR layout, a bundled name or an `ir_datasets` id.

They are tried in this order, so that a local path always wins. Files and folders may be anywhere that fsspec
reads from (`s3://bucket/beir`, `https://host/corpus.jsonl.zst`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import corpora
from sparse_adapt.collection.lines import JSON, ending_of
from sparse_adapt.collection.opening import (
    COMPRESSED,
    Address,
    Location,
    fingerprint,
    names_at,
    place_of,
    reachable,
    variants,
)
from sparse_adapt.collection.sheets import table_endings
from sparse_adapt.collection.texts import documents_in
from sparse_adapt.errors import InputError, first_line
from sparse_adapt.files.marker import checksum
from sparse_adapt.files.steps import Source
from sparse_adapt.registry import registry

READ_AS = (
    ".jsonl",
    ".ndjson",
    *table_endings(),
    ".txt",
    ".json",
    ".trec",
    ".sgml",
    ".sgm",
    ".xml",
    *registry().all_of("readers.documents"),
    *registry().all_of("readers.queries"),
    *COMPRESSED,
)
JUDGED = (*table_endings(), *JSON)  # of judgements' files
DATASET_ID = re.compile(r"\w[\w.-]*(/[\w.-]+)*")
SHOWN = 60  # signs of a path that is too long


def locate(source: str | Path, names: Sequence[str]) -> "Location | Dataset":
    """The file that a source means, or the data set of `ir_datasets`. In a folder it is the first of `names`.

    A folder without documents in a file, but with parts of a corpus or loose texts, is the documents itself.

    Raises InputError that says what was tried.
    """
    place = place_of(source)
    if isinstance(place, Address):
        return _at_address(place, names)
    folder = bundled(place)
    if folder.is_dir():
        return _in_folder(folder, names)
    if folder.exists() or not _may_be_dataset(source):
        return reachable(source)
    return _dataset(str(source))


def file_of(source: str | Path, names: Sequence[str]) -> Location:
    """The file that a source means, the first of `names` in a folder or a bundled corpus; never a data set."""
    return _in_folder(bundled(source), names) if is_folder(source) else reachable(source)


def is_folder(source: str | Path) -> bool:
    """Whether a source is a folder on this machine or the name of a bundled corpus."""
    return isinstance(place := place_of(source), Path) and bundled(place).is_dir()


def lies_at(source: str | Path, names: Sequence[str]) -> Location | None:
    """Where that file lies, of what has a place of its own; None for the name of a data set."""
    place = place_of(source)
    if isinstance(place, Path) and not bundled(place).exists():
        return None
    path = locate(source, names)
    assert not isinstance(path, Dataset), "names that exist are no data sets"
    return path


def of_collection(named: str | Path, names: Sequence[str]) -> Source:
    """What a step reads: a file, the first of `names`, the parts or loose texts in a folder, an address or a name.

    At an address, what the file system tells a change of the file by stands for the checksum.
    """
    place = lies_at(named, names)
    if isinstance(place, Address):
        return Source(str(named), place, lambda: fingerprint(place))
    if place is not None and place.is_dir():
        return Source(str(named), place, lambda: checksum(place, documents_in(place)))
    return Source(str(named), place)


def bundled(source: str | Path) -> Path:
    """The folder of a bundled corpus where the source is its name and no path; any other source as a path.

    Raises InputError for a path that the system can't look at, being too long.
    """
    path = Path(source)
    try:
        path.exists()
    except OSError as error:
        shown = f"{str(source)[:SHOWN]}..."
        raise InputError(shown, f"can't be read ({error.strerror}); check the path") from error
    return corpora.path(str(source)) if str(source) in corpora.NAMES and not _is_collection(path) else path


def file_beside(source: str | Path, name: str) -> Path | None:
    """A file of that name, compressed or not, in a local corpus's folder or beside its file; None without one."""
    place = bundled(source)
    if not place.exists():
        return None
    folder = place if place.is_dir() else place.parent
    return next((path for each in variants(name) if (path := folder / each).is_file()), None)


def split_file(folder: Path, split: str) -> Path:
    """The judgements of one split in a BEIR folder. Raises InputError that names the splits there are."""
    files = judgement_files(folder)
    if split in files:
        return files[split]
    if files:
        raise InputError(folder, f'no split "{split}"; there are {", ".join(files)}')
    problem = f"holds no judgements (no qrels/{split}.tsv); point to a BEIR folder or a qrels file"
    raise InputError(folder, problem)


def judged_split(source: str | Path, first: str = "test") -> str | None:
    """A split of a collection on disk that has judgements, `first` before others; None where there is none."""
    splits = judgement_files(bundled(source))
    return first if first in splits else next(iter(splits), None)


def judgement_files(folder: Path) -> dict[str, Path]:
    """The judgements in a BEIR folder by their splits, in alphabetical order; a TSV before other files of its name."""
    files = [path for path in (folder / "qrels").glob("*.*") if ending_of(path) in JUDGED and path.is_file()]
    by_kind = sorted(files, key=lambda path: (JUDGED.index(ending_of(path)), path.name), reverse=True)
    by_split = {path.name[: path.name.lower().rindex(ending_of(path))]: path for path in by_kind}
    return dict(sorted(by_split.items()))


@dataclass(frozen=True, slots=True)
class Dataset:
    """An entry of `ir_datasets`. Its errors become ours: one line, with the id."""

    name: str
    entry: Any

    def rows(self, kind: str) -> Iterator[Any]:
        """The docs, queries or qrels, as named tuples. Raises InputError where there are none to be had."""
        if not getattr(self.entry, f"has_{kind}")():
            raise InputError(self.name, f"this entry of ir_datasets has no {kind}; choose one that has")
        try:
            yield from getattr(self.entry, f"{kind}_iter")()
        except Exception as error:
            problem = (
                f"ir_datasets can't read its {kind} ({_reason(error)}); check the network or give a folder"
            )
            raise InputError(self.name, problem) from error

    def split(self, name: str) -> "Dataset":
        """The entry `<id>/<split>`, where this one has no judgements itself and that one exists."""
        if self.entry.has_qrels():
            return self
        try:
            return _dataset(f"{self.name}/{name}")
        except InputError:
            return self


def _in_folder(folder: Path, names: Sequence[str]) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    if names and names[0].startswith("corpus") and documents_in(folder):
        return folder
    raise _without(folder, names, sorted(path.name for path in folder.iterdir()))


def _at_address(address: Address, names: Sequence[str]) -> Address:
    """A remote file, or the one of `names` in a remote folder."""
    names_there = names_at(address) if names and not address.name.endswith(READ_AS) else []
    if not names_there:
        reachable(address)
        return address
    for name in names:
        if name in names_there:
            return address / name
    raise _without(address, names, names_there)


def _without(folder: str | Path, names: Sequence[str], names_there: Sequence[str]) -> InputError:
    shown = (
        ", ".join(names_there[:6]) + (", ..." if len(names_there) > 6 else "") if names_there else "nothing"
    )
    return InputError(folder, f"holds no {names[0]} (found: {shown}); give a BEIR folder or the file itself")


def _is_collection(path: Path) -> bool:
    """Whether a path in the current folder is meant, rather than a bundled corpus of that name."""
    return path.is_file() or any(
        (path / name).is_file() for name in ("corpus.jsonl", "corpus.jsonl.gz", "corpus.tsv")
    )


def _may_be_dataset(source: str | Path) -> bool:
    text = str(source)
    return DATASET_ID.fullmatch(text) is not None and not text.endswith(READ_AS)


def _dataset(name: str) -> Dataset:
    try:
        import ir_datasets  # slow, and few need it

        return Dataset(name, ir_datasets.load(name))
    except KeyError as error:
        known = ", ".join(corpora.NAMES)
        message = f"no such file or folder, bundled corpus ({known}) or ir_datasets id; check the spelling"
        raise InputError(name, message) from error
    except Exception as error:
        problem = f"ir_datasets can't load it ({_reason(error)}); give a local folder"
        raise InputError(name, problem) from error


def _reason(error: Exception) -> str:
    """The first line of what another library says, which may be a whole page."""
    return first_line(str(error.args[0] if error.args else "") or type(error).__name__)
