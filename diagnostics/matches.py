"""Why a query finds what it finds: its expansions, and the tokens that each top document shares with it.

Every score is a sum of contributions, query weight times document weight, over shared tokens. A vector is of one text:
(1, V), over the V tokens of the vocabulary; exact words have columns of their own, behind them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import InputError
from sparse_adapt.model.exact.words import FIRST_WORD
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import names_of
from sparse_adapt.model.windows import cut_up
from sparse_adapt.report.results import Shown
from sparse_adapt.report.sections import Bar, BarList, Part, Prose, RankedDocument, Section
from sparse_adapt.report.tables import Row
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.hybrid import document_vectors, names_of_columns, query_vectors
from sparse_adapt.retrieve.search import top_k

RELATIVE_TOLERANCE = 1e-5
HEAVIEST = 10  # tokens of a document that are shown
SNIPPET = 160  # signs of a document's text that are shown
SHARED = 10  # tokens of a match that are shown


@dataclass(frozen=True, slots=True)
class QueryToken:
    """One non-zero token of the query. An expansion is one that the query's text doesn't hold.

    `word`: whether it is an exact word, in a dimension of its own; as an expansion it is meant by its definition.
    """

    token_id: int
    token: str
    weight: float
    expansion: bool
    new: bool
    word: bool = False


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one shared token adds to a score: `contribution = query_weight * document_weight`."""

    token_id: int
    token: str
    query_weight: float
    document_weight: float
    contribution: float
    expansion: bool
    new: bool
    word: bool = False
    window: int | None = None  # of the document's windows in which the token is active, from 1


@dataclass(frozen=True, slots=True)
class DocumentToken:
    """One non-zero token of a document. `shared`: whether the query has weight for it, too."""

    token_id: int
    token: str
    weight: float
    shared: bool
    new: bool


@dataclass(frozen=True, slots=True)
class Match:
    """One found document. The contributions, largest first, sum to the score.

    `snippet` is how its text begins, `heaviest` its heaviest tokens, shared or not.
    `windows`: how many windows the document is read in, None where it is read up to a length.
    """

    rank: int
    document_id: str
    title: str
    score: float
    contributions: tuple[Contribution, ...]
    snippet: str = ""
    heaviest: tuple[DocumentToken, ...] = ()
    windows: int | None = None

    @property
    def word_share(self) -> float | None:
        """The share of exact words in the score; None where no word contributes."""
        words = sum(part.contribution for part in self.contributions if part.word)
        return words / self.score if words else None


@dataclass(frozen=True, slots=True, repr=False)
class QueryReport(Shown):
    """A query as the model weighs it, and its best documents. `nonzero` counts all of its tokens with weight.

    `tokens` holds every token of the query's text that has weight and its heaviest expansions, `inactive` the
    tokens of the text that have none; both leave out the special tokens around a text. `heaviest` is the token with
    the largest weight, and `sparsity` the share of the vocabulary without weight, in percent.
    """

    query: str
    nonzero: int
    tokens: tuple[QueryToken, ...]
    inactive: tuple[str, ...]
    matches: tuple[Match, ...]
    sparsity: float = 100.0
    heaviest: QueryToken | None = None
    query_id: str | None = None  # of a query of a file

    @property
    def headline(self) -> str:
        """The query, how many tokens it has and which document it finds first."""
        best = f", best {self.matches[0].document_id}" if self.matches else ""
        return f"{self.query!r}, {self.nonzero:,} tokens, {len(self.matches):,} documents{best}"

    def to_dict(self) -> dict[str, object]:
        """Everything that the tables show, as plain objects and lists."""
        content = asdict(self)
        _leave_out(content, "query_id")
        for token in (*content["tokens"], *([content["heaviest"]] if self.heaviest else [])):
            _leave_out(token, "word")
        for match in content["matches"]:
            for part in match["contributions"]:
                _leave_out(part, "word")
                _leave_out(part, "window")
            _leave_out(match, "windows")
        return content

    def rows(self) -> list[Row]:
        """Each shared token of each document that was found, largest contribution first."""
        rows: list[dict[str, object]] = [
            {
                "query_id": self.query_id,
                "rank": match.rank,
                "document_id": match.document_id,
                "score": match.score,
                **asdict(part),
            }
            for match in self.matches
            for part in match.contributions
        ]
        for row in rows:
            _leave_out(row, "word")
            _leave_out(row, "window")
            _leave_out(row, "query_id")
        return list[Row](rows)

    def sections(self) -> Sequence[Section]:
        """The query and its tokens, then each document with the contributions that sum to its score."""
        sparse = f"{self.nonzero:,} with weight, sparsity {self.sparsity:.2f} %"
        if self.heaviest is not None:
            sparse += f", largest {self.heaviest.token} {self.heaviest.weight:.3f}"
        sections = [
            Section("query", self.query_id or "", [Prose(self.query, "title")]),
            Section("tokens", f"Query tokens ({sparse})", [_weighed(self)]),
        ]
        largest = largest_contribution(self.matches)
        for match in self.matches:
            heading = f"{match.rank}  {match.document_id}  {match.title}".rstrip()
            sections.append(Section(f"document-{match.rank}", heading, list(_parts(match, largest))))
        if not self.matches:
            sections.append(Section("nothing", "", [Prose("No document shares a token with this query.")]))
        return sections


