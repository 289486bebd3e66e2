"""A model adapted from a bare corpus: every step's result lies in one folder, to be read, edited and resumed.

    RUN/request.json                the arguments and settings
    RUN/entries.jsonl               what a glossary says, and what becomes of each entry
    RUN/words/                      the model with exact words and definitions and nothing taught, usable at once
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
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.examples import read_candidates, write_candidates
from sparse_adapt.collection.folder import CorpusFolder
from sparse_adapt.collection.readers import Document, read_documents
from sparse_adapt.collection.streams import evenly, sample
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.folders import check_free, discard, output_folder, tidy
from sparse_adapt.files.marker import marker_of, vouching
from sparse_adapt.files.place import Place, absolute
from sparse_adapt.files.steps import STEPS_FOLDER, stamps_of
from sparse_adapt.model.dense import SMALL
from sparse_adapt.model.kinds import open_sparse
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.windows import PartRead
from sparse_adapt.pipeline.choice import (
    choice_made,
    choose_model,
    evidence_for_best,
    measure_best,
    retention_made,
)
from sparse_adapt.pipeline.defined import ENGLISH, defined_words
from sparse_adapt.pipeline.estimate import of_adaptation
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.pipeline.preparing import (
    model_to_adapt,
    peak_memory,
    prepare_candidates,
    prepare_collection,
    prepare_defined_terms,
    prepare_dictionary,
    prepare_entries,
    prepare_pairs,
    prepare_terms,
)
from sparse_adapt.pipeline.request import REQUEST_FILE, WITH_WORDS, Request
from sparse_adapt.pipeline.run import Finished, is_whole, read_finished, run_stages, write_report
from sparse_adapt.pipeline.settings import WORDS
from sparse_adapt.pipeline.words import WordOptions, add_exact_words
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
TERMS_FILE, DICTIONARY_FILE = "terms.json", "dictionary.jsonl"
CANDIDATES_FILE, HELD_FILE, PAIRS_FILE = "candidates.jsonl", "held.jsonl", "pairs.jsonl"


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
    if not place.resume:
        check_free(place)  # before the trial
    if until in OF_WORDS and not request.extends and request.glossary is None:
        raise ConfigError(
            f"--until {until}: no word gets a token without a glossary; name --glossary, or --stages "
            f"{','.join(WITH_WORDS)}"
        )
    model = model_to_adapt(request)  # a model that can't be taught is refused at once
    sources, corpus = request.sources(), CorpusFolder(request.corpus)
    stamps_of(sources)  # what is hashed now can't be said to be made from what is written later
    documents = sample(corpus.read(), request.settings.documents, request.settings.seed)
    different_documents(documents, request.corpus)
    watcher.tell("plan", plan_sentence(request))
    note_told()  # general passages that are too long, which are read as well, don't matter to a user
    if reading := reading_sentence(request, model, documents):
        watcher.tell("reading", reading)
    steps = STEPS if until is None else STEPS[: STEPS.index(until) + 1]
    watcher.expect(of_adaptation(request, model, documents, corpus.count, steps, _done_before(place)))
    reads = [source.place for source in sources.values() if source is not None]
    with output_folder(place.reading(reads)) as folder:
        same_request(folder / REQUEST_FILE, request)
        own_cache = cache or folder / "cache"
        work = Work(request, model.tokenizer, folder, watcher, corpus, documents, own_cache, folder, sources)
        work.opened = None if request.all_stages else model  # whose attention a trial of learning changes
        for name in STEPS:
            for step in TABLE:
                if (step.part_of or step.name) == name and step.wanted(request):
                    reads_now = {key: work.read(key, file) for key, file in step.reads.items()}
                    work.step(step.name, reads_now, [step.makes], partial(step.do, work))
            work.opened = None  # which is read no more
            if name == until and name != "stages":
                raise Stopped(folder, name)
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


def reading_sentence(request: Request, model: SparseEncoder, documents: Sequence[Document]) -> str:
    """How much of the documents the model reads, and what covers the rest; nothing where it reads all."""
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
    """The steps and the stages that an unfinished run has done, as a forecast names them."""
    folder = place.folder.with_name(f"{place.folder.name}.partial")
    if not place.resume or not folder.is_dir():
        return set()
    parts = (folder, folder / RANKING)
    stages = (path.parent.name for part in parts for path in part.glob(f"[1-9]*-*/{RECORD_FILE}"))
    made = {f"stages/{name.partition('-')[2]}" for name in stages if not name.endswith(".partial")}
    return made | {path.stem for path in (folder / STEPS_FOLDER).glob("*.json")}


# -- the steps ------------------------------------------------------------------------------------


def _words(work: Work) -> str:
    """The model with exact words, which is usable before anything is taught."""
    request, folder = work.request, work.folder / WORDS
    shutil.rmtree(folder, ignore_errors=True)
    model = work.opened or model_to_adapt(request)
    progress = work.watcher.count("documents", work.corpus.count)
    words, without = model.words or add_exact_words(model, work.corpus.read, WordOptions(), progress), ""
    if found := _read_uses(work):
        if words.settings.language in ENGLISH:
            defined = defined_words(work.corpus.read, found, work.watcher.count)
            words = model.words = words.with_definitions(defined or words.defined)
        else:
            without = f"; none by its definition, which {SMALL} reads in English alone"
    making = folder.with_name(f"{WORDS}.making")
    shutil.rmtree(making, ignore_errors=True)
    model.save(making)
    with vouching(making):
        write_card(making, making_of(request.model))
    making.rename(folder)
    return f"{words.describe()}{without}; the model in {WORDS}/ of the run can be used at once"


def _entries(work: Work) -> str:
    """What becomes of each entry of a glossary."""
    assert work.request.glossary is not None
    path = work.folder / ENTRIES_FILE
    return prepare_entries(work.corpus, work.tokenizer, work.request.glossary, path)[1]


def _terms(work: Work) -> str:
    """The words that get a token: those of a glossary, or of the corpus."""
    path = work.folder / TERMS_FILE
    path.unlink(missing_ok=True)
    if work.request.glossary is not None:
        return prepare_defined_terms(work.corpus, work.tokenizer, _read_uses(work), path)
    return prepare_terms(work.corpus, work.tokenizer, work.request.settings.share, path)[1]


def _dictionary(work: Work) -> str:
    path = work.folder / DICTIONARY_FILE
    path.unlink(missing_ok=True)
    return prepare_dictionary(work.documents, _read_terms(work), _read_uses(work), path)


def _queries(work: Work) -> str:
    request, folder = work.request, work.folder / "collection"
    write: Writer | None = None
    if request.llm is not None:
        tell = partial(work.watcher.tell, "llm")
        write = registry().find("writers", "queries")(request.llm, tell, work.watcher.count, work.run)
    shutil.rmtree(folder, ignore_errors=True)
    cut = request.settings.candidates.source == "keep" or request.learns_from(PAIRS)
    settings = request.settings.queries.model_copy(update={"cut": cut})
    inputs = (request.queries, write)
    return prepare_collection(request.corpus, work.documents, settings, *inputs, folder, _read_uses(work))


def _given(work: Work) -> str:
    """Take candidates that were named, once it's sure that they can be read."""
    name = work.request.candidates
    assert name is not None
    ids = {document.document_id for document in work.documents}
    entries = list(read_candidates(name, document_ids=ids))
    write_candidates(work.folder / CANDIDATES_FILE, entries)
    return f"{len(entries):,} queries of {name}"


