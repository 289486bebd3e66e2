"""Every pattern of the package takes a time that the length of a text says, whatever the text is made of."""

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator

import pytest

import sparse_adapt

AT_A_START = (  # are never looked for within a text
    "plugins.files.front:FIELD",
    "plugins.files.front:OF_TOML",
    "collection.lines:STRUCTURED",
    "collection.opening:ADDRESS",
    "collection.texts:NO_PARTS",
    "collection.trec:ENDS",
    "files.writing:ADDRESS",
    "files.writing:TEMPORARY",
    "plugins.research.contradicting.masked:MARKUP",
)
UNITS = (
    "a",
    "A",
    " ",
    "\n",
    "\t",
    "a.",
    "a-",
    "1.",
    "a@",
    "&a",
    "<",
    "<a ",
    "(",
    "[a](",
    '"',
    "`",
    "**",
    "a:",
    "a b ",
)
UNITS += ("a\n", "Ab ", "www.", "a is a ", "an a, ", "e.g. ", "\u306e", "a://", '="', "{")
LENGTH, SECONDS = 20_000, 0.6  # a pattern that reads on from each place takes 1.5 and more


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Each pattern of a module, also those in tuples."""
    seen = set[re.Pattern[str]]()
    for info in pkgutil.walk_packages(sparse_adapt.__path__, "sparse_adapt."):
        try:
            module = importlib.import_module(info.name)
        except ImportError:  # of an extra
            continue
        for name, value in vars(module).items():
            for each in flat(value):
                if isinstance(each, re.Pattern) and isinstance(each.pattern, str) and each not in seen:
                    seen.add(each)
                    yield f"{info.name.removeprefix('sparse_adapt.')}:{name}", each


def flat(value: object) -> Iterator[object]:
    if isinstance(value, tuple | list):
        for each in value:
            yield from flat(each)
    else:
        yield value


def seconds(pattern: re.Pattern[str], text: str, *, within: bool) -> float:
    started = time.process_time()
    pattern.match(text)
    if within:
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - started


def test_each_pattern_is_linear():
    slow = []
    for name, pattern in patterns():
        for unit in UNITS:
            for end in ("\x01", "a"):  # what a pattern of signs at the end of a text stumbles over
                half, whole = ("\x01" + unit * (n // len(unit)) + end for n in (LENGTH // 2, LENGTH))
                tries = (seconds(pattern, whole, within=name not in AT_A_START) for _ in range(3))
                if all(each > SECONDS for each in tries) and grows(pattern, half, whole):
                    slow.append((name, unit, end))
    assert not slow


def grows(pattern: re.Pattern[str], half: str, whole: str) -> bool:
    """Whether twice the text takes three times as long, which a slow processor alone doesn't explain."""
    times = (min(seconds(pattern, text, within=True) for _ in range(3)) for text in (half, whole))
    return 3 * next(times) < next(times)


def test_a_pattern_that_reads_on_from_each_place_grows():
    pattern = re.compile(r"a+b")
    assert grows(pattern, "a" * 4_000, "a" * 8_000)
    assert not grows(re.compile(r"[ab]"), "a" * 400_000, "a" * 800_000)


@pytest.mark.plugins("llm")
@pytest.mark.parametrize(
    "text",
    ["x" * 200_000, "x-" * 100_000, "x." * 100_000, "\n" * 200_000, "```" + " " * 200_000, "a@" * 100_000],
)
def test_an_answer_of_any_make_is_read_at_once(text):
    from sparse_adapt.plugins.llm.answers import Refused, check_text, parsed
    from sparse_adapt.plugins.llm.written_queries import Queries

    started = time.process_time()
    for read in (lambda: check_text(text, "an example"), lambda: parsed(text, Queries)):
        try:
            read()
        except Refused:
            continue
    assert time.process_time() - started < 1