# -- as sections ------------------------------------------------------------------------------


def _weighed(report: QueryReport) -> BarList:
    """The query's tokens by weight, and its words without weight."""
    largest = max((token.weight for token in report.tokens), default=1.0)
    bars = [
        Bar(token.token, f"{token.weight:.3f}", token.weight / largest, _origin(token), token.new)
        for token in report.tokens
    ]
    return BarList("", bars, f"without weight: {' '.join(report.inactive)}" if report.inactive else "")


def _parts(match: Match, largest: float) -> Iterator[Part]:
    """How the document begins, its heaviest tokens, and what its score is the sum of."""
    if match.snippet:
        yield Prose(match.snippet, "quiet")
    if match.heaviest:
        named = (f"{each.token}{'*' if each.shared else ''} {each.weight:.2f}" for each in match.heaviest)
        yield Prose(f"heaviest tokens (* shared): {', '.join(named)}")
    if match.word_share is not None:
        yield Prose(f"exact words make {match.word_share:.0%} of the score")
    yield BarList("", shared_bars(match, largest), total=f"{match.score:.3f}")


def shared_bars(match: Match, largest: float) -> list[Bar]:
    """The tokens that make a match, largest contribution first, and how much all others give."""
    shown, rest = match.contributions[:SHARED], match.contributions[SHARED:]
    bars = [
        Bar(
            part.token,
            f"{part.contribution:.3f}",
            part.contribution / largest,
            _origin(part, match.windows),
            part.new,
            product=f"{part.query_weight:.3f} x {part.document_weight:.3f}",
        )
        for part in shown
    ]
    if rest:
        bars.append(Bar(f"{len(rest):,} more", f"{sum(part.contribution for part in rest):.3f}", 0.0))
    return bars


def _origin(token: QueryToken | Contribution, windows: int | None = None) -> str:
    """What a token is besides a word of the query, and in which window of the document it is active."""
    kinds = (
        ("exact word", token.word and not token.expansion),
        ("meant by its definition", token.word and token.expansion),
        ("new term", token.new),
        ("expansion", token.expansion and not token.word),
    )
    words = [word for word, holds in kinds if holds]
    if windows is not None and windows > 1 and isinstance(token, Contribution):
        words.append(f"window {token.window} of {windows}")
    return ", ".join(words)


def largest_contribution(matches: Sequence[Match]) -> float:
    """What the longest bar of some matches stands for."""
    return max((each.contributions[0].contribution for each in matches if each.contributions), default=1.0)


def ranked_document(match: Match, largest: float) -> RankedDocument:
    """A document of a ranking with the tokens that it shares with the query; `largest`: of the longest bar."""
    return RankedDocument(
        match.document_id,
        match.title or match.snippet,
        f"{match.score:.3f}",
        None,
        shared_bars(match, largest),
    )


# -- measured ---------------------------------------------------------------------------------


def explain(
    query: str,
    model: SparseEncoder,
    documents: Sequence[Document],
    top: int = 5,
    expansions: int = 20,
    *,
    vectors: csr_matrix | None = None,
    vector: csr_matrix | None = None,
) -> QueryReport:
    """Search for a query and take its scores apart.

    `vectors` (documents, V) saves encoding the documents again, `vector` (1, V) the query. Raises InputError for an
    empty query.
    """
    if not query.strip():
        raise InputError("query", "is empty; say what to look for")
    if vectors is None:
        vectors = document_vectors(model, documents)
    if vector is None:
        vector = query_vectors(model, [query])
    indices, scores = top_k(vector, vectors, top)[0]
    tokens = _query_tokens(model, query, vector)
    written = [token for token in tokens if not token.expansion]
    added = [token for token in tokens if token.expansion][:expansions]
    by_id = {token.token_id: token for token in tokens}
    rows = [vectors[int(index)] for index in indices]
    return QueryReport(
        query=query,
        nonzero=len(tokens),
        tokens=tuple(sorted((*written, *added), key=lambda token: -token.weight)),
        inactive=_inactive(model, query, by_id),
        matches=tuple(
            _match(rank, model, documents[index], float(score), by_id, row)
            for rank, (index, score, row) in enumerate(zip(indices, scores, rows, strict=True), start=1)
        ),
        sparsity=100.0 * (1.0 - sum(not token.word for token in tokens) / model.vocabulary_size),
        heaviest=tokens[0] if tokens else None,
    )


