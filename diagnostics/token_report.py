"""A report on one term: four sections of findings, the corpus around them, and what to do next.

A term that is one token has one entry in the sections on logits and weight; a term in pieces has one for
each piece.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from textwrap import shorten
from typing import Any

from diagnostics.advice import Advice, State
from diagnostics.glossary import InGlossary
from sparse_adapt.report.charts import columns
from sparse_adapt.report.results import Shown
from sparse_adapt.report.sections import (
    HERE,
    Bar,
    BarList,
    CommandText,
    Facts,
    Heat,
    Part,
    Picture,
    Pictures,
    Prose,
    Section,
    TableRows,
    Tone,
    Warm,
)
from sparse_adapt.report.tables import Column, Row, Table

TEXT_SHOWN = 300  # characters of a document
POSITIONS = 64  # of a document, in the picture; all of them stand in the text below it
STATES: dict[State, tuple[str, Tone]] = {
    "pieces": ("not a single token", "bad"),
    "absent": ("in no document", ""),
    "ordinary": ("a token of the base model", ""),
    "negative": ("a token the model does not expect", "bad"),
    "inactive": ("a token without weight", "bad"),
    "false_activation": ("a token that fires where it should not", ""),
    "outranked": ("has weight, but others have more", ""),
    "learnt": ("learnt", "good"),
}
LOGITS = (
    Column("token", "token", "token"),
    Column("over", "positions", "text"),
    Column("least", "least", decimals=4, signed=True),
    Column("average", "average", decimals=4, signed=True),
    Column("largest", "largest", decimals=4, signed=True),
    Column("position", "at"),
    Column("at", "on", "token"),
    Column("verdict", "verdict", "text"),
)
WEIGHTS = (
    Column("token", "token", "token"),
    Column("maximum_logit", "largest logit", decimals=4),
    Column("after_relu", "after relu", decimals=4),
    Column("after_log1p", "after log1p", decimals=4, bar=True),
    Column("encoder_weight", "from the encoder", decimals=4),
)
DOCUMENTS = (
    Column("document_id", "document", "text"),
    Column("occurrences", "times"),
    Column("average_logit", "average logit", decimals=4, signed=True),
    Column("weight", "weight", decimals=4, bar=True),
    Column("rank", "rank"),
)


Found = dict[str, Any]  # figures of a section, as JSON holds them


@dataclass(frozen=True, slots=True, repr=False)
class TokenReport(Shown):
    """The five sections on one term. Where no document holds it, `document_id` is None, `text` the term.

    `vocabulary`, `ranking`, `corpus` and what `logits`, `weights` and `exact_words` hold are dictionaries, as in JSON.
    """

    term: str
    state: State
    vocabulary: Found
    document_id: str | None
    text: str
    logits: list[Found]
    weights: list[Found]
    ranking: Found
    corpus: Found
    next_steps: tuple[Advice, ...]
    glossary: InGlossary | None = None  # where the run that made the model was given one that has the term
    exact_words: Sequence[Found] = ()  # of a model that has some

    @property
    def headline(self) -> str:
        """The term, its tokens, its state, and how many documents hold it."""
        tokens = " ".join(self.vocabulary["tokens"])
        share = f"in {self.corpus['holding']:,} of {self.corpus['documents']:,} documents"
        return f"{self.term!r}, {tokens}, {self.state}, {share}"

    def to_dict(self) -> dict[str, object]:
        """Everything that the tables show, as plain objects and lists."""
        content = asdict(self)
        return content if self.exact_words else {key: content[key] for key in content if key != "exact_words"}

    def rows(self) -> Sequence[Row]:
        """The term in each document that holds it, of several tokens the weakest."""
        return [
            {
                "document_id": each["document_id"],
                "occurrences": each["occurrences"],
                "average_logit": min(average for average in each["average_logits"] if average is not None),
                "weight": min(each["weights"]),
                "rank": None if None in each["ranks"] else max(rank for rank in each["ranks"] if rank),
            }
            for each in self.corpus["summaries"]
        ]

    def sections(self) -> Sequence[Section]:
        """The term and its state; then the five sections."""
        words, tone = STATES[self.state]
        if self.state == "ordinary" and self.glossary is not None:
            words = "a token of the base model, with a meaning of the glossary"
        parts = [] if self.glossary is None else list(self.glossary.parts())
        where = self.document_id or "a text of the term alone: no document holds it"
        return [
            Section("verdict", "", [Prose(f"{self.term}  {words}", tone)]),
            Section("vocabulary", "1  Vocabulary", [_vocabulary(self)]),
            Section("logits", f"2  Logits in {where}", [Prose(_beginning(self.text)), *_logits(self.logits)]),
            Section("weight", "3  Weight", [_weights(self.weights)]),
            Section("ranking", "4  Ranking", list(_ranking(self))),
            *([Section("words", "Exact words", [_exact_words(self)])] if self.exact_words else []),
            *([Section("glossary", "In the glossary", parts)] if parts else []),
            Section("next", "5  What to do next", list(_next_steps(self.next_steps))),
        ]


# -- the sections -----------------------------------------------------------------------------


def _vocabulary(report: TokenReport) -> Facts:
    section, corpus = report.vocabulary, report.corpus
    named = zip(section["tokens"], section["token_ids"], strict=True)
    pairs = [
        (
            "token" if section["single"] else "pieces",
            "  ".join(f"{token} {number}" for token, number in named),
        ),
        ("single token", _yes(section["single"])),
    ]
    if section["unspelled"]:
        pairs.append(("spelled", "no text is split into it as a word of its own"))
    if section["category"]:
        pairs.append(("category", section["category"]))
    if section["new"]:
        pairs.append(("beside" if section.get("beside") else "replaces", " ".join(section["replaced"])))
    if section["listed"] is not None:
        pairs.append(("in the terms file", _yes(section["listed"])))
    return Facts([*pairs, ("documents", f"{corpus['holding']:,} of {corpus['documents']:,} hold the term")])


def _exact_words(report: TokenReport) -> TableRows:
    """The words by which the term is matched whatever the model makes of it."""
    columns_ = (
        Column("word", "word", "token"),
        Column("idf", "idf", decimals=2),
        Column("query_weight", "weight in a query", decimals=4),
        Column("document_weight", "in the document", decimals=4),
    )
    return TableRows(Table("", columns_, report.exact_words))


def _beginning(text: str) -> str:
    """A text in one paragraph, of a long one as much as shows what it is about."""
    return shorten(text, TEXT_SHOWN, placeholder=" ...")


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _logits(logits: Sequence[Found]) -> Iterator[Part]:
    """Two rows for each token, where it stands, and the largest logit of the pieces at every position."""
    rows = [row for each in logits for row in _ranges(each)]
    yield TableRows(
        Table(
            "",
            LOGITS,
            rows,
            "the term's: those where the token stands for the term; at, on: the place of the largest",
        )
    )
    for each in logits:
        yield Prose(
            f"{each['token']} stands at {_listed([at['position'] for at in each['positions'] if at['occurrence']])}"
        )
    title = "every position" + (", the largest of the pieces" if len(logits) > 1 else "")
    yield Heat(title, list(_positions(logits)))
    yield Pictures([positions_of(each) for each in logits])


def _ranges(logits: Found) -> Iterator[Row]:
    """The range over every position, and over those where the token stands, which says what the model expects."""
    for over, range_of in (("all", logits["everywhere"]), ("the term's", logits["where_it_stands"])):
        row: dict[str, object] = {"token": logits["token"], "over": over, "verdict": ""}
        if range_of is not None:
            row |= {
                "least": range_of["least"]["logit"],
                "average": range_of["average"],
                "largest": range_of["largest"]["logit"],
            }
            row |= {"position": range_of["largest"]["position"], "at": range_of["largest"]["token"]}
        yield row if range_of is logits["everywhere"] else {**row, "verdict": logits["verdict"]}


def _listed(positions: Sequence[int]) -> str:
    """Positions in words; one that is in no text has none."""
    if not positions:
        return "no position"
    return f"position{'s' if len(positions) > 1 else ''} {', '.join(map(str, positions))}"


def _positions(logits: Sequence[Found]) -> Iterator[Warm]:
    largest = max(each["everywhere"]["largest"]["logit"] for each in logits)
    for pieces in zip(*(each["positions"] for each in logits), strict=True):
        best = max(pieces, key=lambda piece: piece["logit"])
        warmth = best["logit"] / largest if largest > 0 else 0.0
        marked = any(piece["occurrence"] for piece in pieces)
        yield Warm(best["token"], warmth, f"{best['logit']:+.1f}", marked, best["position"])


def positions_of(section: Found, title: str = "") -> Picture:
    """The logit of a token at the first positions of the text; those where it stands are marked."""
    rows: list[Row] = [
        {
            "name": f"{each['position']} {each['token']}",
            "value": round(each["logit"], 3),
            "marked": each["occurrence"],
        }
        for each in section["positions"][:POSITIONS]
    ]
    positions = ", ".join(
        f"{each['position']} {each['logit']:+.1f}" for each in section["positions"] if each["occurrence"]
    )
    description = f"Logits of {section['token']} by position; where it stands: {positions or 'nowhere'}"
    return columns(
        title or f"Logit of {section['token']} by position", rows, description=description, unit="logit"
    )


def _weights(weights: Sequence[Found]) -> TableRows:
    return TableRows(Table("", WEIGHTS, weights, "worked out here and from the encoder: they agree"))


def _ranking(report: TokenReport) -> Iterator[Part]:
    """The rank of each token of the term, the document's heaviest tokens, and every document with the term."""
    ranking, corpus = report.ranking, report.corpus
    for token, rank in zip(report.vocabulary["tokens"], ranking["ranks"], strict=True):
        if rank is None:
            yield Prose(f"{token}  no weight, so no rank", "bad")
        else:
            yield Prose(f"{token}  rank {rank:,} of {ranking['nonzero']:,} non-zero tokens")
    largest = ranking["heaviest"][0]["weight"] if ranking["heaviest"] else 1.0
    bars = [
        Bar(
            each["token"],
            f"{each['weight']:.4f}",
            each["weight"] / largest,
            HERE if each["of_term"] else "",
            each["new"] or each["of_term"],
            rank=each["rank"],
        )
        for each in (*ranking["heaviest"], *_further(report))
    ]
    yield BarList("its heaviest tokens", bars)
    if corpus["summaries"]:
        note = (
            f"fires on {corpus['others_firing']:,} of {corpus['others_examined']:,} other documents examined"
        )
        if corpus["heaviest_other"] is not None:
            note += f", heaviest {corpus['heaviest_other']} ({corpus['heaviest_other_weight']:.4f})"
        if len(report.vocabulary["tokens"]) > 1:
            note = f"of several pieces the weakest; {note}"
        yield TableRows(Table("all documents that hold the term", DOCUMENTS, report.rows(), note))


def _further(report: TokenReport) -> Iterator[Found]:
    """The term's own tokens that have weight and aren't among the heaviest, by rank."""
    shown = {ranked["token_id"] for ranked in report.ranking["heaviest"]}
    rows = zip(report.weights, report.ranking["ranks"], strict=True)
    later = {weight["token_id"]: (rank, weight) for weight, rank in rows if rank is not None}
    for token_id, (rank, weight) in sorted(later.items(), key=lambda each: each[1][0]):
        if token_id not in shown:
            yield {
                "rank": rank,
                "token_id": token_id,
                "token": weight["token"],
                "weight": weight["encoder_weight"],
                "of_term": True,
                "new": report.vocabulary["new"],
            }


def _next_steps(steps: Sequence[Advice]) -> Iterator[Part]:
    for step in steps:
        yield Prose(step.reason)
        if step.command:
            yield CommandText(step.command)
