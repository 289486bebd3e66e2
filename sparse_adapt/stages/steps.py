"""Each stage as one call: model folder and files in, model folder out. Resumable, and recorded in `stage.json`.

A stage's folder holds the model, `history.jsonl`, and `stage.json`: what it was made from (model, files with
checksums), with which settings, seed and package versions. The next stage reads there what it inherits.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import compress
from pathlib import Path
from typing import Any, TypeVar

from sparse_adapt import config
from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.collection.pairs import read_pairs
from sparse_adapt.collection.readers import Candidates, read_candidates, read_documents
from sparse_adapt.collection.sources import beside
from sparse_adapt.collection.triplets import read_triplets
from sparse_adapt.errors import ConfigError, InputError, SparseAdaptError
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.journal import check_same
from sparse_adapt.files.processes import common_folder, is_main
from sparse_adapt.model import vocabulary
from sparse_adapt.model.kinds import EitherEncoder, load_encoder
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.stages.dictionary import dictionary
from sparse_adapt.stages.parts.about import Asked
from sparse_adapt.stages.parts.balance import balanced
from sparse_adapt.stages.parts.behaviour import DenseBehaviour, SparseBehaviour
from sparse_adapt.stages.parts.distill import Distill
from sparse_adapt.stages.parts.distill_dense import DenseDistill
from sparse_adapt.stages.parts.dynamic import Dynamic
from sparse_adapt.stages.parts.pairing import Pairing
from sparse_adapt.stages.parts.scored import relevant_to
from sparse_adapt.stages.parts.triplets import Opposing
from sparse_adapt.stages.warmup import warmup
from sparse_adapt.terms.mining import read_terms
from sparse_adapt.training.loop import STATE_FILE, Concluding, Progress, Stage, device_of, forget, train

RECORD_FILE = "stage.json"
BEGUN_WITH = ("stage", "model", "files", "settings")  # of a record: what can't change when a run goes on
PACKAGES = ("sparse-adapt", "torch", "transformers", "tokenizers", "accelerate")
Kind = TypeVar("Kind", bound=EitherEncoder)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stage writes, and what may already be there."""

    folder: Path
    overwrite: bool = False
    resume: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage did: a sentence or two for the reader, and the record that lies beside the model."""

    folder: Path
    said: str
    record: Mapping[str, Any]


def extend(model: str, terms: str | Path, place: Place) -> Outcome:
    """Give every term in a file a token and rows of its own, in a model of either kind."""
    started = time.monotonic()
    wanted = read_terms(terms)
    encoder = load_encoder(model)
    try:
        extension = vocabulary.extend(encoder, wanted)
    except vocabulary.TermError as error:
        raise InputError(terms, str(error), line=_line_of(Path(terms), error.term)) from error
    record = _record("extend", model, {"terms": terms}, {}, started)
    record["folded"], record["guarded"] = extension.folded, extension.guarded
    with common_folder(place.folder, overwrite=place.overwrite, resume=place.resume) as work:
        if is_main():
            encoder.save(work)
            write_json(work / RECORD_FILE, record)
    return Outcome(place.folder, _told_of(extension, encoder), record)


def run_behaviour(
    model: str,
    corpus: str,
    settings: config.Behaviour,
    place: Place,
    *,
    before: str | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Have an extended model of either kind do what `before` did; by default the one that was extended."""
    documents = [document.full_text for document in read_documents(corpus)]
    extended = before or _extended_from(model)
    if extended is None:
        raise ConfigError(
            f"{model}: nothing says which model was extended to this one; name it with --baseline"
        )

    def build(encoder: EitherEncoder) -> Stage[Any]:
        reference = load_encoder(extended, str(encoder.device))
        match encoder, reference:
            case SparseEncoder(), SparseEncoder():
                return SparseBehaviour(encoder, reference, documents, settings)
            case SentenceEncoder(), SentenceEncoder():
                return DenseBehaviour(encoder, reference, documents, settings)
        raise ConfigError(f"{model} and {extended}: one is sparse, the other dense; name another --baseline")

    return _run("behaviour", model, {"corpus": corpus}, settings, place, (load_encoder, build), progress)


def _extended_from(model: str) -> str | None:
    """The model that the last extension behind a model folder began with; None where nothing tells of one."""
    place = model
    while (path := Path(place) / RECORD_FILE).is_file():
        record = json.loads(path.read_text(encoding="utf-8"))
        place = str(record["model"])
        if record["stage"] == "extend":
            return place
    return None


def _before(model: str, encoder: EitherEncoder, load: Callable[[str, str], Kind]) -> Kind | None:
    """The model before the last extension behind a model folder, where the encoder is; None without one."""
    extended = _extended_from(model)
    return None if extended is None else load(extended, str(encoder.device))