def _gather(split: str, work: Work) -> str:
    """The documents of each query of a split with a teacher's scores."""
    request, collection = work.request, work.folder / "collection"
    if work.teacher is None:
        documents = list(read_documents(collection))
        student = open_sparse(request.model, request.reading)
        progress_for = work.watcher.count
        work.teacher = make_teacher(
            student, documents, request.teacher, cache=work.cache, progress_for=progress_for
        )
    settings = request.settings.candidates
    path = work.folder / (HELD_FILE if split == HELD else CANDIDATES_FILE)
    return prepare_candidates(collection, work.teacher, settings, split, path, work.watcher.count)


def _pairs(work: Work) -> str:
    """Pairs for the stages that learn from them."""
    candidates, pairs = (work.folder / name for name in (CANDIDATES_FILE, PAIRS_FILE))
    return prepare_pairs(candidates, work.folder / "collection", pairs)


class StepRow(NamedTuple):
    """A step of an adaptation before its stages: what it reads and makes, what does it, and for which requests.

    reads: by a word for each what the request names under that word, as an empty string, or a file of this run;
    makes: a file or a folder of this run; part_of: the step after which `--until` stops, where it isn't this one.
    """

    name: str
    reads: Mapping[str, str]
    makes: str
    do: Callable[[Work], str]
    wanted: Callable[[Request], object]
    part_of: str = ""


