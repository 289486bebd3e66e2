"""What an adaptation learns from, made from a bare corpus: documents, terms, definitions, queries, candidates."""

import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerFast

from sparse_adapt.collection.examples import Pair, read_candidates, write_candidates, write_pairs
from sparse_adapt.collection.glossary import Definition, read_dictionary
from sparse_adapt.collection.readers import Document, read_documents, read_queries
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.progress import Watch, unwatched
from sparse_adapt.selection.models import GRADES
from sparse_adapt.stages.extend import told_of_known
from sparse_adapt.stages.stage import UNUSUAL
from sparse_adapt.synthetic.queries import (
    GIVEN,
    HELD,
    TRAIN,
    Generate,
    QuerySettings,
    SyntheticQuery,
    make_queries,
    read_synthetic_queries,
    write_collection,
)
from sparse_adapt.teachers.candidates import gather
from sparse_adapt.teachers.settings import CandidateSettings
from sparse_adapt.teachers.teacher import Teacher
from sparse_adapt.terms.alternatives import LEAST_DOCUMENTS, from_glossary, is_token
from sparse_adapt.terms.definitions import mine_definitions, write_mined
from sparse_adapt.terms.mining import Term, mine_terms, paying, write_terms

FEWEST_HELD = 5


def prepare_terms(corpus: str, model: str, share: float, path: Path) -> tuple[list[Term], str]:
    """Write `terms.json`: mined words that pay for their token. The sentence says by what criterion.

    Nothing is written where there are none.
    """
    tokenizer = tokenizer_to_teach(model)
    chosen, said = paying(mine_terms(read_documents(corpus), tokenizer), share)
    if chosen:
        write_terms(path, chosen)
    return chosen, said


def tokenizer_to_teach(model: str) -> PreTrainedTokenizerFast:
    """The tokenizer of a model. Raises ConfigError for a model that no stage can teach."""
    encoder = SparseEncoder.load(model)
    if encoder.query_encoder is not None:
        raise ConfigError(
            f"{model}: {UNUSUAL['encoders']}, which can't be adapted; choose a model of one encoder"
        )
    return encoder.tokenizer


def prepare_defined_terms(corpus: str, model: str, glossary: str, path: Path) -> tuple[list[Term], str]:
    """Write `terms.json`: the words that a glossary defines and the corpus says. The rest keep their pieces.

    Raises InputError where there is none, for then the glossary would be of no use.
    """
    tokenizer = tokenizer_to_teach(model)
    names = {definition.term.casefold(): definition.term for definition in read_dictionary(glossary)}
    mined = mine_terms(read_documents(corpus), tokenizer)
    chosen = [term for term in mined if term.text.casefold() in names]
    chosen += from_glossary(names.values(), read_documents(corpus), tokenizer, chosen)
    if not chosen:
        raise InputError(
            glossary,
            f"none of its {len(names):,} terms is a word that {corpus} says in {LEAST_DOCUMENTS} documents and {model} "
            "has no token for; name a glossary of this corpus, or none",
        )
    write_terms(path, chosen)
    said = f"{len(chosen):,} words that the glossary defines; words that nothing defines keep their pieces"
    known = [name for name in names.values() if is_token(tokenizer, name)]
    unsaid = len(names) - len(chosen) - len(known)
    said += told_of_known(known) + (f"; terms that are no word of the corpus: {unsaid:,}" if unsaid else "")
    return chosen, said


def prepare_dictionary(
    documents: Sequence[Document], terms: Sequence[Term], glossary: str | None, path: Path
) -> str:
    """Write `dictionary.jsonl`: what the corpus or a glossary says of the terms. Nothing where there is nothing."""
    mined = mine_definitions(documents, [term.text for term in terms])
    given: list[Definition] = []
    if glossary is not None:
        known = {term.text.casefold() for term in terms}
        entries = read_dictionary(glossary)
        given = [entry for entry in entries if entry.term.casefold() in known]
    if not mined and not given:
        return "no definition of any term found"
    write_mined(path, mined, given)
    return f"{len(mined):,} definitions found in the corpus, {len(given):,} from the glossary"


def prepare_collection(
    corpus: str,
    documents: Sequence[Document],
    settings: QuerySettings,
    given: str | None,
    generate: Generate | None,
    folder: Path,
) -> str:
    """Write the collection of queries without users; queries that users asked come on top, to learn from."""
    collected = make_queries(documents, settings, generate, place=corpus)
    if given is not None:
        collected.queries.extend(
            SyntheticQuery(f"{GIVEN}-{query.query_id}", query.text, GIVEN, "")
            for query in read_queries(given)
        )
    write_collection(folder, collected)
    counts = {split: len(collected.of(split)) for split in (TRAIN, HELD)}
    return f"{counts[TRAIN]:,} queries to learn from, {counts[HELD]:,} set aside"


def prepare_candidates(
    collection: Path,
    teacher: Teacher,
    settings: CandidateSettings,
    split: str,
    path: Path,
    watch: Watch = unwatched,
) -> str:
    """Write the candidates of one split. Raises InputError where too few queries are left to choose with.

    Models are chosen by who agrees with rankers other than the base model, so those set aside have the
    `GRADES` best documents of these, and as many of the student's.
    """
    if split == HELD:
        teacher = teacher.others
        most = {"count": 2 * GRADES + 1, "depth": GRADES, "from_teacher": GRADES, "from_student": GRADES}
        settings = settings.model_copy(update=most)
    documents = list(read_documents(collection))
    queries = [query for query in read_synthetic_queries(collection) if query.split == split]
    gathered = gather(queries, documents, teacher, settings, watch(f"{split} queries", len(queries)))
    wanted = FEWEST_HELD if split == HELD else 1
    if len(gathered.candidates) < wanted:
        raise InputError(
            collection / "queries.jsonl",
            f"the teacher finds the document that a query was made from for {len(gathered.candidates):,} of "
            f"{len(queries):,} queries ({split}), and {wanted} are needed; give a larger corpus, --queries or another "
            "--teacher",
        )
    write_candidates(path, gathered.candidates)
    kept = f"{len(gathered.candidates):,} of {len(queries):,} queries"
    return f"{kept}, those whose own document the teacher finds (it is {teacher.name})"


def prepare_pairs(candidates: Path, collection: Path, path: Path) -> str:
    """Write `pairs.jsonl`: each query with its source; without one, with what the teacher scores best."""
    sources = {query.query_id: query.document_id for query in read_synthetic_queries(collection)}
    pairs = []
    for entry in read_candidates(candidates):
        best = entry.document_ids[int(np.argmax(entry.teacher_scores))]
        pairs.append(Pair(entry.query, sources.get(entry.query_id) or best, entry.query_id))
    return f"{write_pairs(path, pairs):,} queries, each with its document"


def peak_memory() -> int:
    """The most bytes that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
