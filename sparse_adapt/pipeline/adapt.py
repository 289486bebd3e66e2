"""A model adapted from a bare corpus: every step's result lies in one folder, to be read, edited and resumed.

    RUN/request.json                the arguments and settings
    RUN/words/                      the model with exact words and nothing taught, usable at once
    RUN/entries.jsonl               what a glossary says, and what becomes of each entry
    RUN/terms.json                  words that pay for a token, with the evidence
    RUN/dictionary.jsonl            what the corpus or a glossary says of them
    RUN/collection/                 documents, queries without users, those set aside
    RUN/candidates.jsonl            queries and documents with a teacher's scores, to learn from
    RUN/held.jsonl                  and to choose with
    RUN/pairs.jsonl                 queries and their documents, where a stage learns from pairs
    RUN/ranking/                    beside words of a glossary: the model that learns to rank, with its stage and its
                                    choice.json; what it changes is added
    RUN/1-extend/, 2-preserve/...  a model a stage, as any run has them
    RUN/choice.json                 what each model reaches on the queries set aside
    RUN/model/                      the one that is kept
    RUN/retention.json              what it keeps of what the base model knew
    RUN/report.json                 what was done; its presence says that the run is whole

While it works, the folder is `RUN.partial`. `steps/NAME.json` says what a step was made from: a step whose
sources are as they were is done, one whose sources were edited is done again, and so is what comes after.
"""

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.collection.readers import Document, read_documents
from sparse_adapt.collection.streams import evenly, sample
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.folders import discard, output_folder, tidy
from sparse_adapt.files.marker import marker_of, vouching
from sparse_adapt.files.place import Place, absolute
from sparse_adapt.files.steps import STEPS_FOLDER
from sparse_adapt.model.kinds import open_sparse
from sparse_adapt.model.windows import PartRead
from sparse_adapt.pipeline.choice import (
    choice_made,
    choose_model,
    evidence_for_best,
    measure_best,
    retention_made,
)
from sparse_adapt.pipeline.estimate import expected
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.pipeline.preparing import (
    peak_memory,
    prepare_candidates,
    prepare_collection,
    prepare_defined_terms,
    prepare_dictionary,
    prepare_entries,
    prepare_pairs,
    prepare_terms,
    tokenizer_to_teach,
)
from sparse_adapt.pipeline.request import REQUEST_FILE, WITH_WORDS, Request
from sparse_adapt.pipeline.run import Finished, is_whole, read_finished, run_stages, write_report
from sparse_adapt.pipeline.settings import WORDS
from sparse_adapt.pipeline.words import WordOptions, exact_words
from sparse_adapt.pipeline.work import RANKING, AdaptListener, Work, same_request
from sparse_adapt.registry import registry
from sparse_adapt.report.messages import note_told
from sparse_adapt.settings import Settings
from sparse_adapt.stages.card import making_of, write_card
from sparse_adapt.stages.inputs import CANDIDATES, PAIRS
from sparse_adapt.stages.record import RECORD_FILE
from sparse_adapt.stages.runner import Outcome
from sparse_adapt.stages.table import find_stage, row_of
from sparse_adapt.synthetic.queries import HELD, TRAIN, Writer, different_documents
from sparse_adapt.teachers.teacher import make_teacher
from sparse_adapt.terms.mining import Term, read_terms
from sparse_adapt.terms.uses import ENTRIES_FILE, Use, read_uses

STEPS = ("words", "terms", "dictionary", "queries", "candidates", "stages", "choice")
LOOKED_AT = 1_000  # documents whose tokens are counted
OF_WORDS = ("terms", "dictionary")  # steps that are carried out where words get a token


