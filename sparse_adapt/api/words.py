"""Exact words in the vectors of a model: `words`, and `add_words` in Python."""

from pathlib import Path
from typing import Annotated, Literal

from sparse_adapt.api.checks import check_output
from sparse_adapt.api.following import a_query, line, lines_to_measure
from sparse_adapt.api.options import (
    Columns,
    CorpusAtPlace,
    Device,
    Glossary,
    ModelAtPlace,
    Option,
    Overwrite,
    declared,
    out_option,
)
from sparse_adapt.errors import ConfigError, ModelError
from sparse_adapt.files.place import Place
from sparse_adapt.model.exact.defaults import HEAVIEST, ONLY_DOMAIN, SHARE, TITLE
from sparse_adapt.report.progress import progress_bars
from sparse_adapt.report.results import Result

NAMED = 8  # words in a note


@declared
def add_words(
    model: ModelAtPlace,
    corpus: CorpusAtPlace,
    out: Annotated[str | Path | None, out_option("Folder to write the model in.", "DIR")] = None,
    *,
    share: Annotated[
        float | None,
        Option(
            "Part of exact words in a score: 1 makes words and the model's weights equally strong.",
            ge=0,
            le=1e6,
            shown=f"{SHARE:g}; {ONLY_DOMAIN:g} with --only-domain",
        ),
    ] = None,
    title: Annotated[float, Option("What a word of the title counts once more.", ge=0, le=1e6)] = TITLE,
    prune: Annotated[
        int,
        Option(
            "Weights of the model that a document keeps beside its words, the heaviest; 0 keeps all.",
            metavar="N",
            ge=0,
        ),
    ] = HEAVIEST,
    language: Annotated[
        str | None,
        Option(
            "Language of stop words and stems, such as en or de; none takes words as they are written.",
            metavar="CODE",
            shown="told by the corpus",
        ),
    ] = None,
    only_domain: Annotated[
        bool,
        Option(
            "The index holds nothing but this corpus: words count by its statistics alone, and as much as weights."
        ),
    ] = False,
    query_side: Annotated[
        Literal["model", "idf"],
        Option(
            "What weighs a query's tokens: the model, or a table of their inverse document frequencies, by which no "
            "model has to be served. General questions lose by a table; words make up for it in the corpus's own field."
        ),
    ] = "model",
    glossary: Glossary = None,
    update: Annotated[
        bool,
        Option(
            "Take new statistics, and a share that is named, into a model that has exact words; documents keep their "
            "vectors."
        ),
    ] = False,
    columns: Columns = (),
    device: Device = "auto",
    overwrite: Overwrite = False,
    progress: bool | None = None,
) -> Result:
    """Put exact words into a model's vectors, beside its weights.

    A document then matches a query by its words too, as with BM25, in the same vector and the same index. Nothing is
    trained. Words are stemmed; identifiers are matched whole and in their parts. A match on a token then counts by the
    root of its inverse document frequency, as one on a word counts by its own (`token_scales.json`).

    With a glossary a query that means one of its words by the definition, and doesn't say it, gets the word as well. A
    small dense encoder of English (22.7 million parameters), which then reads each query too, tells which words those
    are. Only words count that the model's tokenizer cuts into pieces and that two documents contain. With `update` the
    glossary takes the place of the one before: give it whole, old entries and new ones.

    corpus: documents whose words are counted: how many hold each word, and how long they are. Where a document has a
    title, `title` weighs its words once more. query_side: with idf a query takes a quarter of a millisecond, and a
    share of 1 is best. Without `out` the model is changed in memory; the result has it as `model`. Raises ModelError
    for a model that has exact words already, unless `update`, and for a dense one.

    >>> import sparse_adapt as sa
    >>> added = sa.add_words("splade-tiny", ["error ERR-4012 in pump A7", "the pump runs"], device="cpu")
    >>> [hit.document_id for hit in sa.search(added.model, ["error ERR-4012 in pump A7", "a pump"], "ERR-4012")]
    ['1']
    """
    from sparse_adapt.api.models import load_sparse
    from sparse_adapt.collection.arguments import Corpus, chooses_definitions, definitions_of
    from sparse_adapt.pipeline.defined import defined_by
    from sparse_adapt.pipeline.words import WordOptions, add_exact_words, idf_table, updated
    from sparse_adapt.report.messages import note_told

    note_told()  # words read what the model doesn't
    of_glossary = glossary is not None and chooses_definitions(columns)
    source = Corpus.of(corpus, () if of_glossary else columns)
    definitions = [] if glossary is None else definitions_of(glossary, columns if of_glossary else ())
    notes = [] if out is not None else ["nothing was written; name a folder with -o DIR"]
    place = None if out is None else Place(Path(out), overwrite, reads=[str(model)])
    if place is not None:
        check_output(place)
    loaded, encoder = load_sparse(model, device)
    _check_state(loaded.source, has_words=encoder.words is not None, update=update)
    options = WordOptions(
        share=share, title=title, heaviest=prune or None, language=language, only_domain=only_domain
    )
    with progress_bars(progress) as bars:
        advance = bars.count("documents", source.count())
        if query_side == "idf":
            encoder.query_side = idf_table(encoder, source.read)
        if encoder.words is None:
            words = add_exact_words(encoder, source.read, options, advance)
        else:
            words = encoder.words = updated(encoder.words, source.read, options, advance)
        if glossary is not None:
            before = words.defined_names
            words = encoder.words = defined_by(definitions, encoder, source.read, bars.count)
            if left_out := [name for name in before if name not in words.defined_names]:
                gone = f"{', '.join(left_out[:NAMED])}{', ...' if len(left_out) > NAMED else ''}"
                notes.append(f"no longer found by definition, for the glossary before is replaced: {gone}")
    base, folder = loaded.source, None if place is None else place.folder
    then = list[str]()
    if folder is not None:
        loaded.save(folder, overwrite=overwrite)
    if folder is not None and source.place:
        query = a_query(source.place) or "a query of yours"
        asked = line("explain", query, "--model", folder, "--corpus", source.place)
        then = [asked, *lines_to_measure(base, folder, source.place)]
    settings = words.settings.model_dump(exclude={"idf", "format", "format_version"})
    return Result(
        words.describe(),
        {**settings, "words": len(words.settings.idf)},
        wrote=[] if folder is None else [(folder, words.describe())],
        then=then,
        notes=notes,
        quiet=folder is not None,
        model=loaded,
        words=words,
        folder=folder,
    )


def _check_state(name: str, *, has_words: bool, update: bool) -> None:
    """Raise for a model that has exact words already, and for one that has none to update."""
    if has_words and not update:
        raise ModelError(f"{name}: has exact words; pass --update to take new statistics")
    if update and not has_words:
        raise ConfigError(f"--update: {name} has no exact words yet; leave it out")
