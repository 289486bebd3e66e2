"""What to do about a term, from what was measured: a state, a sentence on it, and commands to run next."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sparse_adapt.files.place import free

State = Literal[
    "pieces", "absent", "ordinary", "negative", "inactive", "false_activation", "outranked", "learnt"
]

HEAVY = 10  # a learnt term is among so many of a document's heaviest tokens
TERMS = "terms.json"
HELP = "sparse-adapt dictionary --help"
FALSE_ACTIVATIONS = 0.2  # firing on more of the documents that don't say it makes a term noise


@dataclass(frozen=True, slots=True)
class Places:
    """Where the things lie that commands name; empty where there is nothing, and then no command names it.

    `terms` is a file that holds the term, `dictionary` one of definitions, `candidates` one of scored documents.
    """

    model: str = ""
    corpus: str = ""
    terms: str = ""
    dictionary: str = ""
    candidates: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
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
    false_activation_share: float


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
        return "inactive"
    if evidence.false_activation_share > FALSE_ACTIVATIONS:
        return "false_activation"
    return "outranked" if evidence.rank > HEAVY else "learnt"


def logit_verdict(average_logit: float | None) -> str:
    """What an average logit where the term occurs means for its weight."""
    if average_logit is None:
        return "not in this text"
    if average_logit < 0:
        return "negative: not expected even there"
    return "positive: expected there"


def advise(state: State, evidence: TermFigures, places: Places) -> tuple[Advice, ...]:
    """Section 5: the shortest way from a term's state to the next better one, as commands that can be run in turn."""
    where = _Commands(places)
    match state:
        case "pieces":
            return (
                *where.named(evidence.term),
                Advice("Give it a token, an input row and an output row of its own", where.extend()),
                Advice("Then teach the new rows on the corpus", where.warmup(where.out("extended"))),
            )
        case "absent":
            return (
                Advice(
                    "No document holds the term: a model learns it from texts that do, or from a definition"
                ),
                where.define(places.model, "Learn it from its definition"),
            )
        case "ordinary":
            return (
                Advice("The token came with the model. See what it matches", where.explain(evidence.term)),
                where.judge(places.model, "Judged examples of the domain shift its weight"),
            )
        case "negative" | "inactive":
            return (
                Advice("The token has no weight to match on: teach its rows", where.warmup(places.model)),
                where.define(where.out("warm"), "Add what the term means"),
                where.judge(
                    where.out("defined" if places.dictionary else "warm"), "Then let queries reach it"
                ),
            )
        case "false_activation":
            share = f"{evidence.false_activation_share:.0%}"
            return (
                Advice(f"The token fires on {share} of the documents that don't say the term"),
                where.judge(places.model, "Judged examples teach it where it belongs"),
            )
        case "outranked":
            return (
                Advice(f"The token has weight, but ranks about {evidence.rank} in its documents"),
                where.judge(places.model, "Raise it with queries for it"),
                Advice("See what it matches by now", where.explain(evidence.term)),
            )
        case "learnt":
            return (
                Advice("The term is learnt. See what it matches", where.explain(evidence.term)),
                Advice("Make the model's vectors ready for an index", where.export()),
            )


@dataclass(frozen=True, slots=True)
class _Commands:
    """Command lines with their paths quoted; an empty one where a place that it needs isn't known."""

    places: Places

    @staticmethod
    def out(name: str) -> str:
        """Where a command writes, and the one after it reads."""
        return free(name)

    def named(self, term: str) -> tuple[Advice, ...]:
        """How to name the term in a file, unless one holds it."""
        if self.places.terms:
            return ()
        content = json.dumps({"terms": [term]}, ensure_ascii=False)
        command = f"echo {shlex.quote(content)} > {shlex.quote(free(TERMS))}"
        return (Advice("The term is no single token: name it in a file", command),)

    def define(self, model: str, why: str) -> Advice:
        """How to teach definitions, or that there are none."""
        if self.places.dictionary:
            options = {"model": model, "glossary": self.places.dictionary}
            return Advice(why, self._line("dictionary", options, "defined"))
        return Advice(
            f"{why}. It needs a glossary, such as a CSV file with the columns term and definition", HELP
        )

    def judge(self, model: str, why: str) -> Advice:
        """How to teach by scored documents, or to have queries made up and scored."""
        options = {"model": model, "corpus": self.places.corpus}
        if self.places.candidates:
            return Advice(
                why, self._line("distill", {**options, "candidates": self.places.candidates}, "taught")
            )
        if not all(options.values()):
            return Advice(why)
        line = _line("adapt", self.places.corpus, "--model", model, "-o", self.out("adapted"))
        return Advice(f"{why}; adapt makes up queries and has them judged", line)

    def extend(self) -> str:
        terms = self.places.terms or free(TERMS)
        return self._line("extend", {"model": self.places.model, "terms": terms}, "extended")

    def warmup(self, model: str) -> str:
        return self._line("warmup", {"model": model, "corpus": self.places.corpus}, "warm")

    def explain(self, query: str) -> str:
        return self._line("explain", {"model": self.places.model, "corpus": self.places.corpus}, "", query)

    def export(self) -> str:
        options = {"model": self.places.model, "corpus": self.places.corpus}
        return self._line("export", options, "vectors", "anserini")

    def _line(self, command: str, values: Mapping[str, str], out: str, *first: str) -> str:
        if not all(values.values()):
            return ""
        options = [word for key, value in values.items() for word in (f"--{key}", value)]
        return _line(command, *first, *options, *(["-o", self.out(out)] if out else []))


def _line(*words: str) -> str:
    return shlex.join(("sparse-adapt", *words))
