"""Diagnostics on a terminal: the five sections on a term, and the parts of a query's scores.

Every token, term and path becomes a `Text`, so that Rich takes none of them for markup. What is shortened
here is whole in the JSON of the same result.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from diagnostics.advice import State
from diagnostics.matches import Contribution, DocumentToken, Match, QueryReport
from diagnostics.sections import Logits, RankedToken, TokenReport
from sparse_adapt.report.tables import BAD, GOOD, LOUD, QUIET, TOKEN, Column, Row, Table, bar, to_rich

NEW = "magenta"
WARM = "yellow"
PARTS_SHOWN = 10
BAR_WIDTH = 24
HERE = "<- here"  # beside what is the term, where no colour says so
EQUATION_WIDTH = 36
WIDEST = 1_000

SHELL_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|\S)+""")

STATES: dict[State, tuple[str, str]] = {
    "pieces": ("not a single token", BAD),
    "absent": ("in no document", WARM),
    "ordinary": ("a token of the base model", TOKEN),
    "negative": ("a token the model does not expect", BAD),
    "silent": ("a token without weight", BAD),
    "stray": ("a token that fires where it should not", WARM),
    "outranked": ("has weight, but others have more", WARM),
    "learnt": ("learnt", GOOD),
}


class Command:
    """A command line that can be copied whole: one too long for the terminal goes on after a backslash."""

    def __init__(self, line: str) -> None:
        self.line = line

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lines broken between the shell's words only, never inside a quoted path."""
        lines = [""]
        for word in SHELL_WORD.findall(self.line):
            if lines[-1] and len(lines[-1]) + len(word) > options.max_width - 7:
                lines.append("")
            lines[-1] += f" {word}" if lines[-1] else word
        for number, line in enumerate(lines, start=1):
            indent, end = "  " if number == 1 else "    ", " \\" if number < len(lines) else ""
            yield Text(f"{indent}{line}{end}", style=GOOD, overflow="fold")


@dataclass(frozen=True)
class Grid:
    """Cells in columns, nothing cut: too wide for the terminal, bars are left out, and then words are broken.

    `bars` is the column of bars; `least` are the widths that columns have where there is room.
    """

    rows: Sequence[Sequence[str | Text]]
    bars: int | None = None
    least: Sequence[int] = ()
    between: int = 2
    numbers: bool = False  # in the first column

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """With bars where these fit."""
        whole = self._grid(bars=True)
        fits = Measurement.get(console, options.update(width=WIDEST), whole).maximum <= options.max_width
        yield whole if fits else self._grid(bars=False)

    def _grid(self, *, bars: bool) -> RichTable:
        grid = RichTable.grid(padding=(0, self.between))
        columns = [
            place for place in range(max(map(len, self.rows), default=0)) if bars or place != self.bars
        ]
        for place in columns:
            least = self.least[place] if bars and place < len(self.least) else None
            number = self.numbers and place == 0
            grid.add_column(
                overflow="fold", min_width=least, justify="right" if number else "left", no_wrap=number
            )
        for row in self.rows:
            grid.add_row(*(row[place] for place in columns if place < len(row)))
        return grid


# -- one term ---------------------------------------------------------------------------------


def render_token_report(report: TokenReport) -> RenderableType:
    """The five sections, under the term and its state."""
    words, colour = STATES[report.state]
    title = Text.assemble((report.term, LOUD), "  ", (words, colour))
    where = report.document_id or "a text of the term alone: no document holds it"
    sections = [
        ("1  Vocabulary", _vocabulary(report)),
        (f"2  Logits in {where}", _logits(report)),
        ("3  Weight", _weights(report)),
        ("4  Ranking", _ranking(report)),
        ("5  What to do next", _next_steps(report)),
    ]
    return Group(title, *(part for heading, body in sections for part in _section(heading, body)))


def _section(heading: str, body: RenderableType) -> tuple[RenderableType, ...]:
    rule = Rule(Text(heading, style=LOUD), align="left", style=QUIET)
    return Text(""), rule, Padding(body, (0, 0, 0, 3), expand=False)


