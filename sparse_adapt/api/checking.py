"""What is on the disk, read to the end: a corpus with all files beside it (`check`), or a result of ours (`verify`)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sparse_adapt.api.checks import a_folder
from sparse_adapt.api.following import column_words, line
from sparse_adapt.api.options import Columns, CorpusAtPlace, Model, Option, declared
from sparse_adapt.errors import InputError
from sparse_adapt.registry import registry
from sparse_adapt.report.results import Result

if TYPE_CHECKING:
    from sparse_adapt.api.models import ModelLike
    from sparse_adapt.collection.readers import Judgements

LOOKED_AT = 5_000  # documents whose tokens are counted


@declared
def check(corpus: CorpusAtPlace, model: Model = "splade-tiny", *, columns: Columns = ()) -> Result:
    """Read a corpus and the files beside it, and report mistakes.

    The check ends at the first bad line. It says how much of the documents the model reads.

    Every file of a known name in the corpus's folder or beside its file is read, judgements of every split too; beside
    documents in memory there are none. Raises InputError for the first line that is wrong.

    >>> import sparse_adapt as sa
    >>> sa.check("gatrocraptic").counts["queries"]
    71
    """
    from sparse_adapt.collection.arguments import Corpus
    from sparse_adapt.collection.examples import (
        CANDIDATE_FILES,
        PAIR_FILES,
        read_candidates,
        read_pairs,
        read_triplets,
    )
    from sparse_adapt.collection.glossary import DICTIONARY_FILES, read_dictionary
    from sparse_adapt.collection.readers import QUERY_FILES, read_judgements, read_queries
    from sparse_adapt.terms.mining import read_terms

    source = Corpus.of(corpus, columns)
    place = source.place or source.table
    texts = {each.document_id: each.full_text for each in source.read()}
    counts, remarks = {"documents": len(texts)}, list[str]()
    if wordless := sum(not text.strip() for text in texts.values()):
        remarks.append(f"{wordless:,} of {len(texts):,} documents hold no text, and so nothing finds them")
    remarks += _cut([*texts.values()], model)
    queries: set[str] | None = None
    if (path := _first(place, QUERY_FILES)) is not None:
        queries = {query.query_id for query in read_queries(path)}
        counts["queries"] = len(queries)
    for split, path in _judged(place).items():
        judgements = read_judgements(path)
        counts[f"judgements of {split}"] = sum(map(len, judgements.values()))
        remarks += _strangers(path, judgements, set(texts), queries)
    others: dict[str, tuple[Sequence[str], Callable[[Path], Sequence[object]]]] = {
        "candidates": (CANDIDATE_FILES, lambda file: list(read_candidates(file, document_ids=texts))),
        "pairs": (PAIR_FILES, lambda file: list(read_pairs(file, document_ids=texts))),
        "triplets": (("triplets.jsonl",), lambda file: list(read_triplets(file))),
        "labelled": (("labelled.jsonl",), lambda file: list(read_triplets(file))),
        "terms": (("terms.json",), read_terms),
        "dictionary": (DICTIONARY_FILES, read_dictionary),
    }
    for name, (files, read) in others.items():
        if (path := _first(place, files)) is not None:
            counts[name] = len(read(path))
    return Result(
        ", ".join(f"{name} {count:,}" for name, count in counts.items()),
        counts,
        rows=[{"what": name, "count": count} for name, count in counts.items()],
        notes=[f"{source.name}: {remark}" for remark in remarks],
        then=[line("adapt", place, *column_words(columns))] if place else [],
        counts=counts,
        remarks=remarks,
    )


def _cut(texts: Sequence[str], model: "ModelLike") -> list[str]:
    """How much of the documents a model reads, and what reads the rest; nothing where it reads all."""
    from sparse_adapt.api.models import Model
    from sparse_adapt.collection.streams import evenly
    from sparse_adapt.model.kinds import load_encoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.model.windows import PartRead

    encoder = model.encoder if isinstance(model, Model) else load_encoder(model)
    part = PartRead.of(list(evenly(texts, LOOKED_AT)), encoder.tokenizer, encoder.max_tokens)
    whole, said = "cover every document whole", f"{getattr(model, 'source', model)} reads {part}"
    if not part.longer:
        return []
    if not isinstance(encoder, SparseEncoder):
        return [said]
    if encoder.words is not None:
        return [f"{said}; its exact words {whole}"] if encoder.windows is None else []
    by_windows = f"and --windows {encoder.max_tokens} reads it whole"
    return [] if encoder.windows else [f"{said}; exact words (sparse-adapt words) {whole}, {by_windows}"]


def _first(corpus: str, names: Sequence[str]) -> Path | None:
    """The first of some files that lies in a corpus's folder, or beside its file; None beside what has no place."""
    from sparse_adapt.collection.sources import file_beside

    if not corpus:
        return None
    return next((path for name in names if (path := file_beside(corpus, name)) is not None), None)


