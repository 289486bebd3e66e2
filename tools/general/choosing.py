"""Which questions measure what a model knows, and over which passages."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from finding import Finder, Question
from questions import Passage, drawn, spans

from sparse_adapt.synthetic.background import background_pairs

ASKED = {"forum": 1_400, "wiki": 750, "search": 420}  # questions of the measure, by kind, at most
HARDER = {"wiki": 0.6, "search": 0.6}  # share of a kind's questions whose passage BM25 doesn't put first
POOL = 8_400  # passages among which they are asked
STANDS_ALONE = 10  # place that the dense model gives to the passage of a question of the measure, at most
MEASURES_OF_FOUR = 3  # of four articles, so many are the measure's


def measure(finder: Finder) -> list[Passage]:
    """The measure's passages with the questions that are asked of them."""
    chosen = [question for kind, count in ASKED.items() for question in _asked(finder, kind, count)]
    rows = dict.fromkeys(question.row for question in chosen)
    for row in _beside(finder, chosen):
        if len(rows) == POOL:
            break
        rows[row] = None
    texts: dict[int, list[str]] = {row: [] for row in rows}
    for question in chosen:
        texts[question.row].append(question.text)
    return [
        replace(finder.passages[row], title="", questions=tuple(texts[row])) for row in sorted(rows)
    ]  # a title would name what is asked


def _asked(finder: Finder, kind: str, count: int) -> list[Question]:
    """So many questions of a kind; fewer where there aren't enough that words alone don't answer."""
    fit = _of_kind(finder, kind)
    if kind not in HARDER:
        return fit[:count]
    suffice = finder.words_suffice(fit)
    hard, easy = (
        [each for each, suffices in zip(fit, suffice, strict=True) if suffices is which]
        for which in (False, True)
    )
    count = min(count, int(len(hard) / HARDER[kind]))
    many = round(HARDER[kind] * count)
    return hard[:many] + easy[: count - many]


def _of_kind(finder: Finder, kind: str) -> list[Question]:
    """The questions of a kind that stand alone, on the measure's side, in an order that is drawn."""
    fit = [
        question
        for question in finder.questions
        if finder.passages[question.row].kind == kind
        and _measures(finder.passages[question.row])
        and question.place <= STANDS_ALONE
        and not question.asked_elsewhere
    ]
    return sorted(fit, key=lambda question: drawn(question.key))


def _beside(finder: Finder, questions: Sequence[Question]) -> Iterator[int]:
    """Passages that BM25 and the dense model find for the questions, those of the first places first."""
    for rows in finder.found(questions).T:
        yield from (int(row) for row in rows if row >= 0 and _measures(finder.passages[row]))


def _measures(passage: Passage) -> bool:
    """Whether a passage may stand in the measure: its article does, and no background text says the same."""
    article = not passage.title or drawn(passage.title.lower(), 4) < MEASURES_OF_FOUR
    return article and not spans(passage.text) & _background()


@cache
def _background() -> frozenset[str]:
    """Ten words in a row of the passages that anchor a model while it learns."""
    return frozenset().union(*(spans(passage.text) for passage, _ in background_pairs()))