def _vocabulary(report: TokenReport) -> RenderableType:
    section, corpus = report.vocabulary, report.corpus
    kind = "token" if section.single else "pieces"
    rows = [(kind, _with_ids(section.tokens, section.token_ids)), ("single token", _yes(section.single))]
    if section.unspelled:
        rows.append(("spelled", Text("no text is split into it as a word of its own")))
    if section.new:
        rows.append(("category", Text(section.category)))
        rows.append(("replaces", Text(" ".join(section.replaced), style=TOKEN)))
    if section.listed is not None:
        rows.append(("in the terms file", _yes(section.listed)))
    rows.append(("documents", Text(f"{corpus.holding:,} of {corpus.documents:,} hold the term")))
    return Grid([(Text(name, style=QUIET), value) for name, value in rows])


def _logits(report: TokenReport) -> RenderableType:
    columns = (
        Column("token", "token", "token"),
        Column("minimum", "least", decimals=2, signed=True),
        Column("average", "average", decimals=2, signed=True),
        Column("maximum", "largest", decimals=2, signed=True),
        Column("position", "at position"),
        Column("at", "on", "token"),
        Column("verdict", "verdict", "text"),
    )
    rows: list[Row] = [
        {
            "token": section.token,
            "minimum": section.minimum_where_it_occurs,
            "average": section.average_where_it_occurs,
            "maximum": section.maximum.logit,
            "position": section.maximum.position,
            "at": section.maximum.token,
            "verdict": section.verdict,
        }
        for section in report.logits
    ]
    note = "least and average: over the positions where the token stands for the term"
    places = [f"{section.token} stands at {_listed(section.occurs_at)}" for section in report.logits]
    caption = "every position" + (", the largest of the pieces" if len(report.logits) > 1 else "")
    grid = Columns(_positions(report.logits), padding=(0, 2), equal=True)
    table = to_rich(Table("", columns, rows, note))
    return Group(table, Text("\n".join(places)), Text(f"\n{caption}", style=QUIET), grid)


def _listed(positions: Sequence[int]) -> str:
    """Positions in words; one that is in no text has none."""
    if not positions:
        return "no position"
    return f"position{'s' if len(positions) > 1 else ''} {', '.join(map(str, positions))}"


def _positions(sections: Sequence[Logits]) -> Iterator[Text]:
    """One cell a position: its number, what stands there, and the largest logit it gives to a token of the term."""
    for pieces in zip(*(section.positions for section in sections), strict=True):
        best = max(pieces, key=lambda piece: piece.logit)
        heat, here = _heat(best.logit), any(piece.occurrence for piece in pieces)
        token = (best.token, f"{heat} bold underline" if here else heat)
        mark = f" {HERE}" if here else ""
        yield Text.assemble((f"{best.position} ", QUIET), token, (f" {best.logit:+.1f}", heat), (mark, LOUD))


def _heat(logit: float) -> str:
    if logit <= 0:
        return QUIET
    return WARM if logit < 1 else GOOD


def _weights(report: TokenReport) -> RenderableType:
    columns = (
        Column("token", "token", "token"),
        Column("maximum_logit", "largest logit", decimals=4),
        Column("after_relu", "after relu", decimals=4),
        Column("after_log1p", "after log1p", decimals=4, bar=True),
        Column("encoder_weight", "from the encoder", decimals=4),
    )
    rows: list[Row] = [
        {
            "token": weight.token,
            "maximum_logit": weight.maximum_logit,
            "after_relu": weight.after_relu,
            "after_log1p": weight.after_log1p,
            "encoder_weight": weight.encoder_weight,
        }
        for weight in report.weights
    ]
    return to_rich(Table("", columns, rows, "worked out here and from the encoder: they agree"))


