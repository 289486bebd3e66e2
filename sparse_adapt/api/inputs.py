"""What a caller gives in memory, as files beside a result: stages and adaptations read files, and resume by them.

For a result in `adapted` they lie in `adapted-inputs`, under the names that they have in a corpus folder, to be read
and kept with it. What is given as a path stays where it is.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparse_adapt.api.models import Model, ModelLike
from sparse_adapt.collection.arguments import Corpus, definitions_of, items_of, queries_of
from sparse_adapt.collection.examples import (
    Candidates,
    Pair,
    Triplet,
    write_candidates,
    write_pairs,
    write_triplets,
)
from sparse_adapt.collection.glossary import write_dictionary
from sparse_adapt.collection.lines import write_objects
from sparse_adapt.collection.readers import write_documents, write_queries
from sparse_adapt.collection.streams import at_least_one
from sparse_adapt.errors import InputError, OutputError, SparseAdaptError
from sparse_adapt.files.folders import check_free
from sparse_adapt.files.marker import MARKER_FILE, mark, marker_of, remove, vouch
from sparse_adapt.files.place import Place, is_there
from sparse_adapt.files.steps import made_from_same, of_path, stamp
from sparse_adapt.files.writing import beside, refuse_address
from sparse_adapt.terms.mining import terms_of, write_terms

InputLike = str | Path | Iterable[object] | Mapping[Any, object]

RECORDS: Mapping[str, tuple[type, Callable[..., object]]] = {
    "candidates": (Candidates, write_candidates),
    "pairs": (Pair, write_pairs),
    "triplets": (Triplet, write_triplets),
    "labelled": (Triplet, write_triplets),
}
FILES = {
    "corpus": "corpus.jsonl",
    "terms": "terms.json",
    "dictionary": "dictionary.jsonl",
    "queries": "queries.jsonl",
    **{key: f"{key}.jsonl" for key in RECORDS},
}
CALLED = {
    "corpus": "documents",
    "dictionary": "glossary",
}  # what a message calls things in memory, if not by their key
BEGINS = {MARKER_FILE, "request.json"}  # of an unfinished result that nothing was made for yet


class InputFolder:
    """The folder of files beside one result, which bears our marker; it is made once something is written there."""

    def __init__(self, result: Place) -> None:
        """Raises OutputError for a result that is there, or begun, where the call doesn't say what becomes of it."""
        if not result.resume:
            check_free(replace(result, resumable=False))
        self.folder, self.resume = result.folder.with_name(f"{result.folder.name}-inputs"), result.resume
        self.partial, self._begun = result.partial, _state(result.partial)
        self._before: dict[Path, Path | None] = {}  # what was there, set aside, by what was put in its place

    @contextmanager
    def unless_refused(self) -> Iterator[None]:
        """Leave nothing of a call that is refused before anything was made; name what was given, not its file here.

        What the folder held before is in it again.
        """
        try:
            yield
        except SparseAdaptError as error:
            self._settle(refused=self._is_untouched())
            keys = {str(self.folder / file): key for key, file in FILES.items()}
            if isinstance(error, InputError) and (key := keys.get(error.path)) is not None:
                raise InputError(CALLED.get(key, key), error.problem, line=error.line) from error
            raise
        except BaseException:
            self._settle(refused=_state(self.partial) == self._begun)
            raise
        self._settle(refused=False)

    def _is_untouched(self) -> bool:
        """Whether nothing was made of the result; what it only began with goes."""
        if _state(self.partial) == self._begun:
            return True
        began = self._begun is None and all(path.name in BEGINS for path in self.partial.rglob("*"))
        if began:
            shutil.rmtree(self.partial, ignore_errors=True)
        return began

    def _settle(self, *, refused: bool) -> None:
        """Put back what was there before a refused call, or take it away after another one."""
        for path, before in self._before.items():
            if refused and (before is not None or not self.resume):
                _remove(path) if before is None else before.replace(path)
            elif before is not None:
                before.unlink()
        if refused and marker_of(self.folder) is not None:
            self._vouch()
            if not any(path.name != MARKER_FILE for path in self.folder.iterdir()):
                remove(self.folder)

    def place(self, key: str, source: InputLike | Corpus) -> str:
        """Where something given can be read: its own path, or a file written here.

        Raises ConfigError where a run that is to go on was begun with other things in memory, OutputError for a folder,
        or a file in it, that is somebody else's.
        """
        if isinstance(source, str | Path):
            return str(source)
        if isinstance(source, Corpus) and source.place is not None:
            return source.place
        path = self._own(FILES[key])
        new, old = beside(path), beside(path)
        try:
            _write(key, source, new)
            if self.resume and path.is_file():
                made_from_same(path, {key: stamp(of_path(path))}, {key: stamp(of_path(new))})
            self._before[path] = old if path.is_file() else None
            if path.is_file():
                path.rename(old)
            new.rename(path)
        finally:
            new.unlink(missing_ok=True)
        self._vouch(path)
        return str(path)

    def model(self, source: ModelLike) -> str:
        """Where a model can be read: its own folder or name; one that was extended since is saved here."""
        if not isinstance(source, Model):
            return str(source)
        if source.extended:
            path = self._own("model")
            self._before.update({} if path.is_dir() else {path: None})
            source.save(path, overwrite=True)
            self._vouch(path / MARKER_FILE)
        return source.source

    def _own(self, name: str) -> Path:
        """The place of a file of ours in the folder, which is made. Raises OutputError where it would be another's."""
        refuse_address(self.folder)
        path, marker = self.folder / name, marker_of(self.folder)
        listed = {} if marker is None else marker.sha256
        there = self.folder.is_dir() and any(self.folder.iterdir())
        known = path.is_file() and name in listed and not path.is_symlink()
        known = known or (path.is_dir() and f"{name}/{MARKER_FILE}" in listed and not path.is_symlink())
        if self.folder.is_symlink() or (there and marker is None) or (not known and is_there(path)):
            raise OutputError(
                f"{path if marker is not None else self.folder}: is there, and sparse-adapt didn't write it; move it "
                "away or choose another -o"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        if marker is None:
            mark(self.folder)
        return path

    def _vouch(self, *written: Path) -> None:
        marker = marker_of(self.folder)
        listed = [self.folder / name for name in (marker.sha256 if marker is not None else ())]
        vouch(self.folder, {*written, *filter(is_there, listed)})


def _state(folder: Path) -> tuple[int, int] | None:
    """What is another for a folder that was begun since; None for one that isn't there."""
    return (folder.stat().st_ino, folder.stat().st_ctime_ns) if is_there(folder) else None


def _remove(path: Path) -> None:
    remove(path) if path.is_dir() else path.unlink(missing_ok=True)


def _write(key: str, items: Any, path: Path) -> None:  # noqa: ANN401 - of the kind that its reader checks
    if key == "corpus":
        write_documents(path, Corpus.of(items).read())
    elif key == "terms":
        write_terms(path, terms_of(items))
    elif key == "dictionary":
        write_dictionary(path, definitions_of(items))
    elif key == "queries":
        write_queries(path, queries_of(items))
    else:
        _write_records(key, list(at_least_one(items_of(items, key), key, key)), path)


def _write_records(key: str, items: list[object], path: Path) -> None:
    """Records of ours, or dictionaries with the keys of their file, which its reader checks."""
    kind, write = RECORDS[key]
    if all(isinstance(item, kind) for item in items):
        write(path, items)
        return
    for number, item in enumerate(items, start=1):
        if not isinstance(item, Mapping):
            problem = f"needs dictionaries with the keys of {key}.jsonl (found: {type(item).__name__})"
            raise InputError(key, problem, line=number)
    write_objects(path, [dict(item) for item in items if isinstance(item, Mapping)])