def _leave_out(content: dict[str, object], key: str) -> None:
    """Take a key out that has no value, or says that a token is no exact word."""
    if content[key] is None or content[key] is False:
        del content[key]


def _query_tokens(model: SparseEncoder, query: str, vector: csr_matrix) -> list[QueryToken]:
    """Every non-zero token of the query, heaviest first."""
    tokens = set(model.says_in(model.tokenize([query], "query")[0]))
    if model.words is not None:
        tokens |= {model.words.column(word.stem) for word in model.words.analyzer.words(query)}
    new = {token.token_id for token in model.new_tokens}
    order = np.lexsort((vector.indices, -vector.data))
    ids = [int(vector.indices[index]) for index in order]
    return [
        QueryToken(
            token_id,
            name,
            float(vector.data[index]),
            expansion=token_id not in tokens,
            new=token_id in new,
            word=token_id >= FIRST_WORD,
        )
        for index, token_id, name in zip(order, ids, names_of_columns(model, ids), strict=True)
    ]


def _inactive(model: SparseEncoder, query: str, weighed: dict[int, QueryToken]) -> tuple[str, ...]:
    special = set(model.tokenizer.all_special_ids)
    tokens = dict.fromkeys(model.tokenize([query], "query")[0])
    ids = [token_id for token_id in tokens if token_id not in weighed and token_id not in special]
    return names_of(model.tokenizer, ids)


@dataclass(frozen=True, slots=True)
class Active:
    """In which window of a document, from 1, each token has its largest weight, and how many windows there are."""

    windows: int | None
    window: dict[int, int]


def active_in(model: SparseEncoder, text: str) -> Active:
    """Where a document's tokens are active; nothing where it isn't read by windows. Of equal weights the first
    counts.
    """
    if model.windows is None:
        return Active(None, {})
    parts, _ = cut_up([text], model.tokenizer, model.windows, model.form.prompt("document"))
    with model.without_windows():
        vectors = encode(model, parts, "document").tocsc()
    window = {}
    for token in np.flatnonzero(np.diff(vectors.indptr)):
        entries = slice(vectors.indptr[token], vectors.indptr[token + 1])
        weights, rows = vectors.data[entries], vectors.indices[entries]
        window[int(token)] = int(rows[weights == weights.max()].min()) + 1
    return Active(len(parts), window)


def _match(
    rank: int,
    model: SparseEncoder,
    document: Document,
    score: float,
    tokens: dict[int, QueryToken],
    vector: csr_matrix,
) -> Match:
    active = active_in(model, document.full_text)
    shared = [
        Contribution(
            token_id=token.token_id,
            token=token.token,
            query_weight=token.weight,
            document_weight=float(weight),
            contribution=token.weight * float(weight),
            expansion=token.expansion,
            new=token.new,
            word=token.word,
            window=active.window.get(int(token_id)),
        )
        for token_id, weight in zip(vector.indices, vector.data, strict=True)
        if (token := tokens.get(int(token_id))) is not None
    ]
    shared.sort(key=lambda part: (-part.contribution, part.token_id))
    total = sum(part.contribution for part in shared)
    assert abs(total - score) <= RELATIVE_TOLERANCE * max(1.0, abs(score)), (
        document.document_id,
        total,
        score,
    )
    heaviest = _heaviest(model, document, vector, tokens)
    begins = beginning(document.text)
    return Match(
        rank, document.document_id, document.title, score, tuple(shared), begins, heaviest, active.windows
    )


def _heaviest(
    model: SparseEncoder, document: Document, vector: csr_matrix, tokens: dict[int, QueryToken]
) -> tuple[DocumentToken, ...]:
    """The heaviest tokens of a document; of equal weights the lower id comes first."""
    new = {token.token_id for token in model.new_tokens}
    order = np.lexsort((vector.indices, -vector.data))[:HEAVIEST]
    ids = [int(vector.indices[index]) for index in order]
    return tuple(
        DocumentToken(token_id, name, float(vector.data[index]), token_id in tokens, token_id in new)
        for index, token_id, name in zip(order, ids, names_of_columns(model, ids, document), strict=True)
    )


def beginning(text: str) -> str:
    """How a text begins, on one line, up to the end of a word."""
    whole = " ".join(text.split())
    if len(whole) <= SNIPPET:
        return whole
    begun = whole[:SNIPPET]
    return f"{begun.rpartition(' ')[0] or begun} ..."
