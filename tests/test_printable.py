"""Control signs are spelt out, whatever they stand in; nothing else changes."""

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from sparse_adapt.report.printable import printable, printable_json, printable_line

TURNING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def steers(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") or sign in TURNING


@given(st.text(st.characters(codec=None)))
def test_no_sign_that_steers_is_left(text):
    assert not any(steers(sign) for sign in printable_line(text))
    assert not any(steers(sign) for sign in printable(text) if sign not in "\t\n")
    printable(text).encode()


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters=TURNING)))
def test_a_text_without_such_signs_is_as_it_was(text):
    assert printable(text) == printable_line(text) == text


@given(st.text())
def test_json_means_the_same(text):
    assert json.loads(printable_json(json.dumps([text], ensure_ascii=False))) == [text]


def test_signs_are_spelt_as_python_spells_them():
    assert printable("a\x1b[2Jb\x9bc\u202ed\te\n") == "a\\x1b[2Jb\\x9bc\\u202ed\te\n"
    assert printable_line("a\tb\nc\ud800") == "a\\tb\\nc\\ud800"
    assert printable_json('"\x9b\u202e"') == '"\\u009b\\u202e"'