def adapt(
    request: Request,
    place: Place,
    watcher: AdaptListener,
    until: str | None = None,
    cache: Path | None = None,
) -> Finished:
    """Adapt a model to a corpus. With `until`, raise Stopped after that step.

    `cache`: a folder where a dense teacher's vectors stay for further adaptations to the same documents.
    Raises what reading the corpus or a file raises, and InputError for a corpus that gives too little.
    """
    if is_whole(place):
        tidy(place.folder)
        return _whole(request, place.folder)
    request.check()
    if until in OF_WORDS and not request.extends and request.glossary is None:
        raise ConfigError(
            f"--until {until}: no word gets a token without a glossary; name --glossary, or --stages "
            f"{','.join(WITH_WORDS)}"
        )
    tokenizer = tokenizer_to_teach(request.model)  # a model that can't be taught is refused at once
    total = sum(1 for _ in read_documents(request.corpus))
    documents = sample(read_documents(request.corpus), request.settings.documents, request.settings.seed)
    different_documents(documents, request.corpus)
    watcher.tell("plan", plan_sentence(request))
    note_told()  # general passages that are too long, which are read as well, don't matter to a user
    if reading := reading_sentence(request, documents):
        watcher.tell("reading", reading)
    watcher.expect(expected(request, tokenizer, documents, total, _done_before(place), until))
    sources = request.sources()
    reads = [source.place for source in sources.values() if source is not None]
    with output_folder(place.reading(reads)) as folder:
        same_request(folder / REQUEST_FILE, request)
        own_cache = cache or folder / "cache"
        work = Work(request, tokenizer, folder, watcher, documents, total, own_cache, folder, sources)
        for name, do in zip(STEPS, (_words, _terms, _dictionary, _queries, _candidates), strict=False):
            do(work)
            if name == until:
                raise Stopped(folder, name)
        _pairs(work)
        ranking = _ranking(work)
        plan = _plan(work)
        outcomes = [*ranking, *_stages(work, plan)]
        if until == "stages":
            raise Stopped(folder, until)
        choose_model(work, plan, outcomes)
        measure_best(work)
        _report(work, plan, outcomes)
    return read_finished(place.folder)


def plan_sentence(request: Request) -> str:
    """What will be done, in words, before anything is."""
    stages = ", ".join([*([WORDS] if request.adds_words else []), *request.all_stages])
    if not request.all_stages:
        return f"{stages}: exact words are put into the vectors; nothing is trained"
    if not request.extends and request.glossary is not None:
        return f"{stages}: the model learns to rank, by queries of the glossary as well; no word gets a token"
    if not request.extends:
        return f"{stages}: the model learns to rank; no word gets a token, for no glossary is given"
    if request.glossary is not None:
        words = (
            "words of the glossary that the model has no token for get one and are taught by their definitions; all "
            "its entries make queries"
        )
        return (
            f"{stages}: {words}"
            if request.ranking is None
            else f"{stages}: {words}; what the model learns of ranking is added"
        )
    return f"{stages}: words of the corpus get a token"


def reading_sentence(request: Request, documents: Sequence[Document]) -> str:
    """How much of the documents the model reads, and what covers the rest; nothing where it reads all."""
    model = open_sparse(request.model, request.reading)
    if request.settings.longest is not None:
        model.read_up_to(request.settings.longest)
    some = [document.full_text for document in evenly(documents, LOOKED_AT)]
    part = PartRead.of(some, model.tokenizer, model.max_tokens)
    if model.windows is not None or not part.longer:
        return ""
    rest = "exact words cover every document whole" if request.adds_words else "--windows reads the rest"
    return f"the model reads {part}; {rest}"


class Stopped(Exception):
    """The run was to end after a step; what is done lies in `folder`."""

    def __init__(self, folder: Path, step: str) -> None:
        self.folder, self.step = folder, step
        super().__init__(f"stopped after {step}")


def _done_before(place: Place) -> set[str]:
    """The steps and the stages that an unfinished run has done, by their names."""
    folder = place.folder.with_name(f"{place.folder.name}.partial")
    if not place.resume or not folder.is_dir():
        return set()
    parts = (folder, folder / RANKING)
    stages = (path.parent.name for part in parts for path in part.glob(f"[1-9]*-*/{RECORD_FILE}"))
    made = {name.partition("-")[2] for name in stages if not name.endswith(".partial")}
    return made | {path.stem for path in (folder / STEPS_FOLDER).glob("*.json")}


# -- the steps ------------------------------------------------------------------------------------


def _words(work: Work) -> None:
    """The model with exact words, which is usable before anything is taught."""
    request, folder = work.request, work.folder / WORDS
    if not request.adds_words:
        return

    def do() -> str:
        shutil.rmtree(folder, ignore_errors=True)
        model = open_sparse(request.model, request.reading)
        if request.settings.longest is not None:
            model.read_up_to(request.settings.longest)
        read = partial(read_documents, request.corpus)
        progress = work.watcher.count("documents", work.total)
        words = model.words = model.words or exact_words(model, read, WordOptions(), progress)
        making = folder.with_name(f"{WORDS}.making")
        shutil.rmtree(making, ignore_errors=True)
        model.save(making)
        with vouching(making):
            write_card(making, making_of(request.model))
        making.rename(folder)
        return f"{words.describe()}; the model in {WORDS}/ of the run can be used at once"

    work.step(WORDS, work.named("corpus", "model"), [WORDS], do)