def _ranking(report: TokenReport) -> RenderableType:
    ranking = report.ranking
    parts: list[RenderableType] = []
    for token, rank in zip(report.vocabulary.tokens, ranking.ranks, strict=True):
        place = (
            "no weight, so no rank"
            if rank is None
            else f"rank {rank:,} of {ranking.nonzero:,} non-zero tokens"
        )
        parts.append(Text.assemble((token, TOKEN), "  ", (place, BAD if rank is None else "")))
    largest = ranking.heaviest[0].weight if ranking.heaviest else 0.0
    heaviest = [_ranked(ranked, largest) for ranked in (*ranking.heaviest, *_further(report))]
    parts += [Text("\nits heaviest tokens", style=QUIET), Grid(heaviest, bars=3)]
    if report.corpus.summaries:
        parts += [
            Text("\nall documents that hold the term", style=QUIET),
            to_rich(tabulate_documents(report)),
        ]
    return Group(*parts)


def _ranked(ranked: RankedToken, largest: float) -> Sequence[str | Text]:
    """The row of one token of the document, the term's own with a mark."""
    return (
        Text(f"{ranked.rank:2}", style=QUIET),
        Text(ranked.token, style=_token_style(ranked)),
        f"{ranked.weight:.3f}",
        bar(ranked.weight, largest, BAR_WIDTH, _token_style(ranked)),
        Text(HERE if ranked.of_term else "", style=LOUD),
    )


def _further(report: TokenReport) -> Iterator[RankedToken]:
    """The term's own tokens that have weight and aren't among the heaviest, by rank."""
    shown = {ranked.token_id for ranked in report.ranking.heaviest}
    found = zip(report.weights, report.ranking.ranks, strict=True)
    later = {weight.token_id: (rank, weight) for weight, rank in found if rank is not None}
    for token_id, (rank, weight) in sorted(later.items(), key=lambda each: each[1][0]):
        if token_id not in shown:
            yield RankedToken(
                rank, token_id, weight.token, weight.encoder_weight, True, report.vocabulary.new
            )


def _token_style(ranked: RankedToken) -> str:
    if ranked.of_term:
        return f"bold {NEW}"
    return NEW if ranked.new else TOKEN


def tabulate_documents(report: TokenReport) -> Table:
    """The term in every document that holds it, the worst of its tokens in each, and a line on the others."""
    rows: list[Row] = []
    for summary in report.corpus.summaries:
        averages = [average for average in summary.average_logits if average is not None]
        rows.append(
            {
                "document_id": summary.document_id,
                "occurrences": summary.occurrences,
                "average_logit": min(averages),
                "weight": min(summary.weights),
                "rank": None if None in summary.ranks else max(rank for rank in summary.ranks if rank),
            }
        )
    columns = (
        Column("document_id", "document", "text"),
        Column("occurrences", "times"),
        Column("average_logit", "average logit", decimals=2, signed=True),
        Column("weight", "weight", decimals=3, bar=True),
        Column("rank", "rank"),
    )
    corpus = report.corpus
    note = f"fires on {corpus.others_firing:,} of {corpus.others_examined:,} other documents examined"
    if corpus.heaviest_other is not None:
        note += f", heaviest {corpus.heaviest_other} ({corpus.heaviest_other_weight:.3f})"
    if len(report.vocabulary.tokens) > 1:
        note = f"of several pieces the weakest; {note}"
    return Table("", columns, rows, note)


def _next_steps(report: TokenReport) -> RenderableType:
    lines: list[RenderableType] = []
    for step in report.next_steps:
        lines.append(Text(step.reason))
        if step.command:
            lines.append(Command(step.command))
    return Group(*lines)


def _with_ids(tokens: Sequence[str], token_ids: Sequence[int]) -> Text:
    text = Text()
    for token, token_id in zip(tokens, token_ids, strict=True):
        text.append(token, style=TOKEN).append(f" {token_id}  ", style=QUIET)
    return text


def _yes(answer: bool) -> Text:
    return Text("yes", style=GOOD) if answer else Text("no", style=BAD)


# -- one query --------------------------------------------------------------------------------


