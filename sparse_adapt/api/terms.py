"""The words of a corpus that deserve a token of their own."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, overload

from rich.console import Group, RenderableType
from rich.text import Text

from sparse_adapt.collection.given import Corpus, DocumentsGiven
from sparse_adapt.errors import ConfigError, OutputError, unknown
from sparse_adapt.model.saved import tokenizer_of
from sparse_adapt.report.progress import watching
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import Column, Row, Table, to_rich
from sparse_adapt.terms.criterion import SHARE, paying
from sparse_adapt.terms.mining import Term, write_terms
from sparse_adapt.terms.mining import mine_terms as mine
from sparse_adapt.terms.wordpiece import trained_vocabulary

CRITERIA = GAIN, WORDPIECE = ("gain", "wordpiece")
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


@dataclass(frozen=True, repr=False)
class MinedTerms(Result, Sequence[Term]):
    """Terms, best first, each with its evidence; a sequence of `Term`. `criterion` says in words why they end there."""

    terms: tuple[Term, ...]
    criterion: str = ""

    def __len__(self) -> int:
        return len(self.terms)

    @overload
    def __getitem__(self, place: int) -> Term: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Term, ...]: ...

    def __getitem__(self, place: int | slice) -> Term | tuple[Term, ...]:
        return self.terms[place]

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    @property
    def headline(self) -> str:
        """How many, and the first of them."""
        first = ", ".join(term.text for term in self.terms[:5])
        return f"{len(self.terms):,}: {first}{', ...' if len(self.terms) > 5 else ''}"

    def to_dict(self) -> dict[str, Any]:
        """The terms with their evidence."""
        terms = [{"term": term.text, "category": term.category, **_evidence(term)} for term in self.terms]
        return {"criterion": self.criterion, "terms": terms}

    def rows(self) -> list[Row]:
        """A row each, with its evidence."""
        return [
            {
                "rank": rank,
                "term": term.text,
                "category": term.category,
                **_evidence(term),
                "pieces": " ".join(term.evidence.pieces) if term.evidence else "",
            }
            for rank, term in enumerate(self.terms, start=1)
        ]

    def renderable(self) -> RenderableType:
        """The first of them as a table, and why they end there."""
        note = (
            "gain: what a token for the word saves over the corpus, less what it costs; times: how often it is said; "
            "zipf: how common the word is elsewhere (3 is rare, 6 is common); log odds: how typical of this corpus"
        )
        if len(self.terms) > SHOWN:
            note = f"the first {SHOWN} of {len(self.terms):,}; {note}"
        table = to_rich(Table("", COLUMNS, self.rows()[:SHOWN], note))
        return Group(table, Text(self.criterion)) if self.criterion else table

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write `terms.json`, to be read and edited. Raises OutputError for a file that is there already."""
        place = Path(path)
        if place.exists() and not overwrite:
            raise OutputError(f"{path}: already there; choose another place or pass overwrite")
        write_terms(place, self.terms)
        return place


def mine_terms(
    corpus: DocumentsGiven,
    model: str | Path = "splade-tiny",
    *,
    top: int | None = None,
    share: float = SHARE,
    by: str = GAIN,
    progress: bool | None = None,
) -> MinedTerms:
    """The words of a corpus that deserve a token of their own in a model's vocabulary, best first.

    corpus: a place, or documents in memory (see `collection.given`). by: `gain`, what a token saves over the corpus in
    nats, or `wordpiece`, what a vocabulary trained on the corpus has. Of gain, terms end before the first that saves
    less than `share` of the mean of those before it; with `top`, the best so many come whatever they save. Raises
    InputError for a corpus that can't be read, ConfigError for another criterion.

    >>> import sparse_adapt as sa
    >>> sa.mine_terms("gatrocraptic", top=1)
    <MinedTerms: 1: Gatrocraptic>
    """
    if by not in CRITERIA:
        raise ConfigError(unknown("criterion", by, CRITERIA))
    documents = Corpus.of(corpus).read()
    tokenizer = tokenizer_of(model)
    with watching(progress) as bars:
        watched = bars.watch(documents, "documents")
        if by == WORDPIECE:
            return MinedTerms(tuple(trained_vocabulary(watched, tokenizer, top=top)))
        found = mine(watched, tokenizer, top)
    if top is not None:
        return MinedTerms(tuple(found))
    kept, criterion = paying(found, share)
    return MinedTerms(tuple(kept), criterion)


def _evidence(term: Term) -> dict[str, Any]:
    return asdict(term.evidence) if term.evidence is not None else {}
