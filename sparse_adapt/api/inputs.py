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
from sparse_adapt.errors import InputError, SparseAdaptError
from sparse_adapt.files.folders import check_free
from sparse_adapt.files.marker import MARKER_FILE
from sparse_adapt.files.place import Place
from sparse_adapt.files.steps import made_from_same, of_path, stamp
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
    """The folder of files beside one result; nothing is made before something is written there."""

    def __init__(self, result: Place) -> None:
        """Raises OutputError for a result that is there, or begun, where the call doesn't say what becomes of it."""
        if not result.resume:
            check_free(replace(result, resumable=False))
        self.folder, self.resume = result.folder.with_name(f"{result.folder.name}-inputs"), result.resume
        self.partial = result.partial

    @contextmanager
    def unless_refused(self) -> Iterator[None]:
        """Leave nothing of a call that is refused before anything was made; name what was given, not its file here."""
        new = [each for each in (self.folder, self.partial) if not each.exists()]
        try:
            yield
        except SparseAdaptError as error:
            if all(path.name in BEGINS for path in self.partial.rglob("*")):
                for folder in new:
                    shutil.rmtree(folder, ignore_errors=True)
            keys = {str(self.folder / file): key for key, file in FILES.items()}
            if isinstance(error, InputError) and (key := keys.get(error.path)) is not None:
                raise InputError(CALLED.get(key, key), error.problem, line=error.line) from error
            raise

    def place(self, key: str, source: InputLike | Corpus) -> str:
        """Where something given can be read: its own path, or a file written here.

        Raises ConfigError where a run that is to go on was begun with other things in memory.
        """
        if isinstance(source, str | Path):
            return str(source)
        if isinstance(source, Corpus) and source.place is not None:
            return source.place
        path = self.folder / FILES[key]
        new = path.with_name(f"new-{path.name}")
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(key, source, new)
        try:
            if self.resume and path.is_file():
                made_from_same(path, {key: stamp(of_path(path))}, {key: stamp(of_path(new))})
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
        return str(path)

    def model(self, source: ModelLike) -> str:
        """Where a model can be read: its own folder or name; one that was extended since is saved here."""
        if not isinstance(source, Model):
            return str(source)
        if source.extended:
            source.save(self.folder / "model", overwrite=True)
        return source.source


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