def run_warmup(
    model: str, corpus: str, settings: config.Warmup, place: Place, progress: Progress | None = None
) -> Outcome:
    """Teach the new rows from the documents of a corpus."""
    documents = list(read_documents(corpus))

    def build(encoder: SparseEncoder) -> Stage[SparseEncoder]:
        return warmup(encoder, [document.full_text for document in documents], settings)

    return _run("warmup", model, {"corpus": corpus}, settings, place, (SparseEncoder.load, build), progress)


def run_dictionary(
    model: str,
    definitions: str | Path,
    corpus: str | None,
    settings: config.Dictionary,
    place: Place,
    progress: Progress | None = None,
) -> Outcome:
    """Teach the model from definitions; without a corpus, the one that the previous stage read stands beside.

    Where candidates lie beside the corpus, their queries tell what else means a term.
    """
    entries = read_dictionary(definitions)
    corpus = corpus or inherited(model).get("corpus")
    documents = {each.document_id: each.full_text for each in read_documents(corpus)} if corpus else {}
    candidates = beside(corpus, "candidates.jsonl") if corpus else None
    queries = [] if candidates is None else _asked(candidates, documents)

    def build(encoder: SparseEncoder) -> Stage[SparseEncoder]:
        return dictionary(encoder, entries, list(documents.values()), settings, queries)

    named = {"dictionary": definitions, "corpus": corpus, "candidates": candidates}
    files = {name: str(path) for name, path in named.items() if path is not None}
    return _run("dictionary", model, files, settings, place, (SparseEncoder.load, build), progress)


def _asked(candidates: Path, documents: Mapping[str, str]) -> list[Asked]:
    """Queries with the documents that their teacher finds relevant."""
    entries = list(read_candidates(candidates, document_ids=documents))
    texts = _with_theirs(documents, entries)
    return [
        Asked(entry.query, [texts[name] for name in compress(entry.document_ids, relevant_to(entry))])
        for entry in entries
    ]


def _with_theirs(documents: Mapping[str, str], entries: Sequence[Candidates]) -> dict[str, str]:
    """Documents by id, those that the candidates bring along too."""
    whole = dict(documents)
    for entry in entries:
        for name, text in zip(entry.document_ids, entry.texts, strict=False):
            whole.setdefault(name, text)
    return whole


def run_distill(
    model: str,
    candidates: str | Path,
    corpus: str,
    settings: config.Distill,
    place: Place,
    progress: Progress | None = None,
) -> Outcome:
    """Teach the whole model, of either kind, to score as a teacher does.

    The definitions that the previous stage read tell what else means a term.
    """
    definitions = inherited(model).get("dictionary")
    defined = [] if definitions is None else read_dictionary(definitions)
    documents = {document.document_id: document.full_text for document in read_documents(corpus)}
    entries = list(read_candidates(candidates, document_ids=documents))
    documents = _with_theirs(documents, entries)

    def build(encoder: EitherEncoder) -> Stage[Any]:
        stage: Stage[Any]
        if isinstance(encoder, SparseEncoder):
            everyday = settings.anchored == "everyday"
            before = _before(model, encoder, SparseEncoder.load) if everyday else None
            stage = Distill(encoder, entries, documents, settings, before, defined)
        else:
            begun = _before(model, encoder, SentenceEncoder.load) if settings.weights.anchor > 0.0 else None
            stage = DenseDistill(encoder, entries, documents, settings, begun)
        if settings.balanced:
            stage.weights = balanced(encoder, stage, apart={"anchor"})  # at rest before the first step
        return stage

    files = {"candidates": str(candidates), "corpus": corpus}
    files |= {} if definitions is None else {"dictionary": definitions}
    return _run("distill", model, files, settings, place, (load_encoder, build), progress)


def run_dynamic(
    model: str, corpus: str, settings: config.Dynamic, place: Place, progress: Progress | None = None
) -> Outcome:
    """Teach a model of either kind the words of a corpus that it finds hardest."""
    documents = [document.full_text for document in read_documents(corpus)]

    def build(encoder: EitherEncoder) -> Stage[EitherEncoder]:
        return Dynamic(encoder, documents, settings)

    outcome = _run("dynamic", model, {"corpus": corpus}, settings, place, (load_encoder, build), progress)
    record = outcome.record
    told = f"{record['sentences']:,} sentences, {record['sentences_without_words']:,} without a word to mask left out"
    if settings.masking == "dynamic":
        share = record["choosing_seconds"] / max(record["seconds"], record["choosing_seconds"], 0.1)
        told += f"; choosing words took {share:.0%} of the time"
    return replace(outcome, said=f"{outcome.said}; {told}")


def run_pairs(
    model: str,
    pairs: str | Path,
    corpus: str,
    settings: config.Contrast,
    place: Place,
    progress: Progress | None = None,
    *,
    name: str,
) -> Outcome:
    """Teach a model of either kind from pairs: the stage `joint` or `contrast`, as `name` and settings say."""
    documents = {document.document_id: document.full_text for document in read_documents(corpus)}
    entries = list(read_pairs(pairs, document_ids=documents))

    def build(encoder: EitherEncoder) -> Stage[EitherEncoder]:
        before = _before(model, encoder, load_encoder) if settings.weights.anchor > 0.0 else None
        return Pairing(name, encoder, entries, documents, settings, before)

    files = {"pairs": str(pairs), "corpus": corpus}
    return _run(name, model, files, settings, place, (load_encoder, build), progress)


