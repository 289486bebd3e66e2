"""The words of a corpus that deserve a token of their own: `mine_terms`."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn, overload

from sparse_adapt.api.checks import a_file_or_folder, check_free_file
from sparse_adapt.api.following import column_words, free, line
from sparse_adapt.api.options import (
    CORPUS_PLACE,
    LLM,
    Columns,
    Model,
    Option,
    Overwrite,
    declared,
    out_option,
)
from sparse_adapt.errors import ConfigError, InputError, OutputError
from sparse_adapt.files.place import Place
from sparse_adapt.registry import registry
from sparse_adapt.report.progress import Bars, progress_bars
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import Column, Row, Table

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from sparse_adapt.collection.arguments import Corpus, DefinitionsLike, DocumentsLike
    from sparse_adapt.collection.columns import ColumnsLike
    from sparse_adapt.terms.mining import Term

GAIN, WORDPIECE = "gain", "wordpiece"
PAYING = 0.25  # share of the mean gain
SHOWN = 40
COLUMNS = (
    Column("rank", "rank"),
    Column("term", "term", "token"),
    Column("category", "category", "text"),
    Column("gain", "gain", unit="nats", decimals=1),
    Column("occurrences", "times"),
    Column("documents", "documents"),
    Column("zipf", "zipf", decimals=2),
    Column("log_odds", "log odds", decimals=2),
    Column("pieces", "pieces now", "token"),
)
COLUMNS_OF_GLOSSARY = (
    Column("term", "gets a token", "token"),
    Column("entry", "entry", "text"),
    Column("pieces", "pieces now", "token"),
    Column("documents", "documents"),
)
NOTE = (
    "gain: what a token for the word saves over the corpus, less what it costs; times: how often it is said; "
    "zipf: how common the word is elsewhere (3 is rare, 6 is common); log odds: how typical of this corpus"
)


class Defined(NamedTuple):
    """What a model wrote of mined terms, where that lies, and what became of its answers."""

    place: Path
    definitions: tuple[Any, ...]
    tally: Any


class MinedTerms(Result, Sequence["Term"]):
    """Terms, best first, each with its evidence; a sequence of `Term`. `criterion` says in words why they end there.

    Of a glossary: the words that are to get a token. `entries` have a kind, the documents that say them (with a
    corpus), and the word that gets a token; `summary` counts them in words.
    """

    def __len__(self) -> int:
        return len(self.terms)

    @overload
    def __getitem__(self, place: int) -> "Term": ...

    @overload
    def __getitem__(self, place: slice) -> "tuple[Term, ...]": ...

    def __getitem__(self, place: int | slice) -> "Term | tuple[Term, ...]":
        found: Term | tuple[Term, ...] = self.terms[place]
        return found

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write `terms.json`, to be read and edited. Raises OutputError for a file that is there already."""
        from sparse_adapt.terms.mining import write_terms

        place = Path(path)
        if place.exists() and not overwrite:
            raise OutputError(f"{path}: already there; choose another place or pass overwrite")
        write_terms(place, self.terms)
        return place