def _terms(work: Work) -> None:
    """What a glossary's entries become, and the words that get a token."""
    request, path = work.request, work.folder / "terms.json"
    sources = work.named("corpus", "model", "glossary")
    if request.glossary is not None:
        entries = work.folder / ENTRIES_FILE
        named = request.corpus, work.tokenizer, request.glossary
        work.step("entries", sources, [ENTRIES_FILE], lambda: prepare_entries(*named, entries)[1])
        sources = work.named("corpus", "model") | {"entries": work.made(ENTRIES_FILE)}
    if not request.extends:
        return

    def do() -> str:
        path.unlink(missing_ok=True)
        if request.glossary is not None:
            return prepare_defined_terms(request.corpus, work.tokenizer, _read_uses(work), path)
        return prepare_terms(request.corpus, work.tokenizer, request.settings.share, path)[1]

    work.step("terms", sources, [path.name], do)


def _read_terms(work: Work) -> list[Term]:
    path = work.folder / "terms.json"
    return read_terms(path) if path.is_file() else []


def _read_uses(work: Work) -> list[Use]:
    """What becomes of a glossary's entries; none without a glossary."""
    path = work.folder / ENTRIES_FILE
    return read_uses(path) if path.is_file() else []


def _dictionary(work: Work) -> None:
    request, path = work.request, work.folder / "dictionary.jsonl"
    if not request.extends:
        return
    sources = {**work.named("corpus"), "entries": work.made(ENTRIES_FILE), "terms": work.made("terms.json")}

    def do() -> str:
        path.unlink(missing_ok=True)
        return prepare_dictionary(work.documents, _read_terms(work), _read_uses(work), path)

    work.step("dictionary", sources, [path.name], do)


def _queries(work: Work) -> None:
    request = work.request
    sources = work.named("corpus", "queries", "llm") | {"entries": work.made(ENTRIES_FILE)}

    def do() -> str:
        write = None if request.llm is None else _query_writer(work, request.llm)
        shutil.rmtree(work.folder / "collection", ignore_errors=True)
        cut = request.settings.candidates.source == "keep" or _learns_from_pairs(request)
        settings = request.settings.queries.model_copy(update={"cut": cut})
        folder, inputs = work.folder / "collection", (request.queries, write)
        return prepare_collection(request.corpus, work.documents, settings, *inputs, folder, _read_uses(work))

    work.step("queries", sources, ["collection"], do)


def _query_writer(work: Work, llm: str) -> Writer:
    tell = partial(work.watcher.tell, "llm")
    writer: Writer = registry().find("writers", "queries")(llm, tell, work.watcher.count, work.run)
    return writer


def _candidates(work: Work) -> None:
    request = work.request
    shared = {
        "corpus": work.made("collection/corpus.jsonl"),
        "queries": work.made("collection/queries.jsonl"),
        **work.named("teacher", "model"),
    }
    for name, split, file in (("candidates", TRAIN, "candidates.jsonl"), ("held", HELD, "held.jsonl")):
        if not request.all_stages or (split == TRAIN and not _reads_candidates(request)):
            continue
        if split == TRAIN and request.candidates is not None:
            source = partial(_given, work, request.candidates)
            work.step(name, work.named("candidates"), [file], source)
            continue
        work.step(name, shared, [file], partial(_gather, work, split, file))


def _pairs(work: Work) -> None:
    """Pairs for the stages that learn from them, where there is such a stage."""
    if not _learns_from_pairs(work.request):
        return
    candidates, pairs = work.folder / "candidates.jsonl", work.folder / "pairs.jsonl"
    collection = work.folder / "collection"
    sources = {
        "candidates": work.made("candidates.jsonl"),
        "queries": work.made("collection/queries.jsonl"),
    }
    work.step("pairs", sources, [pairs.name], lambda: prepare_pairs(candidates, collection, pairs))


def _learns_from_pairs(request: Request) -> bool:
    return any(PAIRS in find_stage(name).reads for name in request.all_stages)


def _reads_candidates(request: Request) -> bool:
    return any({CANDIDATES, PAIRS} & {*find_stage(name).reads} for name in request.all_stages)