def run_triplets(
    model: str,
    triplets: str | Path,
    settings: config.Triplets,
    place: Place,
    progress: Progress | None = None,
    *,
    name: str,
) -> Outcome:
    """Teach a model of either kind from contradictions: the stage `triplets` or `labelled`, as `name` says."""
    entries = list(read_triplets(triplets))

    def build(encoder: EitherEncoder) -> Stage[EitherEncoder]:
        return Opposing(name, encoder, entries, settings)

    return _run(name, model, {name: str(triplets)}, settings, place, (load_encoder, build), progress)


def inherited(model: str) -> dict[str, str]:
    """Files that the stage behind a model folder read, those that are still there."""
    path = Path(model) / RECORD_FILE
    if not path.is_file():
        return {}
    files = json.loads(path.read_text(encoding="utf-8")).get("files", {})
    return {name: entry["path"] for name, entry in files.items() if _is_unchanged(entry)}


def _settled(given: config.Training, taught: config.Training) -> dict[str, Any]:
    """What the settings left open and the stage settled by what it learns from."""
    before = given.model_dump(mode="json")
    return {key: value for key, value in taught.model_dump(mode="json").items() if before[key] != value}


def _run(
    name: str,
    model: str,
    files: Mapping[str, str],
    settings: config.Training,
    place: Place,
    made_by: tuple[Callable[[str, str], Kind], Callable[[Kind], Stage[Kind]]],
    progress: Progress | None,
) -> Outcome:
    """`made_by`: what loads the model on a device, and what makes the stage for it."""
    started = time.monotonic()
    load, build = made_by
    encoder = load(model, device_of(settings))
    if settings.max_tokens is not None:
        encoder.read_up_to(settings.max_tokens)
    stage = build(encoder)
    with common_folder(place.folder, overwrite=place.overwrite, resume=place.resume) as work:
        record = _record(name, model, files, settings.model_dump(mode="json"), started)
        check_same(work / RECORD_FILE, {key: record[key] for key in BEGUN_WITH})
        if is_main():
            write_json(work / RECORD_FILE, record)
        try:
            history = train(encoder, stage, work, progress=progress)
        except SparseAdaptError:
            if (
                is_main() and not (work / STATE_FILE).is_file()
            ):  # refused before there was anything to go on from
                shutil.rmtree(work)
            raise
        record = {
            **record,
            "steps": len(history),
            "settled": _settled(settings, stage.settings),
            "seconds": round(time.monotonic() - started, 1),
        }
        if isinstance(stage, Concluding):
            record |= stage.conclude(encoder)
        if is_main():
            encoder.save(work)
            write_json(work / RECORD_FILE, record)
    if is_main():
        forget(place.folder)
    last = {key: value for key, value in history[-1].items() if key not in ("step", "learning_rate")}
    told = ", ".join(f"{key} {value:.3g}" for key, value in last.items())
    return Outcome(
        place.folder, f"{len(history):,} steps in {record['seconds']:.0f} s; at the end {told}", record
    )


def _record(
    stage: str, model: str, files: Mapping[str, str | Path], settings: Mapping[str, Any], started: float
) -> dict[str, Any]:
    return {
        "stage": stage,
        "model": str(Path(model).resolve()) if Path(model).is_dir() else model,
        "files": {name: _stamp(str(path)) for name, path in files.items()},
        "settings": dict(settings),
        "versions": {package: version(package) for package in PACKAGES},
        "seconds": round(time.monotonic() - started, 1),
    }


def _stamp(path: str) -> dict[str, str]:
    """A file's path and checksum; names of datasets and bundled corpora stay as they are."""
    place = Path(path) / "corpus.jsonl" if Path(path).is_dir() else Path(path)
    if not place.is_file():
        return {"path": path}
    return {"path": str(Path(path).resolve()), "sha256": hashlib.sha256(place.read_bytes()).hexdigest()}


def _is_unchanged(entry: Mapping[str, str]) -> bool:
    return "sha256" not in entry or _stamp(entry["path"]).get("sha256") == entry["sha256"]


def _line_of(path: Path, term: str) -> int | None:
    """The line of a file that first holds a term as a JSON string."""
    wanted = json.dumps(term, ensure_ascii=False)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if wanted in line or json.dumps(term) in line:
            return number
    return None


def _told_of(extension: vocabulary.Extension, encoder: EitherEncoder) -> str:
    told = f"{len(extension.new_tokens):,} new tokens, {encoder.vocabulary_size:,} in all"
    if extension.folded:
        told += f"; {len(extension.folded):,} variants of the same token folded"
    if extension.guarded:
        told += f"; {len(extension.guarded):,} match whole words only, to leave ordinary words unbroken"
    return told