def render_query_report(report: QueryReport) -> RenderableType:
    """The query's tokens, then each document with the contributions that sum to its score."""
    parts: list[RenderableType] = [Text(report.query, style=LOUD)]
    parts += _section(f"Query tokens ({_sparsity(report)})", _query_tokens(report))
    largest = max((match.contributions[0].contribution for match in report.matches), default=0.0)
    for match in report.matches:
        heading = f"{match.rank}  {match.document_id}  {match.title}".rstrip()
        parts += _section(heading, _match(match, largest))
    if not report.matches:
        parts += [Text(""), Text("No document shares a token with this query.", style=WARM)]
    return Group(*parts)


def _sparsity(report: QueryReport) -> str:
    """How many tokens have weight, the share of the vocabulary that has none, and the heaviest by name."""
    said = f"{report.nonzero:,} with weight, sparsity {report.sparsity:.2f} %"
    heaviest = report.heaviest
    return said if heaviest is None else f"{said}, largest {heaviest.token} {heaviest.weight:.3f}"


def _query_tokens(report: QueryReport) -> RenderableType:
    largest = max((token.weight for token in report.tokens), default=0.0)
    rows = []
    for token in report.tokens:
        style = NEW if token.new else TOKEN
        origin = _origin(token.expansion, token.new)
        weight = bar(token.weight, largest, BAR_WIDTH, style)
        rows.append(
            (Text(token.token, style=style), f"{token.weight:.3f}", weight, Text(origin, style=QUIET))
        )
    grid = Grid(rows, bars=2)
    if not report.silent:
        return grid
    return Group(grid, Text.assemble(("without weight: ", QUIET), (" ".join(report.silent), QUIET)))


def _match(match: Match, largest: float) -> RenderableType:
    """How the document begins, its heaviest tokens, and what its score is the sum of."""
    parts: list[RenderableType] = [Text(match.snippet, style=QUIET)] if match.snippet else []
    if match.heaviest:
        parts += [_heaviest(match.heaviest), Text("")]
    return Group(*parts, _sum(match, largest))


def _heaviest(tokens: Sequence[DocumentToken]) -> Text:
    """A document's heaviest tokens on a line; those that the query shares have a star."""
    line = Text("heaviest tokens (* shared): ", style=QUIET)
    for number, token in enumerate(tokens):
        line.append(", " if number else "").append(token.token, style=NEW if token.new else TOKEN)
        line.append(f"{'*' if token.shared else ''} {token.weight:.2f}")
    return line


def _sum(match: Match, largest: float) -> RenderableType:
    """The shared tokens whose contributions make the score."""
    shown, rest = match.contributions[:PARTS_SHOWN], match.contributions[PARTS_SHOWN:]
    rows: list[Sequence[str | Text]] = []
    for part in shown:
        style = NEW if part.new else TOKEN
        weight = bar(part.contribution, largest, BAR_WIDTH, style)
        where = _origin(part.expansion, part.new)
        if match.windows is not None and match.windows > 1:
            where += f"{', ' if where else ''}window {part.window} of {match.windows}"
        origin = Text(where, style=QUIET)
        rows.append((f"{part.contribution:.3f} =", _equation(part, style), weight, origin))
    if rest:
        more = sum(part.contribution for part in rest)
        rows.append((f"{more:.3f} =", Text(f"{len(rest):,} more", style=QUIET)))
    rows.append((Text(f"{match.score:.3f} =", style=LOUD), Text("score", style=LOUD)))
    return Grid(rows, bars=2, least=(8, EQUATION_WIDTH, BAR_WIDTH), between=1, numbers=True)


def _equation(part: Contribution, style: str) -> Text:
    weights = f" ({part.query_weight:.3f} x {part.document_weight:.3f})"
    return Text.assemble("'", (part.token, style), "'", weights)


def _origin(expansion: bool, new: bool) -> str:
    return ", ".join(word for word, holds in (("new term", new), ("expansion", expansion)) if holds)
