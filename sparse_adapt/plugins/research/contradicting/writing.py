"""From a corpus to `triplets.jsonl`: sentences read, a generator tuned, contradictions written, resumably."""

from itertools import islice
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.examples import write_triplets
from sparse_adapt.collection.sentences import check_language
from sparse_adapt.errors import InputError
from sparse_adapt.files.folders import check_free, output_folder, way_to_file, write_json
from sparse_adapt.files.journal import noted
from sparse_adapt.files.place import Place
from sparse_adapt.files.steps import check_request
from sparse_adapt.model.folder import ModelFolder
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.plugins.research.contradicting.contradict import (
    EACH,
    SHORTEST,
    ContradictionTally,
    admit,
    contradictions,
    fit,
    read_sentences,
)
from sparse_adapt.plugins.research.contradicting.generator import Filler, tune
from sparse_adapt.plugins.research.contradicting.masked import MaskedFiller
from sparse_adapt.plugins.research.contradicting.spans import SpanFiller, is_sequence_to_sequence
from sparse_adapt.plugins.research.parsing import ParsedSentence, Parser
from sparse_adapt.report.progress import Before, ProgressFor, no_progress_for

REQUEST_FILE, JOURNAL_FILE, TUNED = "request.json", "sentences.jsonl", "generator"
SENTENCES = 2_000


class ContradictRequest(NamedTuple):
    """Of which corpus, by which generator after how many steps of tuning, how many sentences, how many of each.

    `at_once`: whether all noun chunks of a sentence are replaced together; `shortest`: tokens of a sentence at least;
    `optimiser`: by which the generator is tuned; `detect`: whether sentences of other languages are left out.
    """

    corpus: str
    generator: str
    language: str = "en"
    sentences: int = SENTENCES
    each: int = EACH
    tune: int = 0
    seed: int = 0
    at_once: bool = True
    shortest: int = SHORTEST
    optimiser: str = "adamw"
    detect: bool = False


def write(
    request: ContradictRequest,
    place: Place,
    *,
    tuned: Path | None = None,
    device: str = "cpu",
    progress_for: ProgressFor = no_progress_for,
) -> ContradictionTally:
    """Write a corpus's contradictions to a file, and to `tuned` the generator that tuning made.

    Raises InputError where there is no sentence to contradict, or a generator puts back what was there; ConfigError
    where an unfinished run was asked something else; OutputError, before anything is read, for a place that is taken.
    """
    if tuned is not None:
        if not request.tune:
            raise InputError(tuned, "nothing is tuned; pass --tune 500 too, or leave --tuned out")
        check_free(Place(tuned, place.overwrite, resumable=False))
    if request.detect:
        check_language(request.language)
    tally = ContradictionTally()
    with way_to_file(place) as work:
        check_request(work / REQUEST_FILE, request._asdict())
        parser = Parser(request.language)
        tuned_here = work / TUNED
        source = tuned_here if tuned_here.is_dir() else request.generator
        filler = load_filler(source, parser.between, device)
        sentences = _read(request, parser, filler, tally, progress_for)
        write_json(work / REQUEST_FILE, request._asdict())
        if request.tune and not tuned_here.is_dir():
            progress = progress_for("tuning", request.tune)
            texts = [each.text for each in sentences]
            tune(
                filler,
                texts,
                request.tune,
                seed=request.seed,
                optimiser_name=request.optimiser,
                progress=progress,
            )
            with output_folder(Place(tuned_here)) as folder:
                filler.save(folder)
        admit(sentences, filler)
        progress, triplets = progress_for("sentences", len(sentences)), []
        journal = work / JOURNAL_FILE
        before = len(noted(journal))
        contradicted = contradictions(
            sentences, filler, each=request.each, seed=request.seed, journal=journal, at_once=request.at_once
        )
        for number, written in enumerate(contradicted):
            tally.add(written)
            progress(Before(1) if number < before else 1)
            if written.contradictions:
                triplets.append(written.triplet)
        if triplets and tuned is not None:
            with output_folder(Place(tuned, place.overwrite)) as folder:
                filler.save(folder)
        if triplets:
            write_triplets(work / place.folder.name, triplets)
    if not triplets:
        advice = "name another --generator" if request.tune else "try --tune 500"
        raise InputError(request.corpus, f"{request.generator} put back what was there ({tally}); {advice}")
    return tally


def _read(
    request: ContradictRequest,
    parser: Parser,
    filler: Filler,
    tally: ContradictionTally,
    progress_for: ProgressFor,
) -> list[ParsedSentence]:
    """The sentences that something can be replaced in."""
    progress, sentences = progress_for("sentences read", None), []
    language = request.language if request.detect else None
    fitting = fit(
        read_sentences(request.corpus, parser, request.seed), filler, tally, request.shortest, language
    )
    for sentence in islice(fitting, request.sentences):
        sentences.append(sentence)
        progress(1)
    if not sentences:
        raise InputError(request.corpus, f"no sentence to contradict ({tally}); check --language")
    return sentences


def load_filler(source: str | Path, between_words: str, device: str = "cpu") -> Filler:
    """What fills gaps, by folder, alias or `hub:owner/name`: a sequence-to-sequence model or one with masked words.

    Raises ModelError for what is neither.
    """
    folder = ModelFolder.of(source).path
    if is_sequence_to_sequence(folder):
        return SpanFiller(folder, source, device)
    return MaskedFiller(load_encoder(source, device), between_words)
