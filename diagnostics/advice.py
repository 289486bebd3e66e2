"""What to do about a term, from what was measured: a state, a sentence on it, and commands to run next."""

import json
import shlex
from dataclasses import dataclass
from typing import Literal

State = Literal["pieces", "absent", "ordinary", "negative", "silent", "stray", "outranked", "learnt"]

HEAVY = 10  # a learnt term is among so many of a document's heaviest tokens
TERMS = "terms.json"
STRAY = 0.2  # firing on more of the documents that don't say it makes a term noise


@dataclass(frozen=True, slots=True)
class Places:
    """What the commands name, placeholders where nothing is known. `terms` is a file that holds the term."""

    model: str = "MODEL"
    corpus: str = "CORPUS"
    terms: str = ""
    dictionary: str = "dictionary.jsonl"
    candidates: str = "candidates.jsonl"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: why, and the command for it, if there is one."""

    reason: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class TermFigures:
    """What the verdict on a term rests on: the weakest of its tokens where there are several.

    `average_logit` is the mean over the documents that hold it, `rank` the middle one (None for weight 0).
    """

    term: str
    single: bool
    new: bool
    occurs: bool
    average_logit: float | None
    rank: int | None
    stray_share: float


def judge(evidence: TermFigures) -> State:
    """The first thing that stands between a term and its job, in the order in which they are mended."""
    if not evidence.single:
        return "pieces"
    if not evidence.occurs:
        return "absent"
    if not evidence.new:
        return "ordinary"
    if evidence.average_logit is not None and evidence.average_logit < 0:
        return "negative"
    if evidence.rank is None:
        return "silent"
    if evidence.stray_share > STRAY:
        return "stray"
    return "outranked" if evidence.rank > HEAVY else "learnt"


def logit_verdict(average_logit: float | None) -> str:
    """What an average logit where the term occurs means for its weight."""
    if average_logit is None:
        return "not in this text"
    if average_logit < 0:
        return "negative: not expected even there"
    return "positive: expected there"


def advise(state: State, evidence: TermFigures, places: Places) -> tuple[Step, ...]:
    """Section 5: the shortest way from a term's state to the next better one, as commands."""
    where = _Commands(places)
    match state:
        case "pieces":
            steps = (
                Step("Give it a token, an input row and an output row of its own", where.extend()),
                Step("Then teach the new rows on the corpus", where.warmup("extended")),
            )
            if places.terms:
                return steps
            return (
                Step("The term is no single token: name it in a file", where.write_term(evidence.term)),
                *steps,
            )
        case "absent":
            return (
                Step(
                    "No document holds the term: a model learns it from texts that do, or from a definition"
                ),
                Step("Learn it from its definition", where.dictionary(places.model)),
            )
        case "ordinary":
            return (
                Step("The token came with the model. See what it matches", where.explain(evidence.term)),
                Step("Judged examples of the domain shift its weight", where.distill(places.model)),
            )
        case "negative" | "silent":
            return (
                Step("The token has no weight to match on: teach its rows", where.warmup(places.model)),
                Step("Add what the term means", where.dictionary("warm")),
                Step("Then let queries reach it", where.distill("defined")),
            )
        case "stray":
            share = f"{evidence.stray_share:.0%}"
            return (
                Step(f"The token fires on {share} of the documents that don't say the term"),
                Step("Judged examples teach it where it belongs", where.distill(places.model)),
            )
        case "outranked":
            return (
                Step(f"The token has weight, but ranks about {evidence.rank} in its documents"),
                Step("Raise it with queries for it", where.distill(places.model)),
                Step("See what it matches by now", where.explain(evidence.term)),
            )
        case "learnt":
            return (
                Step("The term is learnt. See what it matches", where.explain(evidence.term)),
                Step("Make the model's vectors ready for an index", where.export()),
            )


@dataclass(frozen=True, slots=True)
class _Commands:
    """Command lines with their paths quoted."""

    places: Places

    def write_term(self, term: str) -> str:
        content = json.dumps({"terms": [term]}, ensure_ascii=False)
        return f"echo {shlex.quote(content)} > {TERMS}"

    def extend(self) -> str:
        terms = self.places.terms or TERMS
        return _line("extend", "--model", self.places.model, "--terms", terms, "-o", "extended")

    def warmup(self, model: str) -> str:
        return _line("warmup", "--model", model, "--corpus", self.places.corpus, "-o", "warm")

    def dictionary(self, model: str) -> str:
        return _line("dictionary", "--model", model, "--glossary", self.places.dictionary, "-o", "defined")

    def distill(self, model: str) -> str:
        files = ("--candidates", self.places.candidates, "--corpus", self.places.corpus)
        return _line("distill", "--model", model, *files, "-o", "adapted")

    def explain(self, query: str) -> str:
        return _line("explain", query, "--model", self.places.model, "--corpus", self.places.corpus)

    def export(self) -> str:
        files = ("--model", self.places.model, "--corpus", self.places.corpus)
        return _line("export", "anserini", *files, "-o", "vectors")


def _line(*words: str) -> str:
    return shlex.join(("sparse-adapt", *words))
