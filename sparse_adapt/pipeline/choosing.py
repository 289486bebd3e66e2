"""The last steps of an adaptation: which model is kept, and what it keeps of what the base model knew."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.marker import vouching
from sparse_adapt.files.place import absolute
from sparse_adapt.files.records import read_record
from sparse_adapt.model.kinds import open_sparse
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.choice import (
    ChoiceMade,
    compare_as_they_are,
    held_collection,
    keep,
    makers_of,
    record,
    try_models,
)
from sparse_adapt.pipeline.evidence import Taught, keep_or_refuse
from sparse_adapt.pipeline.keeps import Keeps, keeps_lines, measure_keeps
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.pipeline.work import Work
from sparse_adapt.retrieve.touched import ids_saying, write_ids
from sparse_adapt.stages.card import in_short, with_record, write_card
from sparse_adapt.stages.dictionary import Dictionary
from sparse_adapt.stages.made_from import of_model, of_path, stamp
from sparse_adapt.stages.record import write_record
from sparse_adapt.stages.runner import Outcome
from sparse_adapt.synthetic.queries import read_pseudo_queries

CHOICE_FILE, KEEPS_FILE = "choice.json", "keeps.json"
MAKE_AGAIN = "remove it and pass --resume, which makes it again"


def choose_model(work: Work, plan: Plan, outcomes: Sequence[Outcome]) -> None:
    """Measure every model on the queries set aside, keep one, and list the documents to encode again."""
    folder, request, settings = work.folder, work.request, work.request.settings
    collection, held_file = work.run / "collection", work.run / "held.jsonl"
    sources = {"held": of_path(held_file), "model": work.made(f"{len(plan.stages)}-{plan.stages[-1]}")}
    if work.ranked is not None:
        sources["ranked"] = of_path(work.ranked)

    def do() -> str:
        documents = {each.document_id: each for each in read_documents(collection)}
        kinds = {query.query_id: query.kind for query in read_pseudo_queries(collection)}
        entries = list(read_candidates(held_file, document_ids=documents))
        held = held_collection(documents, entries, kinds)
        makers = makers_of(plan, folder, settings.merges, request.reading, work.ranked)
        progress = work.watcher.count("models tried", len(makers))
        if settings.frozen:
            choice = compare_as_they_are(makers, held, progress, taught="table" in plan.stages)
        else:
            taught = bool({"dictionary", "table"} & set(plan.stages))
            choice = try_models(makers, held, progress, taught=taught)
        shutil.rmtree(folder / "model", ignore_errors=True)
        partial_folder = folder / "model.making"
        if settings.frozen or request.ends_with_table:  # asked for whatever it gains
            keep(choice, makers, None if settings.frozen else list(documents.values()), partial_folder)
            tried = record(choice)
        else:
            choice, told = keep_or_refuse(
                choice, makers, list(documents.values()), _taught(work, plan), settings.seed, partial_folder
            )
            tried = record(choice) | told
        about = _record_of(work, outcomes, tried)
        with vouching(partial_folder):
            write_card(partial_folder, with_record(about))
            write_record(partial_folder, about, work.run)
        partial_folder.rename(folder / "model")
        write_json(folder / CHOICE_FILE, tried)
        said = f"{choice.best.label} is kept, of {len(choice.tried)} models on {len(held.queries):,} queries set aside"
        return said if tried.get("refused") is None else f"{said}; {tried['refused']}"

    work.step("choice", sources, [CHOICE_FILE, "model"], do)
    _list_what_to_encode(work, plan)


def _taught(work: Work, plan: Plan) -> Taught:
    """The definitions that a stage taught, and its judge."""
    settings = plan.settings.get("dictionary")
    if not isinstance(settings, Dictionary):
        return Taught()
    return Taught(read_dictionary(work.folder / "dictionary.jsonl"), settings.judge)


def measure_kept(work: Work) -> None:
    """What the kept model keeps of what the base model knew; nothing to tell where the base model is kept."""
    folder, request = work.folder, work.request

    def do() -> str:
        kept = choice_made(work).kept
        keeps: dict[str, Any] = {}
        if kept != 0:
            base = open_sparse(request.model, request.reading)
            model = SparseEncoder.load(folder / "model", request.device)
            keeps = measure_keeps(base, model, work.documents)
        write_json(folder / KEEPS_FILE, keeps)
        return keeps_lines(keeps)[0] if keeps else "the base model is kept, and so is all that it knew"

    work.step("keeps", {"model": work.made("model")}, [KEEPS_FILE], do)


def choice_made(work: Work) -> ChoiceMade:
    """What the step before has chosen. Raises InputError for a file that somebody damaged."""
    return read_record(work.folder / CHOICE_FILE, ChoiceMade, MAKE_AGAIN)


def kept_made(work: Work) -> Keeps:
    """What `measure_kept` found. Raises InputError for a file that somebody damaged."""
    return read_record(work.folder / KEEPS_FILE, Keeps, MAKE_AGAIN)


def _record_of(work: Work, outcomes: Sequence[Outcome], tried: Mapping[str, Any]) -> dict[str, Any]:
    """What the commands that take a model folder look for in it, and what its card tells."""
    request, kept = work.request, tried["tried"][tried["kept"]]
    rows = [tried["tried"][0], kept] if tried["kept"] else [kept]
    note = f"On {tried['queries']:,} made-up queries that were set aside; judge by queries of your own."
    return {
        "stage": "adapt",
        "model": stamp(of_model(absolute(request.model))),
        "files": {"corpus": stamp(work.named("corpus")["corpus"])},
        "settings": request.settings.model_dump(mode="json"),
        "stages": [in_short(outcome.record) for outcome in outcomes] if tried["kept"] else [],
        "command": request.command(),
        "measures": {"rows": rows, "note": note},
    }


def _list_what_to_encode(work: Work, plan: Plan) -> None:
    """The ids of documents that hold a new term: with old rows untouched, the others' vectors stay good."""
    if "extend" not in plan.stages:
        return
    encoder, before = SparseEncoder.load(work.folder / "1-extend"), SparseEncoder.load(plan.model)
    new = {token.token_id for token in encoder.new_tokens if token.token_id >= before.vocabulary_size}
    ids = list(ids_saying(encoder, read_documents(work.request.corpus), new))
    write_ids(work.folder, ids)
    work.with_new_terms = len(ids)
