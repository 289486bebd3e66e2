"""Diagnostics as sections of a page: the five on a term, and the parts of a query's scores, each with its pictures."""

from collections.abc import Iterator
from dataclasses import replace

from diagnostics.matches import Contribution, Match, QueryReport, QueryToken
from diagnostics.report import STATES, tabulate_documents
from diagnostics.sections import Logits, TokenReport
from sparse_adapt.report.html.parts import (
    Bar,
    Bars,
    Command,
    Facts,
    Found,
    Heat,
    Part,
    Picture,
    Pictures,
    Prose,
    Ranking,
    Rankings,
    Rows,
    Section,
    Tone,
    Warm,
)
from sparse_adapt.report.html.pictures import columns
from sparse_adapt.report.tables import Column, Row, Table

POSITIONS = 64  # of a document, in the picture; all of them stand in the text below it
SHARED = 8  # tokens of a match
TONES: dict[str, Tone] = {"green": "good", "red": "bad"}


# -- one term -------------------------------------------------------------------------------------


def term_sections(report: TokenReport) -> list[Section]:
    """The verdict and what to do next; then vocabulary, logits, weight and ranking."""
    words, colour = STATES[report.state]
    where = report.document_id or "a text of the term alone, as no document says it"
    of_logits = (
        f"How much each position of {where} expects the token: the logit. The largest one makes the weight."
    )
    return [
        Section("verdict", "Verdict", [Prose(f"{report.term}: {words}.", TONES.get(colour, ""))]),
        Section("next", "What to do next", list(_next(report))),
        Section("vocabulary", "Vocabulary", [_vocabulary(report)]),
        Section("logits", "Logits", list(_logits(report)), of_logits),
        Section("weight", "Weight", [Rows(_weights(report))]),
        Section("ranking", "Ranking", list(_ranking(report))),
    ]


def _vocabulary(report: TokenReport) -> Facts:
    section, corpus = report.vocabulary, report.corpus
    pairs = [
        ("token" if section.single else "pieces", " ".join(section.tokens)),
        ("single token", "yes" if section.single else "no"),
        ("documents", f"{corpus.holding:,} of {corpus.documents:,} hold the term"),
    ]
    if section.new:
        pairs += [("category", section.category or "none"), ("pieces before", " ".join(section.replaced))]
    return Facts(pairs)


def _logits(report: TokenReport) -> Iterator[Part]:
    yield Pictures([positions_of(section) for section in report.logits])
    for section in report.logits:
        largest = max(section.maximum.logit, 0.0)
        tokens = [
            Warm(
                each.token,
                each.logit / largest if largest > 0 else 0.0,
                f"{each.logit:+.1f}" if each.logit > 0 else "",
                each.occurrence,
            )
            for each in section.positions
        ]
        note = f"The largest logit is {section.maximum.logit:+.2f}, at {section.maximum.token}. "
        stands = section.average_where_it_occurs is not None
        note += (
            f"The average where the token stands is {section.verdict}."
            if stands
            else "The token isn't in this text."
        )
        yield Heat(f"Logit of {section.token}", tokens, note)


def positions_of(section: Logits, title: str = "") -> Picture:
    """The logit of a token at the first positions of the text; those where it stands are marked."""
    rows: list[Row] = [
        {"name": f"{each.position} {each.token}", "value": round(each.logit, 3), "marked": each.occurrence}
        for each in section.positions[:POSITIONS]
    ]
    said = ", ".join(f"{each.position} {each.logit:+.1f}" for each in section.positions if each.occurrence)
    told = f"Logits of {section.token} by position; where it stands: {said or 'nowhere'}"
    return columns(title or f"Logit of {section.token} by position", rows, told=told, unit="logit")


def _weights(report: TokenReport) -> Table:
    names = (
        ("token", "token"),
        ("maximum_logit", "largest logit"),
        ("after_relu", "after relu"),
        ("after_log1p", "after log1p"),
        ("encoder_weight", "from the encoder"),
    )
    rows: list[Row] = [{key: getattr(weight, key) for key, _ in names} for weight in report.weights]
    heads = tuple(
        Column(key, name, "token" if key == "token" else "number", decimals=4) for key, name in names
    )
    return Table("From the largest logit to the weight", heads, rows)


def _ranking(report: TokenReport) -> Iterator[Part]:
    ranking = report.ranking
    largest = ranking.heaviest[0].weight if ranking.heaviest else 1.0
    bars = [
        Bar(
            each.token,
            f"{each.weight:.2f}",
            each.weight / largest,
            "the term" if each.of_term else "",
            each.new,
        )
        for each in ranking.heaviest
    ]
    places = ", ".join("no rank" if rank is None else f"rank {rank:,}" for rank in ranking.ranks)
    yield Bars("Heaviest tokens of the document", bars, f"The term: {places} of {ranking.nonzero:,}.")
    if report.corpus.summaries:
        table = tabulate_documents(report)
        yield Rows(Table("All documents that hold the term", table.columns, table.rows, table.note))


def _next(report: TokenReport) -> Iterator[Part]:
    for step in report.next_steps:
        yield Prose(step.reason)
        if step.command:
            yield Command(step.command)


# -- one query ------------------------------------------------------------------------------------


def query_sections(report: QueryReport) -> list[Section]:
    """The query's tokens, then each document with the tokens that make its score."""
    largest = max((token.weight for token in report.tokens), default=1.0)
    bars = [
        Bar(
            token.token,
            f"{token.weight:.2f}",
            token.weight / largest,
            _note(token),
            token.new,
        )
        for token in report.tokens
    ]
    silent = f"Words without weight: {', '.join(report.silent)}." if report.silent else ""
    tokens = Bars("", bars, f"{report.nonzero:,} tokens have weight. {silent}".strip())
    found = [replace(found_of(match), open=place == 0) for place, match in enumerate(report.matches)]
    shared = "Best first; each with the tokens that it shares with the query: score = query weight x document weight."
    return [
        Section("documents", "What it finds", [Rankings([Ranking("", found)])], shared),
        Section("tokens", "What the query weighs", [tokens], "The new terms of the model stand out."),
    ]


def _note(token: QueryToken | Contribution) -> str:
    """What a token is besides a word of the query, in a word."""
    return "new term" if token.new else "expansion" if token.expansion else ""


def found_of(match: Match) -> Found:
    """A found document with the tokens that it shares with the query, largest contribution first."""
    largest = match.contributions[0].contribution if match.contributions else 1.0
    bars = [
        Bar(
            part.token,
            f"{part.contribution:.2f} = {part.query_weight:.2f} x {part.document_weight:.2f}",
            part.contribution / largest,
            _note(part),
            part.new,
        )
        for part in match.contributions[:SHARED]
    ]
    more = match.contributions[SHARED:]
    count = "1 more token gives" if len(more) == 1 else f"{len(more):,} more tokens give"
    rest = f"{count} {sum(part.contribution for part in more):.2f}" if more else ""
    return Found(match.document_id, match.title or match.snippet, f"{match.score:.2f}", None, bars, "", rest)