def _judged(corpus: str) -> dict[str, Path]:
    """The judgements in the folder `qrels`, every split of them; none beside what has no place."""
    from sparse_adapt.collection.sources import bundled, judgement_files

    if not corpus:
        return {}
    place = bundled(corpus)
    return judgement_files(place if place.is_dir() else place.parent) if place.exists() else {}


def _strangers(
    path: Path, judgements: "Judgements", documents: set[str], queries: set[str] | None
) -> list[str]:
    """What is judged and isn't there: documents that count as not found, queries that nobody can ask."""
    judged = list(dict.fromkeys(each for of_query in judgements.values() for each in of_query))
    remarks = []
    if unknown := [each for each in judged if each not in documents]:
        share = f"{len(unknown):,} of {len(judged):,} judged documents"
        remarks.append(f"{path.name}: {share} aren't in the corpus ({unknown[0]!r}), and count as not found")
    if unasked := [each for each in judgements if queries is not None and each not in queries]:
        share = f"{len(unasked):,} of {len(judgements):,} judged queries"
        remarks.append(f"{path.name}: {share} aren't among the queries ({unasked[0]!r}), and are left out")
    return remarks


@declared
def verify(
    place: Annotated[
        str | Path,
        Option(
            "A folder that a command wrote: a model, vectors, an export, an index or a whole run.",
            metavar="PATH",
            place=True,
            check=a_folder,
        ),
    ],
) -> Result:
    """Check that a result is as it was written.

    Every file has to have its checksum, weights have to be numbers, and matrices have to be well-formed.

    Results within it are looked at as well. Raises InputError or ModelError for the first fault, and for a folder that
    vouches for nothing.

    >>> import tempfile, sparse_adapt as sa
    >>> folder = sa.load("splade-tiny", device="cpu").save(tempfile.mkdtemp() + "/model")
    >>> sa.verify(folder).models
    1
    """
    from sparse_adapt.files.marker import MARKER_FILE, faults, marker_of

    folder = Path(place)
    marker = marker_of(folder)
    if marker is None or not marker.sha256:
        raise InputError(
            place, f"bears no {MARKER_FILE} that lists its files, so nothing says what was written"
        )
    for fault in faults(folder):
        raise InputError(fault.path, f"{fault.problem}; make it anew, or copy it again")
    markers = sorted(folder.rglob(MARKER_FILE))
    files = sum(len(marker.sha256) for path in markers if (marker := marker_of(path.parent)) is not None)
    counts = {"models": 0, "vectors": 0, "exports": 0}
    for within in (path.parent for path in markers):
        kind = _check(within)
        if kind in counts:
            counts[kind] += 1
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    headline = f"{place}: all {files:,} files are as they were written{f' ({kinds})' if kinds else ''}"
    return Result(headline, {"files": files, **counts}, folder=str(place))


def _check(folder: Path) -> str:
    """Read a result by its own reader, which raises for what isn't sound; what kind it is."""
    from sparse_adapt.files.marker import MODEL_MARK
    from sparse_adapt.model.kinds import load_encoder
    from sparse_adapt.retrieve.vectors.folder import read_shards
    from sparse_adapt.retrieve.vectors.manifest import MANIFEST_FILE, read_format

    if not (folder / MANIFEST_FILE).is_file():
        if not (folder / MODEL_MARK).is_file():
            return ""
        load_encoder(folder)
        return "models"
    kind = read_format(folder)
    if kind == "vectors":
        for _ in read_shards(folder):
            pass
        return kind
    if kind not in registry().all_of("readers.exports"):
        return ""
    registry().find("readers.exports", kind)(folder, kind)
    return "exports"