def _scores(asked: Request) -> str:
    """Whose candidates the stages learn from: `given` ones or `own` ones; empty where they learn from none."""
    read = asked.learns_from(CANDIDATES, PAIRS)
    return "" if not read else "own" if asked.candidates is None else "given"


BASE, ENTRIES, GLOSSARY = {"corpus": "", "model": ""}, {"entries": ENTRIES_FILE}, {"glossary": ""}
OF_TERMS = {"corpus": "", **ENTRIES, "terms": TERMS_FILE}
ALL_QUERIES = {"corpus": "", "queries": "", "llm": "", **ENTRIES}
MADE = {"corpus": "collection/corpus.jsonl", "queries": "collection/queries.jsonl"}
SCORED = MADE | {"teacher": "", "model": ""}
OF_PAIRS = {"candidates": CANDIDATES_FILE, "queries": MADE["queries"]}
TABLE = (
    StepRow("entries", BASE | GLOSSARY, ENTRIES_FILE, _entries, lambda asked: asked.glossary, "words"),
    StepRow("words", BASE | ENTRIES, WORDS, _words, lambda asked: asked.adds_words),
    StepRow("terms", BASE | ENTRIES, TERMS_FILE, _terms, lambda asked: asked.extends and asked.glossary),
    StepRow("terms", BASE | GLOSSARY, TERMS_FILE, _terms, lambda asked: asked.extends and not asked.glossary),
    StepRow("dictionary", OF_TERMS, DICTIONARY_FILE, _dictionary, lambda asked: asked.extends),
    StepRow("queries", ALL_QUERIES, "collection", _queries, lambda asked: True),
    StepRow(
        "candidates", {"candidates": ""}, CANDIDATES_FILE, _given, lambda asked: _scores(asked) == "given"
    ),
    StepRow(
        "candidates", SCORED, CANDIDATES_FILE, partial(_gather, TRAIN), lambda asked: _scores(asked) == "own"
    ),
    StepRow("held", SCORED, HELD_FILE, partial(_gather, HELD), lambda asked: asked.all_stages, "candidates"),
    StepRow("pairs", OF_PAIRS, PAIRS_FILE, _pairs, lambda asked: asked.learns_from(PAIRS), "stages"),
)


def _read_terms(work: Work) -> list[Term]:
    path = work.folder / TERMS_FILE
    return read_terms(path) if path.is_file() else []


def _read_uses(work: Work) -> list[Use]:
    """What becomes of a glossary's entries; none without a glossary."""
    path = work.folder / ENTRIES_FILE
    return read_uses(path) if path.is_file() else []


def _ranking(work: Work) -> list[Outcome]:
    """Ranking, where words are taught as well: its stage and its choice. Nothing comes of it where the base is kept."""
    ranking = work.ranking() if (work.folder / TERMS_FILE).is_file() else None
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
    terms, definitions = folder / TERMS_FILE, folder / DICTIONARY_FILE
    if request.ranking is not None and not terms.is_file():  # nothing but ranking is left to learn
        request = request.ranking
    stages = [name for name in request.stages if terms.is_file() or row_of(name).without_terms]
    if not definitions.is_file():
        stages = [name for name in stages if name != "dictionary"]
    if not stages and request.settings.frozen:
        raise ConfigError("frozen = true, and no new term: there is nothing to learn; choose another corpus")
    files = {"terms": terms, "dictionary": definitions}
    files |= {"candidates": work.run / CANDIDATES_FILE, "pairs": work.run / PAIRS_FILE}
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
