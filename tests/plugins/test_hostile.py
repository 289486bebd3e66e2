"""What somebody made to do harm, as far as a checksum, a protocol or a browser lets it come: refused in one line.

Packs are damaged before their checksum is taken, answers of a model are JSON with odd values, and the explorer is asked
for odd things. `make nightly` tries many more of each than the usual suite.
"""

import json
import random
import resource
import shutil
import time
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from commands import ran
from fuzzing import ODD_VALUES, damaged
from safetensors.torch import save_file
from starlette.testclient import TestClient

import sparse_adapt as sa
from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ModelError, SparseAdaptError
from sparse_adapt.model.exact.statistics import Statistics
from sparse_adapt.model.exact.words import EXACT_WORDS_FILE, read_exact_words
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.llm.answers import Refused
from sparse_adapt.plugins.llm.written_definitions import _meaning
from sparse_adapt.plugins.llm.written_queries import _queries
from sparse_adapt.plugins.packs.pack import HEADER, Header, checksum_of, pack_card, read_pack
from sparse_adapt.plugins.pages.explorer.server import HOST, make_app
from sparse_adapt.plugins.pages.explorer.subject import explored, find_places

CASES = [150, pytest.param(10_000, marks=pytest.mark.nightly)]
SECONDS = 2.0  # for one case at most
MEMORY = 1 << 18  # KiB by which a file may raise what the process has ever held
TOKEN, PORT = "secret", 8765