@declared
def mine_terms(
    corpus: Annotated["DocumentsLike | None", CORPUS_PLACE] = None,
    model: Model = "splade-tiny",
    *,
    glossary: Annotated[
        "DefinitionsLike | None",
        Option(
            "Instead, list the words of this glossary that the model has no token for, and what becomes of each entry; "
            "with a corpus, by what it says.",
            metavar="FILE",
            check=a_file_or_folder,
        ),
    ] = None,
    top: Annotated[
        int | None,
        Option(
            "Take this many of the best words, even those that aren't worth a token.",
            ge=1,
            shown="those worth one",
        ),
    ] = None,
    share: Annotated[
        float,
        Option(
            "Stop at the first word whose gain is below this share of the mean gain of the words before it.",
            ge=0,
        ),
    ] = PAYING,
    by: Annotated[
        str,
        Option(
            "gain: what a token for the word saves over the corpus. wordpiece: whole words in the vocabulary of a "
            "tokenizer that is trained on the corpus.",
            metavar="NAME",
            choices=(GAIN, WORDPIECE),
        ),
    ] = GAIN,
    out: Annotated[str | Path | None, out_option("Write the words to this file, terms.json.")] = None,
    define: Annotated[
        str | Path | None,
        Option(
            "Have the model of --llm define the words by passages that say them, and write that to this file, "
            "dictionary.jsonl, for you to read.",
            metavar="FILE",
        ),
    ] = None,
    llm: Annotated[str | None, LLM] = None,
    columns: Columns = (),
    overwrite: Overwrite = False,
    progress: bool | None = None,
) -> MinedTerms:
    """List the words of a corpus that deserve a token of their own.

    Each word comes with the evidence for it.

    Gain is in nats. Of a glossary, `entries` of the result say what becomes of each; of definitions that a model wrote,
    `defined` says what became of its answers. Raises InputError for a corpus that can't be read or has no such word,
    ConfigError for another criterion and for a model that doesn't answer.

    >>> import sparse_adapt as sa
    >>> sa.mine_terms("gatrocraptic", top=1)
    <MinedTerms: 1: Gatrocraptic>
    """
    place = None if out is None else Path(out)
    check_free_file(None if place is None else Place(place, overwrite), "terms")
    if glossary is not None:
        if top is not None or by != GAIN or define is not None:
            raise ConfigError("--glossary lists all its words; leave out --top, --by, --define and --llm")
        return _of_glossary(glossary, corpus, str(model), columns, place, overwrite, progress)
    if corpus is None:
        raise ConfigError("terms needs CORPUS, whose words are listed, or --glossary FILE")
    if (define is None) != (llm is None):
        raise ConfigError(
            "--define FILE and --llm URL#MODEL go together: where definitions go, and who writes them"
        )
    check_free_file(None if define is None else Place(Path(define), overwrite), "dictionary")
    from sparse_adapt.collection.arguments import Corpus
    from sparse_adapt.model.saved import tokenizer_of
    from sparse_adapt.terms.alternatives import trained_vocabulary
    from sparse_adapt.terms.mining import mine_terms as mine
    from sparse_adapt.terms.mining import paying

    source, tokenizer, criterion = Corpus.of(corpus, columns), tokenizer_of(str(model)), ""
    with progress_bars(progress) as bars:
        documents = bars.counted(source.read(), "documents")
        trained = by == WORDPIECE
        best = (
            trained_vocabulary(documents, tokenizer, top=top) if trained else mine(documents, tokenizer, top)
        )
    best_terms, criterion = (best, "") if trained or top is not None else paying(best, share)
    if not best_terms:
        _refuse_without_words(source.name, some=top is None and bool(mine(source.read(), tokenizer, 1)))
    command = (*_command(source.name, str(model), top, share, by), *column_words(columns))
    defined = None
    if define is not None and llm is not None:
        with progress_bars(progress) as bars:
            defined = _define(
                best_terms, source, Place(Path(define), overwrite, resumable=False), llm, tokenizer, bars
            )
    mined = _mined(best_terms, criterion, place, command, defined)
    if place is not None:
        mined.save(place, overwrite=overwrite)
    return mined


def _mined(
    terms: "Sequence[Term]",
    criterion: str,
    place: Path | None,
    command: Sequence[str],
    defined: Defined | None,
) -> MinedTerms:
    """The first terms as a table, why they end there, and what to do with them: write them, or give each a token.

    command: what asks for them. place: where they are written.
    """
    plain: list[Row] = [{"term": each.text, "category": each.category, **_evidence(each)} for each in terms]
    rows: list[Row] = [
        {"rank": rank, **row, "pieces": " ".join(each.evidence.pieces) if each.evidence else ""}
        for rank, (each, row) in enumerate(zip(terms, plain, strict=True), start=1)
    ]
    first = f"the first {SHOWN} of {len(terms):,}; " if len(terms) > SHOWN else ""
    shown: list[Table | str] = [
        Table("", COLUMNS, rows[:SHOWN], first + NOTE),
        *([criterion] if criterion else []),
    ]
    stored: dict[str, object] = {"criterion": criterion, "terms": plain}
    wrote = _written(terms, place)
    if defined is not None:
        message = f"{len(defined.definitions):,} definitions; read each, and delete or mend what is wrong"
        wrote = [(defined.place, message), *([] if place is None else [(place, f"{len(terms):,} terms")])]
        then = [line("adapt", command[1], "--glossary", defined.place, "-o", free("adapted"))]
        stored["defined"] = defined.tally.plain()
    elif place is not None:
        model = command[command.index("--model") + 1]
        then = [line("extend", "--model", model, "--terms", place, "-o", free("extended"))]
    else:
        then = [line(*command, "-o", free("terms.json"))]
    return MinedTerms(
        _headline(terms),
        stored,
        shown,
        wrote,
        then,
        rows=rows,
        as_json=plain if defined is None else None,
        notes=[] if defined is None else list(defined.tally.lines("definitions written")),
        terms=tuple(terms),
        criterion=criterion,
        defined=defined,
    )


def _headline(terms: "Sequence[Term]") -> str:
    """How many, and the first of them."""
    first = ", ".join(term.text for term in terms[:5])
    return f"{len(terms):,}: {first}{', ...' if len(terms) > 5 else ''}"