def _given(work: Work, name: str) -> str:
    """Take candidates that were named, once it's sure that they can be read."""
    ids = {document.document_id for document in work.documents}
    entries = list(read_candidates(name, document_ids=ids))
    from sparse_adapt.collection.examples import write_candidates

    write_candidates(work.folder / "candidates.jsonl", entries)
    return f"{len(entries):,} queries of {name}"


def _gather(work: Work, split: str, file: str) -> str:
    request, collection = work.request, work.folder / "collection"
    if work.teacher is None:
        documents = list(read_documents(collection))
        student = open_sparse(request.model, request.reading)
        work.teacher = make_teacher(
            student,
            documents,
            request.teacher,
            cache=work.cache,
            progress_for=work.watcher.count,
        )
    settings, path = request.settings.candidates, work.folder / file
    return prepare_candidates(collection, work.teacher, settings, split, path, work.watcher.count)


def _ranking(work: Work) -> list[Outcome]:
    """Ranking, where words are taught as well: its stage and its choice. Nothing comes of it where the base is kept."""
    ranking = work.ranking() if (work.folder / "terms.json").is_file() else None
    if ranking is None:
        return []
    ranking.folder.mkdir(exist_ok=True)
    plan = _plan(ranking)
    outcomes = _stages(ranking, plan)
    choose_model(ranking, plan, outcomes)
    work.records[RANKING] = ranking.records["choice"]
    if not choice_made(ranking).kept:
        return []
    work.ranked = ranking.folder / "model"
    return outcomes


def _plan(work: Work) -> Plan:
    """The stages that there is something to do for."""
    request, folder = work.request, work.folder
    terms, definitions = folder / "terms.json", folder / "dictionary.jsonl"
    if request.ranking is not None and not terms.is_file():  # nothing but ranking is left to learn
        request = request.ranking
    stages = [name for name in request.stages if terms.is_file() or row_of(name).without_terms]
    if not definitions.is_file():
        stages = [name for name in stages if name != "dictionary"]
    if not stages and request.settings.frozen:
        raise ConfigError("frozen = true, and no new term: there is nothing to learn; choose another corpus")
    files = {"terms": terms, "dictionary": definitions}
    files |= {"candidates": work.run / "candidates.jsonl", "pairs": work.run / "pairs.jsonl"}
    settings: dict[str, Settings] = {
        name: request.settings_of(name) if find_stage(name).trains else request.own_settings(name)
        for name in stages
        if find_stage(name).has_settings
    }
    return Plan(
        model=absolute(request.model),
        corpus=str(work.run / "collection"),
        stages=tuple(stages),
        preset="default",
        files={key: str(path) for key, path in files.items() if path.is_file()},
        settings=settings,
    )


def _stages(work: Work, plan: Plan) -> list[Outcome]:
    """Every stage that isn't done. What was made from something else before it was edited is made again."""
    names = {f"{number}-{stage}" for number, stage in enumerate(plan.stages, start=1)}
    for folder in work.folder.glob("[1-9]*-*"):
        if folder.name.removesuffix(".partial") not in names and marker_of(folder) is not None:
            discard(folder)
    return run_stages(plan, work.folder, work.watcher, again=True, home=work.run)


def _report(work: Work, plan: Plan, outcomes: Sequence[Outcome]) -> None:
    named = ("entries", *STEPS, "held", "pairs", RANKING, "retention")
    steps = {name: work.records[name] for name in named if name in work.records}
    seconds = sum(step.seconds for step in steps.values())
    seconds += sum(outcome.record["seconds"] for outcome in outcomes)
    more = {
        "final": "model",
        "corpus": absolute(work.request.corpus),
        "adapt": {
            "steps": {
                name: {"message": step.message, "seconds": step.seconds} for name, step in steps.items()
            },
            "choice": choice_made(work).model_dump(),
            "retention": retention_made(work).root,
            "terms": len(_read_terms(work)),
            "documents": len(work.documents),
            "documents_with_a_new_term": work.with_new_terms,
            "frozen": work.request.settings.frozen,
            "seconds": round(seconds, 1),
            "peak_memory": peak_memory(),
        },
        "evidence": evidence_for_best(work),
    }
    shutil.rmtree(work.folder / "cache", ignore_errors=True)
    write_report(work.folder, plan, outcomes, more)


def _whole(request: Request, folder: Path) -> Finished:
    finished = read_finished(folder)
    if "adapt" not in finished.report:
        raise ConfigError(f"{folder}: a run that isn't an adaptation; choose another -o")
    same_request(folder / REQUEST_FILE, request)
    return finished
