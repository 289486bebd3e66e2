"""What an adaptation learns from, made from a bare corpus: documents, terms, definitions, queries, candidates."""

import resource
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerFast

from sparse_adapt.collection.examples import Pair, read_candidates, write_candidates, write_pairs
from sparse_adapt.collection.folder import CorpusFolder
from sparse_adapt.collection.glossary import Definition, read_dictionary
from sparse_adapt.collection.readers import Document, read_documents, read_queries
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.model.kinds import open_sparse
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.request import Request
from sparse_adapt.report.progress import ProgressFor, no_progress_for
from sparse_adapt.selection.models import GRADES
from sparse_adapt.stages.stage import UNUSUAL
from sparse_adapt.synthetic.entry_queries import entry_queries
from sparse_adapt.synthetic.queries import (
    GIVEN,
    HELD,
    TRAIN,
    QuerySettings,
    SyntheticQuery,
    Writer,
    make_queries,
    read_synthetic_queries,
    write_collection,
)
from sparse_adapt.teachers.candidates import gather
from sparse_adapt.teachers.settings import CandidateSettings
from sparse_adapt.teachers.teacher import Teacher
from sparse_adapt.terms.alternatives import is_token
from sparse_adapt.terms.definitions import mine_definitions, write_mined
from sparse_adapt.terms.entries import EntryKeys, listed, read_entries
from sparse_adapt.terms.mining import Term, mine_terms, paying, write_terms
from sparse_adapt.terms.uses import Use, summary, uses, write_uses

FEWEST_HELD_OUT = 5
CORPUS_QUERIES = 3  # made of documents, for each that is made of a glossary: of more the model ranks worse


def prepare_terms(
    corpus: CorpusFolder, tokenizer: PreTrainedTokenizerFast, share: float, path: Path
) -> tuple[list[Term], str]:
    """Write `terms.json`: mined words that pay for their token. The sentence says by what criterion.

    Nothing is written where there are none.
    """
    chosen, summary = paying(mine_terms(corpus.read(), tokenizer), share)
    if chosen:
        write_terms(path, chosen)
    return chosen, summary


def model_to_adapt(request: Request) -> SparseEncoder:
    """The base model, as documents are read. Raises ConfigError for a model that no stage can teach."""
    encoder = open_sparse(request.model, request.reading)
    if encoder.query_encoder is not None:
        raise ConfigError(
            f"{request.model}: {UNUSUAL['encoders']}, which can't be adapted; choose a model of one encoder"
        )
    if request.settings.longest is not None:
        encoder.read_up_to(request.settings.longest)
    return encoder


def uses_of(
    definitions: Sequence[Definition], documents: Iterable[Document], tokenizer: PreTrainedTokenizerFast
) -> tuple[list[Use], Sequence[str]]:
    """What becomes of each entry that rows of a glossary make, by what documents say; remarks on odd rows."""
    keys = EntryKeys(tokenizer)
    read = read_entries(definitions, keys)
    texts = (document.full_text for document in documents)
    return uses(read.entries, texts, keys, partial(is_token, tokenizer)), read.remarks


def prepare_entries(
    corpus: CorpusFolder, tokenizer: PreTrainedTokenizerFast, glossary: str, path: Path
) -> tuple[list[Use], str]:
    """Write `entries.jsonl`: what a glossary says, and what becomes of each entry by what the corpus says.

    Raises InputError where nothing becomes of any, for then the glossary would be of no use.
    """
    of_entries, remarks = uses_of(read_dictionary(glossary), corpus.read(), tokenizer)
    if not any(use.makes_queries or use.token for use in of_entries):
        raise InputError(
            glossary,
            f"none of its {len(of_entries):,} entries is one that {corpus} says; "
            "name a glossary of this corpus, or none",
        )
    write_uses(path, of_entries)
    return of_entries, "; ".join((*summary(of_entries), *remarks))


def prepare_defined_terms(
    corpus: CorpusFolder, tokenizer: PreTrainedTokenizerFast, uses: Sequence[Use], path: Path
) -> str:
    """Write `terms.json`: the words of a glossary that get a token. Nothing is written where there are none."""
    names = {use.token.casefold(): use.token for use in uses if use.token}
    if not names:
        return "no word that the glossary defines needs a token"
    mined = mine_terms(corpus.read(), tokenizer)
    chosen = [term for term in mined if term.text.casefold() in names]
    known = {term.text.casefold() for term in chosen}
    chosen += [Term(name, "glossary") for key, name in names.items() if key not in known]
    write_terms(path, chosen)
    return f"{len(chosen):,} words that the glossary defines: {listed([term.text for term in chosen])}"


def prepare_dictionary(
    documents: Sequence[Document], terms: Sequence[Term], uses: Sequence[Use], path: Path
) -> str:
    """Write `dictionary.jsonl`: what the corpus and a glossary say of the terms. Nothing where there is nothing."""
    mined = mine_definitions(documents, [term.text for term in terms])
    known = {term.text.casefold() for term in terms}
    definitions = [each for use in uses if use.token.casefold() in known for each in _definitions(use)]
    if not mined and not definitions:
        return "no definition of any term found"
    write_mined(path, mined, definitions)
    return f"{len(mined):,} definitions found in the corpus, {len(definitions):,} from the glossary"


def _definitions(use: Use) -> Iterator[Definition]:
    """What teaches the token of an entry: each sense, and of an acronym what it is short for."""
    entry = use.entry
    if entry.acronym and use.token == entry.acronym:
        yield Definition(use.token, entry.term)
    for sense in entry.senses:
        yield Definition(use.token, sense, entry.examples)


def prepare_collection(
    corpus: str,
    documents: Sequence[Document],
    settings: QuerySettings,
    file: str | None,
    writer: Writer | None,
    folder: Path,
    uses: Sequence[Use] = (),
) -> str:
    """Write the collection of queries without users; those of a model, of a glossary and of users come on top."""
    collected = make_queries(documents, settings, writer, place=corpus)
    collected.queries.extend(entry_queries(uses, len(collected.of(TRAIN)) // CORPUS_QUERIES))
    if file is not None:
        collected.queries.extend(
            SyntheticQuery(f"{GIVEN}-{query.query_id}", query.text, GIVEN, "") for query in read_queries(file)
        )
    write_collection(folder, collected)
    counts = {split: len(collected.of(split)) for split in (TRAIN, HELD)}
    made = f"{counts[TRAIN]:,} queries to learn from, {counts[HELD]:,} set aside"
    return "; ".join([made, *([] if writer is None else writer.tally.lines("queries written"))])


def prepare_candidates(
    collection: Path,
    teacher: Teacher,
    settings: CandidateSettings,
    split: str,
    path: Path,
    progress_for: ProgressFor = no_progress_for,
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
    gathered = gather(queries, documents, teacher, settings, progress_for(f"{split} queries", len(queries)))
    wanted = FEWEST_HELD_OUT if split == HELD else 1
    if len(gathered.candidates) < wanted:
        raise InputError(
            collection / "queries.jsonl",
            f"the teacher finds the document that a query was made from for {len(gathered.candidates):,} of "
            f"{len(queries):,} queries ({split}), and {wanted} are needed; give a larger corpus, --queries or another "
            "--teacher",
        )
    write_candidates(path, gathered.candidates)
    share_of_queries = f"{len(gathered.candidates):,} of {len(queries):,} queries"
    return f"{share_of_queries}, those whose own document the teacher finds (it is {teacher.name})"


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