def _written(terms: "Sequence[Term]", place: Path | None) -> list[tuple[Path, str]]:
    return [] if place is None else [(place, f"{len(terms):,} terms; read it, and delete what isn't one")]


def _of_glossary(
    glossary: "DefinitionsLike",
    corpus: "DocumentsLike | None",
    model: str,
    columns: "ColumnsLike",
    place: Path | None,
    overwrite: bool,
    progress: bool | None,
) -> MinedTerms:
    """What becomes of a glossary's entries by what a corpus says, or, without one, if it said them all."""
    from functools import partial

    from sparse_adapt.collection.arguments import Corpus, chooses_definitions, definitions_of
    from sparse_adapt.model.saved import tokenizer_of
    from sparse_adapt.terms.alternatives import is_token
    from sparse_adapt.terms.entries import EntryKeys, read_entries
    from sparse_adapt.terms.mining import Term
    from sparse_adapt.terms.uses import LEAST_DOCUMENTS, summary, uses

    tokenizer = tokenizer_of(model)
    keys = EntryKeys(tokenizer)
    of_glossary = chooses_definitions(columns)
    read = read_entries(definitions_of(glossary, columns if of_glossary else ()), keys)
    source = None if corpus is None else Corpus.of(corpus, () if of_glossary else columns)
    with progress_bars(progress) as bars:
        if source is None:
            texts = (form for each in read.entries for form in each.forms for _ in range(LEAST_DOCUMENTS))
        else:
            texts = (each.full_text for each in bars.counted(source.read(), "documents"))
        found = uses(read.entries, texts, keys, partial(is_token, tokenizer))
    terms = [Term(word, "glossary") for word in dict.fromkeys(use.token for use in found if use.token)]
    named = ["--glossary", glossary] if isinstance(glossary, str | Path) else []
    pieces = {term.text: " ".join(tokenizer.tokenize(term.text)) for term in terms}
    plain = [
        {
            "term": use.token,
            "entry": use.entry.term,
            "pieces": pieces.get(use.token, ""),
            "kind": use.kind,
            "documents": None if source is None else use.documents,
            "token": use.token,
            "refused": use.refused,
        }
        for use in found
    ]
    of_entry, of_row = (
        ("entry", "kind", "documents", "token", "refused"),
        ("term", "entry", "pieces", "documents"),
    )
    entries = [{key: each[key] for key in of_entry} for each in plain]
    rows: list[Row] = [{key: each[key] for key in of_row} for each in plain if each["token"]]
    said = (*summary(found), *read.remarks)
    note = f"the first {SHOWN} of {len(terms):,}" if len(terms) > SHOWN else ""
    table = Table("", COLUMNS_OF_GLOSSARY[: None if source else -1], rows[:SHOWN], note)
    mined = MinedTerms(
        _headline(terms),
        {"terms": rows, "entries": entries, "summary": list(said)},
        [*said, *([table] if terms else [])],
        _written(terms, place),
        [line("adapt", source.name if source else "CORPUS", *map(str, named))] if named else [],
        rows=rows,
        terms=tuple(terms),
        criterion="",
        entries=tuple(found),
        summary=said,
    )
    if place is not None:
        mined.save(place, overwrite=overwrite)
    return mined


def _define(
    terms: "Sequence[Term]",
    corpus: "Corpus",
    place: Place,
    llm: str,
    tokenizer: "PreTrainedTokenizerFast",
    bars: Bars,
) -> Defined:
    """Have a model define terms, and write the definitions to a place, all or nothing."""
    definitions, tally = registry().find("writers", "definitions")(llm, terms, corpus, place, tokenizer, bars)
    return Defined(place.folder, definitions, tally)


def _command(corpus: str, model: str, top: int | None, share: float, by: str) -> tuple[str, ...]:
    """The command that asks for the same."""
    chosen = ["--by", by] if by != GAIN else ["--share", str(share)] if share != PAYING else []
    chosen += [] if top is None else ["--top", str(top)]
    return ("terms", corpus, "--model", model, *chosen)


def _refuse_without_words(corpus: str, *, some: bool) -> NoReturn:
    """Raise InputError for a corpus in which no word was found; `some`: whether there are words of less worth."""
    if some:
        raise InputError(corpus, "holds no word that is worth a token; --top 20 takes the best there are")
    raise InputError(corpus, "holds no word that a token could be made of; the model has a token for each")


def _evidence(term: "Term") -> dict[str, object]:
    return asdict(term.evidence) if term.evidence is not None else {}
