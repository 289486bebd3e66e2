"""The last steps of an adaptation: which model is kept, what it keeps of what the base model knew, and the verdict.

The models that could be kept are the base model, the one before the last stage, the one after it, and those between
the two; `selection` measures them and decides.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, RootModel

from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.collection.readers import Document, read_documents
from sparse_adapt.collection.streams import evenly
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.marker import vouching
from sparse_adapt.files.place import absolute
from sparse_adapt.files.records import read_record
from sparse_adapt.files.steps import of_path, stamp
from sparse_adapt.model.folder import of_model
from sparse_adapt.model.kinds import open_sparse
from sparse_adapt.model.reading import Reading
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.pipeline.report import Report, ruling_of
from sparse_adapt.pipeline.settings import WORDS
from sparse_adapt.pipeline.work import Work
from sparse_adapt.report.progress import duration
from sparse_adapt.report.tables import Column, Retained, Row, Table
from sparse_adapt.retrieve.evaluate import Collection, read_collection
from sparse_adapt.retrieve.touched import ids_saying, touched_by, write_ids
from sparse_adapt.selection.comparison import (
    JudgedDocuments,
    TaughtDefinitions,
    judged_evidence,
    keep_or_refuse,
)
from sparse_adapt.selection.evidence import retained_in
from sparse_adapt.selection.general import WORD, GeneralRow
from sparse_adapt.selection.models import (
    COMPARED_DOCUMENTS,
    Choice,
    Maker,
    added,
    choose_from,
    compare_as_they_are,
    compare_words,
    held_out_collection,
    keep,
    merge,
    record,
    try_models,
)
from sparse_adapt.selection.questions import SOME, general_collection
from sparse_adapt.selection.record import BASE, EXACT, RANKING, Chosen, OnJudged, has_words
from sparse_adapt.selection.retention import measure_retention, texts_in
from sparse_adapt.selection.ruling import at_most
from sparse_adapt.stages.card import in_short, with_record, write_card
from sparse_adapt.stages.dictionary import Dictionary
from sparse_adapt.stages.record import StageRecord, write_record
from sparse_adapt.stages.runner import Outcome
from sparse_adapt.synthetic.queries import HELD, read_synthetic_queries

CHOICE_FILE, RETENTION_FILE, HELD_FILE = "choice.json", "retention.json", "held.jsonl"
MAKE_AGAIN = "remove it and pass --resume, which makes it again"
COLUMNS = (
    Column("kept", "", "text"),
    Column("name", "model", "text"),
    Column("ndcg@10", "nDCG@10", decimals=4),
    Column("difference", "to base", decimals=4, signed=True),
    Column("low", "from", decimals=4, signed=True),
    Column("high", "to", decimals=4, signed=True),
    Column("recall@100", "recall@100", decimals=4),
    Column("general", "general", decimals=4),
    Column("nonzero_document", "non-zeros", decimals=1),
    Column("nonzero_query", "of a query", decimals=1),
)


class ChoiceMade(BaseModel):
    """What `choice.json` holds: a row for each that was tried, the number of the row that is kept, and why."""

    model_config = ConfigDict(frozen=True, extra="allow")

    measure: str
    queries: int
    kept: int = Field(ge=0)
    tried: list[dict[str, object]]


class Retention(RootModel[dict[str, dict[str, object]]]):
    """What `retention.json` holds: figures by the kind of queries; nothing where the base model is kept."""


def makers_of(
    plan: Plan,
    folder: Path,
    interpolations: Sequence[float],
    reading: Reading,
    ranked: Path | None = None,
) -> list[Maker]:
    """The models that could be kept: the base model, the one before distillation, merges, the distilled one.

    `reading`: how they read documents, and on which device; `ranked`: a model that learnt to rank from the same base
    model while the plan taught words, and whose changes could be added.
    """
    load = partial(open_sparse, reading=reading)
    if not plan.stages:
        return [Maker(BASE, None, partial(load, plan.model))]
    models = {stage: folder / f"{number}-{stage}" for number, stage in enumerate(plan.stages, start=1)}
    before = str(models[plan.stages[-2]]) if len(plan.stages) > 1 else plan.model
    makers = [Maker(BASE, None, partial(load, plan.model))]
    if plan.stages[-1] != "rank":
        stage, last = plan.stages[-1], models[plan.stages[-1]]
        makers.append(Maker(stage, None, partial(load, last)))
        if ranked is None:
            return makers

        def both(back: float) -> SparseEncoder:
            return added(load(last), load(plan.model), load(ranked), 1 - back)

        def alone(back: float) -> SparseEncoder:
            return merge(load(plan.model), load(ranked), back) if back else load(ranked)

        makers[1:1] = _on_the_way(RANKING, interpolations, alone)
        return [*makers, *_on_the_way(f"{stage} and ranking", interpolations, both)]
    if len(plan.stages) > 1:
        makers.append(Maker(plan.stages[-2], None, partial(load, before)))

    def distilled(back: float) -> SparseEncoder:
        model = load(models["rank"])
        return merge(load(before), model, back) if back else model

    return [*makers, *_on_the_way("rank", interpolations, distilled)]


def with_words(makers: Sequence[Maker], words: Callable[[], SparseEncoder]) -> list[Maker]:
    """The base model as it is, the same with exact words, and all others with the same exact words.

    What learnt no token scales takes up those beside the words. `words`: makes the model that has them.
    """

    def make(maker: Maker) -> SparseEncoder:
        model, exact = maker.make(), words()
        model.words = exact.words
        if model.token_scales is None:
            model.token_scales = exact.token_scales
        return model

    others = [maker._replace(make=partial(make, maker)) for maker in makers[1:]]
    return [makers[0], Maker(EXACT, None, words), *others]


def sources_of(collection: Collection) -> Collection:
    """Synthetic queries over at most so many documents, those that they were made from among them."""
    wanted = {name for judged in collection.judgements.values() for name in judged}
    drawn = {each.document_id for each in evenly(collection.documents, COMPARED_DOCUMENTS)}
    documents = tuple(each for each in collection.documents if each.document_id in wanted | drawn)
    return Collection(documents, collection.queries, collection.judgements)


def _on_the_way(
    name: str, interpolations: Sequence[float], make: Callable[[float], SparseEncoder]
) -> Iterator[Maker]:
    """A model for each interpolation weight, the one that is learnt as it is last."""
    for back in (*interpolations, 0.0):
        yield Maker(f"{name} at {1 - back:.0%}" if back else name, back, partial(make, back))


def choose_model(work: Work, plan: Plan, outcomes: Sequence[Outcome]) -> None:
    """Measure every model on the queries set aside, keep one, and list the documents to encode again."""
    folder, request, settings = work.folder, work.request, work.request.settings
    sources = {"words": of_path(work.run / WORDS) if request.adds_words else None}
    if plan.stages:
        sources |= {
            "held": of_path(work.run / HELD_FILE),
            "model": work.made(f"{len(plan.stages)}-{plan.stages[-1]}"),
        }
    if work.ranked is not None:
        sources["ranked"] = of_path(work.ranked)

    def do() -> str:
        documents = {each.document_id: each for each in read_documents(work.run / "collection")}
        makers = makers_of(plan, folder, settings.interpolations, request.reading, work.ranked)
        if request.adds_words:
            makers = with_words(makers, partial(open_sparse, work.run / WORDS, request.reading))
        shutil.rmtree(folder / "model", ignore_errors=True)
        partial_folder = folder / "model.making"
        if plan.stages:
            choice, stored = _choose_taught(work, plan, makers, documents, partial_folder)
        else:
            choice, stored = _choose_words(work, makers, partial_folder)
        about = _record_of(work, outcomes, stored)
        with vouching(partial_folder):
            write_card(partial_folder, with_record(about))
            write_record(partial_folder, about, work.run)
        partial_folder.rename(folder / "model")
        write_json(folder / CHOICE_FILE, stored)
        if choice.general:
            work.general = [choice.general[name] for name in (BASE, choice.best.name)]
        message = f"kept: {choice.best.label}, of {len(choice.tried)} models on "
        message += f"{stored['queries']:,} queries set aside"
        return message if stored.get("refused") is None else f"{message}; {stored['refused']}"

    work.step("choice", sources, [CHOICE_FILE, "model"], do)
    _list_what_to_encode(work, plan)


def words_alone(tried: Sequence[Mapping[str, object]]) -> bool:
    """Whether nothing was taught: what was tried is the base model, and that with exact words."""
    return [row["name"] for row in tried] == [BASE, EXACT]


def _choose_words(work: Work, makers: Sequence[Maker], folder: Path) -> tuple[Choice, Chosen]:
    """The base model and the same with exact words, on synthetic queries and on general questions; the kept one saved.

    Nothing was taught, so the kept model is saved as it is.
    """
    held_out, general = (
        sources_of(read_collection(work.run / "collection", HELD)),
        general_collection(most=SOME),
    )
    progress = work.watcher.count("texts read by both models", texts_in(held_out, general))
    base_scales = makers[0].make().token_scales
    choice = compare_words(makers[1].make(), base_scales, held_out, general, progress)
    keep(choice, makers, None, folder)
    return choice, record(choice)


def _choose_taught(
    work: Work, plan: Plan, makers: Sequence[Maker], documents: Mapping[str, Document], folder: Path
) -> tuple[Choice, Chosen]:
    """All models on the queries set aside, those that the choice hangs on on general questions; the kept one saved."""
    kinds = {query.query_id: query.kind for query in read_synthetic_queries(work.run / "collection")}
    entries = list(read_candidates(work.run / HELD_FILE, document_ids=documents))
    held_out = held_out_collection(documents, entries, kinds)
    progress = work.watcher.count("models tried", len(makers))
    if work.request.settings.frozen:  # the user wants it, whatever it gains
        choice = compare_as_they_are(makers, held_out, progress)
        keep(choice, makers, None, folder)
        return choice, record(choice)
    last = work.folder == work.run  # else ranking, which is added to words and measured with them
    general = general_collection() if last else None
    tried = try_models(makers, held_out, progress)
    choice = choose_from(makers, tried, general, words="dictionary" in plan.stages)
    texts, seed = list(documents.values()), work.request.settings.seed
    choice, comparison = keep_or_refuse(choice, makers, texts, _taught(work, plan), seed, folder)
    return choice, record(choice) | comparison


def _taught(work: Work, plan: Plan) -> TaughtDefinitions:
    """The definitions that a stage taught, and its semantic labeller."""
    settings = plan.settings.get("dictionary")
    if not isinstance(settings, Dictionary):
        return TaughtDefinitions()
    return TaughtDefinitions(read_dictionary(work.folder / "dictionary.jsonl"), settings.labeller)


def measure_best(work: Work) -> None:
    """What the kept model keeps of what the base model knew; nothing to tell where the base model is kept."""
    folder, request = work.folder, work.request

    def do() -> str:
        choice = choice_made(work)
        retention: dict[str, Retained] = {}
        if choice.kept != 0:
            base = open_sparse(request.model, request.reading)
            model = SparseEncoder.load(folder / "model", request.device)
            made = [
                encoded.with_scales(each, each.token_scales)
                for each, encoded in zip((base, model), work.general, strict=False)
            ]
            questions = SOME if words_alone(choice.tried) else None
            retention = measure_retention(base, model, work.documents, made, questions)
        write_json(folder / RETENTION_FILE, retention)
        return (
            at_most(retained_in(retention)[0])
            if retention
            else "the base model is kept, and so is all that it knew"
        )

    work.step("retention", {"model": work.made("model")}, [RETENTION_FILE], do)


def evidence_for_best(work: Work) -> OnJudged:
    """What the kept model gains on judged queries of the corpus, or else on those set aside."""
    base = open_sparse(work.request.model, work.request.reading)
    model = open_sparse(work.folder / "model", work.request.reading)
    return judged_evidence(base, model, JudgedDocuments.of(work.corpus, work.folder))


def choice_made(work: Work) -> ChoiceMade:
    """What the step before has chosen. Raises InputError for a file that somebody damaged."""
    return read_record(work.folder / CHOICE_FILE, ChoiceMade, MAKE_AGAIN)


def retention_made(work: Work) -> Retention:
    """What `measure_best` found. Raises InputError for a file that somebody damaged."""
    return read_record(work.folder / RETENTION_FILE, Retention, MAKE_AGAIN)


def _record_of(work: Work, outcomes: Sequence[Outcome], choice: Chosen) -> StageRecord:
    """What the commands that take a model folder look for in it, and what its card tells."""
    request, best = work.request, choice["tried"][choice["kept"]]
    corpus = work.sources["corpus"]
    assert corpus is not None, "every adaptation has one"
    rows = [choice["tried"][0], best] if choice["kept"] else [best]
    note = f"On {choice['queries']:,} synthetic queries that were set aside; judge by queries of your own."
    questions = [GeneralRow(**row) for row in choice["general"]]
    general = [row._asdict() for row in questions if row.by != WORD]
    return {
        "stage": "adapt",
        "model": stamp(of_model(absolute(request.model))),
        "files": {"corpus": stamp(corpus)},
        "settings": request.settings.model_dump(mode="json"),
        "stages": [in_short(outcome.record) for outcome in outcomes] if choice["kept"] else [],
        "command": request.command(),
        "measures": {"rows": rows, "note": note},
        "general": {"rows": general, "note": f"Lost: {at_most(questions[0].evidence())}."}
        if questions
        else None,
    }


def _list_what_to_encode(work: Work, plan: Plan) -> None:
    """The ids of documents that hold a new term: with old rows untouched, the others' vectors stay good.

    Where terms stand beside their pieces, of those that activate one.
    """
    if "extend" not in plan.stages:
        return
    encoder, before = SparseEncoder.load(work.folder / "1-extend"), SparseEncoder.load(plan.model)
    new = {token.token_id for token in encoder.new_tokens if token.token_id >= before.vocabulary_size}
    documents = work.corpus.read()
    if encoder.entries is None:
        ids = ids_saying(encoder, documents, new)
    else:
        kept = SparseEncoder.load(work.folder / "model")
        ids = touched_by(
            [(kept, [token.token_id for token in kept.new_tokens if token.token_id in new])], documents
        )
    write_ids(work.folder, ids)
    work.with_new_terms = len(ids)


# -- the verdict ----------------------------------------------------------------------------------


def tabulate(report: Report) -> Table:
    """Every model that was tried on the queries set aside, the base model first, the kept one marked."""
    choice = report["adapt"]["choice"]
    rows: Sequence[Row] = [
        {**row, "kept": "*" if place == choice["kept"] else ""} for place, row in enumerate(choice["tried"])
    ]
    return Table("", COLUMNS, rows, " ".join(_note(choice)))


def _note(choice: Chosen) -> Iterator[str]:
    """What the table measures, and what the names of its models mean."""
    yield f"Measured on {choice['queries']:,} synthetic queries that were set aside. nDCG@10: how high a model ranks"
    found = (
        "the document that a query was made from"
        if words_alone(choice["tried"])
        else "the ten documents that the teacher scores best"
    )
    yield f"{found}. from, to: the 95 % interval of the difference to the"
    yield "base model. general: nDCG@10 of general questions, asked of the models that the choice hangs on. non-zeros:"
    yield "entries of a document's vector and of a query's. *: the model that is kept."
    if any(row["name"] == EXACT for row in choice["tried"]):
        yield "exact words: the base model's weights by the root of their idf, and the words of a text as BM25 counts"
        yield "them, with nothing learnt; all models but the base have them."
    ways = {str(row["weighed"]) for row in choice["tried"]}
    if any(row["back"] for row in choice["tried"]):
        yield "at 50%: half of what the last stage changed is kept."
    if "idf" in ways:
        yield "with idf: rare tokens count for more."
    if any(way.startswith("token scales") for way in ways):
        yield "with token scales: each token counts as much as was learnt; the smaller the power, the less they differ."


def verdict(report: Report) -> list[str]:
    """The ruling, then what else is to be said."""
    ruling = ruling_of(report)
    return [*(map(str, ruling.lines) if ruling is not None else ()), *more_to_say(report)]


def more_to_say(report: Report) -> list[str]:
    """Beside the ruling: terms, time and memory."""
    training = report["adapt"]
    choice = training["choice"]
    best = choice["tried"][choice["kept"]]
    added = (
        f"{training['terms']:,} terms added"
        if training["terms"]
        else "no terms added: the vocabulary stays as it is"
    )
    if training["terms"] and not has_words(best["name"]):
        added = f"{training['terms']:,} terms tried, none added: the base model's own vocabulary ranks better"
    return [
        added,
        f"{duration(training['seconds'])}, {training['peak_memory'] / 2**30:.1f} GiB of memory at the most",
    ]