def changed(chance: random.Random, value):
    """A value of JSON with one value in it replaced by an odd one, or left out."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        if chance.random() < 0.1:
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: changed(chance, value[key])}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        return [*value[:place], changed(chance, value[place]), *value[place + 1 :]]
    return chance.choice(ODD_VALUES)


def in_time(work) -> None:
    started = time.process_time()
    work()
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("cases", CASES)
def test_packs_with_a_checksum_that_fits(tiny_model, tmp_path, cases):
    sa.train("extend", tiny_model, out=tmp_path / "model", terms=["zorvex", "kubectl"])
    sa.pack(tmp_path / "model", tmp_path / "sound.pack", base=tiny_model)
    sound, chance, path = read_pack(tmp_path / "sound.pack"), random.Random(cases), tmp_path / "hand.pack"
    told = json.loads(sound.header.model_dump_json())
    ends = {"read": 0, "refused": 0}
    for _ in range(cases):
        header = changed(chance, told)
        try:
            fitting = Header.model_validate_json(json.dumps(header))
            header["sha256"] = checksum_of(fitting, sound.rows)
        except (ValueError, TypeError):
            pass  # no header that a checksum could be taken of
        save_file(dict(sound.rows), path, {HEADER: json.dumps(header)})

        def look() -> None:
            try:
                pack_card(read_pack(path))
                ends["read"] += 1
            except SparseAdaptError as error:
                assert "\n" not in str(error)
                ends["refused"] += 1

        in_time(look)
    assert min(ends.values()) > cases / 50, ends


@pytest.mark.parametrize("cases", CASES)
def test_answers_of_a_model(cases):
    chance, ends = random.Random(cases), {"taken": 0, "refused": 0}
    names, text = (
        {"zorvex": "zorvex", "kubectl": "kubectl"},
        "The zorvex of a house is looked at each spring.",
    )
    answers = {
        "definition": {"term": "zorvex", "definition": "A monthly comparison of spending with a plan."},
        "queries": {"term": "zorvex", "says": "who weighs a zorvex", "means": "who looks at worn parts"},
    }
    for number in range(cases):
        kind = chance.choice(list(answers))
        sound = json.dumps(answers[kind])
        answer = json.dumps(changed(chance, answers[kind])) if number % 4 else sound
        if number % 3 == 0:
            answer = damaged(chance, answer.encode()).decode(errors="replace")

        def read(kind: str = kind, answer: str = answer) -> None:
            try:
                if kind == "definition":
                    _meaning("zorvex", answer, names, [text])
                else:
                    list(_queries(Document("d", text), answer))
                ends["taken"] += 1
            except Refused:
                ends["refused"] += 1

        in_time(read)
    assert min(ends.values()) > cases / 50, ends


SETTINGS = {
    **{"language": "en", "mean_words": 9.5, "mean_title_words": 3.0, "title": 1.0, "heaviest": 64},
    **{"documents": 12, "share": 0.5, "scale": 1.5, "pieces": 2.0, "general": 0.5, "unknown": 3.2},
    "idf": {"zorvex": 2.5, "plan": 0.5},
}


@pytest.mark.parametrize("cases", CASES)
def test_exact_words_of_a_model(tiny_model, tmp_path, cases):
    chance, path = random.Random(cases), tmp_path / EXACT_WORDS_FILE
    ends, tokenizer = {"read": 0, "refused": 0}, SparseEncoder.load(tiny_model).tokenizer
    for number in range(cases):
        content = json.dumps(changed(chance, SETTINGS) if number % 4 else SETTINGS)
        path.write_bytes(damaged(chance, content.encode()) if number % 3 == 0 else content.encode())

        def look() -> None:
            try:
                words = read_exact_words(tmp_path)
                assert np.isfinite(words.queries(["a zorvex plan"], tokenizer).data).all()
                assert np.isfinite(words.documents([Document("d", "a plan", "zorvex")]).data).all()
                ends["read"] += 1
            except ModelError as error:
                assert "\n" not in str(error) and str(error).startswith(str(path))
                ends["refused"] += 1

        in_time(look)
    assert min(ends.values()) > cases / 50, ends


def _of_settings(**parts: object):
    return lambda path: path.write_text(json.dumps({**SETTINGS, **parts}))


def _of_bytes(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100_000_000)


@pytest.mark.parametrize(
    ("put", "said"),
    [
        (_of_settings(mean_words=float("nan")), "mean_words: "),
        (_of_settings(scale=float("inf")), "scale: "),
        (_of_settings(scale=1e300), "scale: "),
        (_of_settings(idf={"zorvex": float("nan")}), "idf.zorvex: "),
        (_of_settings(idf={"zorvex": -1.0}), "idf.zorvex: "),
        (_of_settings(idf=[1.0]), "idf: "),
        (_of_settings(idf={"zorvex": "1"}), "idf.zorvex: "),
        (_of_settings(language="xx"), "unknown language 'xx'"),
        (_of_settings(format_version=2), "format_version: "),
        (_of_settings(code="x"), "code: "),
        (lambda path: path.write_text("[" * 100_000), "not a file that this version reads"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "not a file that this version reads"),
        (_of_bytes, "has 100,000,000 bytes, where 67,108,864 are read"),
        (lambda path: path.symlink_to("/dev/zero"), "is no file that can be read"),
        (lambda path: path.symlink_to("nowhere"), "is no file that can be read"),
        (lambda path: path.mkdir(), "is no file that can be read"),
    ],
)
def test_a_model_with_hostile_exact_words_is_refused(tiny_model, tmp_path, put, said):
    shutil.copytree(tiny_model, tmp_path / "model")
    put(tmp_path / "model" / EXACT_WORDS_FILE)
    before, model = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, str(tmp_path / "model")
    for words in (
        ("search", "a plan", "--model", model, "--corpus", "gatrocraptic"),
        ("words", model, "gatrocraptic", "--update", "-o", str(tmp_path / "out")),
    ):
        status, printed = ran(*words)
        (line,) = [line for line in printed.splitlines() if line.startswith("error: ")]
        assert status == 2 and EXACT_WORDS_FILE in line and said in line, printed
    assert not (tmp_path / "out").exists()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY


def test_a_large_table_of_exact_words_is_read_in_time(tmp_path):
    idf = {f"word{number}": 1.5 for number in range(200_000)}
    (tmp_path / EXACT_WORDS_FILE).write_text(json.dumps({**SETTINGS, "idf": idf}))
    in_time(lambda: read_exact_words(tmp_path))


def test_statistics_that_a_file_has_no_room_for_keep_the_most_frequent_words(monkeypatch):
    monkeypatch.setattr("sparse_adapt.model.exact.statistics.LARGEST", 4_096 + 3 * 28)
    words = ("rare", "some", "most", "more", "much")
    counted = Statistics(9, 30, frequencies=Counter(dict(zip(words, (1, 2, 9, 8, 5), strict=True))))
    assert set(counted.idf("none")) == {"most", "more", "much"}
    monkeypatch.setattr("sparse_adapt.model.exact.statistics.LARGEST", 4_096 + 5 * 28)
    assert list(counted.idf("none")) == list(words)


PATHS = (
    "",
    "terms",
    "term/{term}",
    "term/{term}/save",
    "document",
    "page.css",
    "explore.js",
    "{odd}",
    "term/{odd}",
)
NAMES = ("q", "name", "amount", "saved", "{odd}")
METHODS = ("GET", "GET", "GET", "POST", "POST", "HEAD", "PUT", "OPTIONS", "DELETE")
ODD = (
    "1" * 5_000,
    "..",
    "%2e%2e",
    "\u0663",
    "nan",
    "1e400",
    "-1",
    "a\tb",
    "constructor",
    "\u202e",
    "\ufffd",
    "[" * 900,
)


@pytest.mark.parametrize("cases", [100, pytest.param(2_000, marks=pytest.mark.nightly)])
def test_requests_to_the_explorer(tiny_run, tmp_path, cases, monkeypatch):
    monkeypatch.setattr("sparse_adapt.retrieve.activity.BACKGROUND_TEXTS", 80)
    subject = explored(find_places(str(tiny_run), None, None))
    client = TestClient(
        make_app(subject, TOKEN, PORT, tmp_path), f"http://{HOST}:{PORT}", False, follow_redirects=False
    )
    monkeypatch.setattr("sparse_adapt.plugins.pages.explorer.server.save_calibrated", lambda *_: None)
    chance, term, here = random.Random(cases), next(iter(subject.terms)), f"http://{HOST}:{PORT}"
    statuses = set()
    for _ in range(cases):
        odd = chance.choice(ODD)
        path = chance.choice(PATHS).format(term=term, odd=quote(odd))
        fields = {
            chance.choice(NAMES).format(odd=odd): chance.choice((*ODD, "0.5", "zorvex", "d07"))
            for _ in range(chance.choice((0, 1, 2, 12)))
        }
        method = chance.choice(METHODS)
        headers = {"origin": chance.choice((here, here, "null", ""))}
        sent = {"data": fields} if method == "POST" else {"params": fields}
        answer = client.request(method, f"/{TOKEN}/{path}", headers=headers, **sent)
        statuses.add(answer.status_code)
        assert answer.status_code < 500, (method, path, fields)
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert {200, 400, 403, 404, 405} <= statuses
