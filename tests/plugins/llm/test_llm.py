"""A model that writes, behind an address: definitions and queries, how servers fail, and the journal."""

import gzip
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from chatting import Chat, Reply, answer, failed, serving
from conftest import refused
from forking import fork, kill_this

from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.collection.lines import write_objects
from sparse_adapt.errors import ConfigError
from sparse_adapt.plugins.llm import server
from sparse_adapt.synthetic.queries import HELD, read_synthetic_queries

TERMS = {
    "zorvex": "A monthly comparison of what a team spent with its plan.",
    "blenkin": "A gate that closes a duct when smoke rises in it.",
    "quimbal": "A frame of brass rings in which a lamp stays upright.",
}
PASSAGE = (
    "The {0} of house {1} is looked at every spring. Whoever finds a {0} that is worn calls the office. "
    "Then the office sends a person with a spare {0}, and the old {0} is weighed before it is thrown away."
)
KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(server, "REPEATS", 1)
    monkeypatch.setenv(server.KEY, KEY)


@pytest.fixture
def corpus(tmp_path) -> Path:
    rows = [
        {"_id": f"{term[0]}{number}", "text": PASSAGE.format(term, 10 + number)}
        for term in TERMS
        for number in range(4)
    ]
    write_objects(tmp_path / "corpus.jsonl", rows)
    return tmp_path / "corpus.jsonl"


def term_of(text: str) -> str:
    return re.match(r"Term: (\w+)\n<passages-", text)[1].casefold()


def defining(text: str, times: int = 1) -> Reply:
    term = term_of(text)
    return answer(json.dumps({"term": term, "definition": TERMS[term]}))


def define(run, corpus, address, *more):
    place = corpus.with_name("dictionary.jsonl")
    llm = ["--define", place, "--llm", f"{address}#smollm"]
    return run("terms", corpus, "--top", 3, *llm, *more), place


def test_definitions_say_who_wrote_them_and_from_which_documents(sparse_adapt, corpus):
    chat = Chat(defining)
    with serving(chat) as address:
        ran, place = define(sparse_adapt, corpus, address)
    assert ran.status == 0
    rows = [json.loads(line) for line in place.read_text().splitlines()]
    assert {row["term"]: row["definition"] for row in rows} == TERMS
    assert all(row["model"] == "smollm" and row["form"] == "written" for row in rows)
    assert {row["term"]: row["doc_ids"] for row in rows}["zorvex"] == ["z0", "z1", "z2", "z3"]
    assert {each.definition for each in read_dictionary(place)} == set(TERMS.values())
    assert f"smollm at {address}/v1 will be asked 3 times: about " in ran.messages[0]
    assert "3 definitions written by smollm (3 prompts; 3 requests)" in ran.err
    assert ran.err.endswith(f"sparse-adapt adapt {corpus} --glossary {place} -o adapted\n")
    (sent,) = (text for text in chat.asked if term_of(text) == "zorvex")
    data = re.fullmatch(r"Term: zorvex\n<passages-(\w{12})>\n(.*)\n</passages-\1>", sent, re.S)[2]
    assert data.splitlines() == [PASSAGE.format("zorvex", 10 + number) for number in range(4)]
    assert {headers["authorization"] for headers in chat.headers} == {f"Bearer {KEY}"}


def test_what_was_answered_is_not_asked_again(sparse_adapt, corpus):
    chat = Chat(defining)
    with serving(chat) as address:
        _, place = define(sparse_adapt, corpus, address)
        first = place.read_bytes()
        ran, _ = define(sparse_adapt, corpus, "http://127.0.0.1:9", "--overwrite", "--json")
        assert place.read_bytes() == first and len(chat.requests) == 3
        found = json.loads(ran.out)["defined"]
        assert (found["prompts"], found["before"], found["requests"], found["taken"]) == (3, 3, 0, 3)
        ran = sparse_adapt(
            "terms", corpus, "--top", 3, "--define", place, "--llm", f"{address}#other", "--overwrite"
        )
        assert ran.status == 0 and len(chat.requests) == 6
    assert "other" in place.read_text()


@pytest.mark.parametrize(
    ("trouble", "problem"),
    [
        (lambda times: failed(429, "slow down", Retry_After="1") if times == 1 else None, None),
        (lambda times: failed(500, "oh") if times == 1 else None, None),
        (lambda times: Reply(200, b'{"id"', cut=True) if times == 1 else None, None),
        (lambda times: failed(500, f"no {KEY}"), "unanswered: 500: no ..."),
        (lambda times: failed(400, "too long"), "unanswered: 400: too long"),
        (lambda times: Reply(200, b'{"choices": [{"mess'), "unanswered: its reply isn't one of the protocol"),
        (lambda times: Reply(200, b'{"choices": []}'), "unanswered: its reply isn't one of the protocol"),
        (lambda times: time.sleep(0.6), "unanswered: no reply within 0 s"),
        (lambda times: answer(None), "refused: empty"),
        (lambda times: answer('{"term": "zorvex", "definition": "A mon'), "refused: not the JSON that was asked for"),
        (lambda times: answer('{"term": "zorvex", "definition": ""}'), "refused: empty"),
    ],
)  # fmt: skip
def test_a_server_that_fails_is_survived_and_what_has_no_definition_is_named(
    sparse_adapt, corpus, monkeypatch, trouble, problem
):
    monkeypatch.setattr(server, "SECONDS", 9.0 if problem is None else 0.3)  # repeats and all
    monkeypatch.setattr(server, "REPEATS", 2 if problem is None else 1)

    def write(text: str, times: int) -> Reply:
        return (trouble(times) if term_of(text) == "zorvex" else None) or defining(text)

    chat = Chat(write)
    with serving(chat) as address:
        ran, place = define(sparse_adapt, corpus, address, "--json")
    assert ran.status == 0 and KEY not in ran.out + ran.err
    kept = {each.term for each in read_dictionary(place)}
    found = json.loads(ran.out)["defined"]
    if problem is None:
        assert kept == set(TERMS) and found["requests"] == 4
        assert found["refused"] == found["unanswered"] == {}
    else:
        verb, _, reason = problem.partition(": ")
        assert kept == set(TERMS) - {"zorvex"} and found[verb] == {"zorvex": reason}
        assert f"{verb}: 1: {reason} (zorvex)" in ran.err


def endless(part: bytes, seconds: float = 0.0) -> Iterator[bytes]:
    """What a server sends until nobody reads it any more; one that isn't stopped ends in 30 s."""
    started = time.monotonic()
    while time.monotonic() - started < 30:
        yield part
        time.sleep(seconds)


LONG = "its reply is longer than what was asked for"
LATE = "no reply within 1 s"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (lambda: answer("x" * 10_000_000), LONG),
        (lambda: Reply(200, b"", parts=endless(b" " * 100_000)), LONG),
        (lambda: Reply(500, b"", parts=endless(b" " * 100_000)), LONG),
        (lambda: Reply(200, gzip.compress(bytes(1_000_000)), {"Content_Encoding": "gzip"}), LONG),
        (lambda: Reply(200, b"", parts=endless(b" ", 0.05)), LATE),
        (lambda: Reply(400, b"", parts=endless(b" ", 0.05)), LATE),
        (lambda: time.sleep(3), LATE),
        (lambda: failed(429, "wait", Retry_After="30"), "429: wait"),
    ],
)
def test_a_reply_has_bounds(sparse_adapt, corpus, monkeypatch, reply, reason):
    """An endless one, a slow one, one that unfolds, one of megabytes: each costs the one deadline, and no memory."""
    monkeypatch.setattr(server, "SECONDS", 1.0)
    monkeypatch.setattr(server, "REPEATS", 3)

    def write(text: str, times: int) -> Reply:
        return (reply() if term_of(text) == "zorvex" else None) or defining(text)

    started = time.monotonic()
    with serving(Chat(write)) as address:
        ran, place = define(sparse_adapt, corpus, address, "--json")
    assert ran.status == 0 and json.loads(ran.out)["defined"]["unanswered"] == {"zorvex": reason}
    assert server.journal_beside(place).stat().st_size < 1_000
    assert time.monotonic() - started < 20


def test_a_silent_server_costs_one_deadline_and_is_spoken_of_before(sparse_adapt, corpus, monkeypatch):
    monkeypatch.setattr(server, "SECONDS", 2.0)
    monkeypatch.setattr(server, "SILENCE", 0.3)
    monkeypatch.setattr(server, "REPEATS", 3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        started = time.monotonic()
        ran, _ = define(sparse_adapt, corpus, f"http://127.0.0.1:{silent.getsockname()[1]}")
        taken = time.monotonic() - started
    assert "doesn't answer: no reply within 2 s" in refused(ran)
    assert "has been silent for 0 s; a call may take 2 s" in ran.err and taken < 20


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n", b""])
def test_a_reply_whose_head_trickles_in_ends_too(sparse_adapt, corpus, monkeypatch, head):
    monkeypatch.setattr(server, "SECONDS", 1.0)
    monkeypatch.setattr(server, "SECONDS_TO_CONNECT", 1.0)
    with socket.socket() as slow:
        slow.bind(("127.0.0.1", 0))
        slow.listen()

        def trickle() -> None:
            while True:
                connection, _ = slow.accept()
                threading.Thread(target=drip, args=(connection,), daemon=True).start()

        def drip(connection: socket.socket) -> None:
            with suppress(OSError):
                connection.sendall(head)
                for _ in range(300):
                    connection.sendall(b"a")
                    time.sleep(0.1)

        threading.Thread(target=trickle, daemon=True).start()
        started = time.monotonic()
        ran, _ = define(sparse_adapt, corpus, f"http://127.0.0.1:{slow.getsockname()[1]}")
    assert "doesn't answer: no reply within 1 s" in refused(ran)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    "content", ["my diary", "my diary\n", '{"key"', '{"key": "a"}\n{"k', '{"key": "a", "answer": "b"}\nmine']
)
def test_a_file_of_somebody_else_in_the_journals_place_stays_as_it_is(sparse_adapt, corpus, content):
    journal = server.journal_beside(corpus.with_name("dictionary.jsonl"))
    journal.write_text(content)
    chat = Chat(defining)
    with serving(chat) as address:
        ran, _ = define(sparse_adapt, corpus, address)
    if content == '{"key"':  # as a kill may leave one
        assert ran.status == 0
        return
    assert "move it away" in refused(ran)
    assert journal.read_text() == content and chat.requests == []


def test_a_link_in_the_journals_place_is_not_written_to(sparse_adapt, corpus):
    (corpus.parent / "real").write_text("")
    server.journal_beside(corpus.with_name("dictionary.jsonl")).symlink_to(corpus.parent / "real")
    with serving(Chat(defining)) as address:
        ran, _ = define(sparse_adapt, corpus, address)
    assert "isn't a journal of answers; move it away" in refused(ran)
    assert (corpus.parent / "real").read_text() == ""


def test_the_time_that_a_server_asks_for_passes(sparse_adapt, corpus):
    chat = Chat(lambda text, times: failed(429, "wait", Retry_After="1") if times == 1 else defining(text))
    with serving(chat) as address:
        define(sparse_adapt, corpus, address)
    times = {
        text: [at for at, asked in zip(chat.times, chat.asked, strict=True) if asked == text]
        for text in chat.asked
    }
    assert all(again - first >= 1 for first, again in times.values())


def test_a_server_that_answers_nobody_leaves_nothing(sparse_adapt, corpus):
    elsewhere = Chat(defining)
    with serving(elsewhere) as other:
        replies = {
            "401: bad key ...": failed(401, f"bad key {KEY}"),
            "404: no model smollm": failed(404, "no model smollm"),
            "307": failed(307, "there", Location=f"{other}/v1/chat/completions"),
        }
        for reason, reply in replies.items():
            with serving(Chat(lambda *_, reply=reply: reply)) as address:
                ran, _ = define(sparse_adapt, corpus, address)
            problem = refused(ran)
            assert problem.startswith(f"error: --llm: smollm at {address}/v1 doesn't answer: {reason}")
            assert KEY not in ran.err
        ran, _ = define(sparse_adapt, corpus, address)  # whose server has ended
    assert "doesn't answer: can't be reached" in refused(ran)
    assert elsewhere.requests == [] and [path.name for path in corpus.parent.iterdir()] == ["corpus.jsonl"]


def test_a_server_that_dies_leaves_what_it_wrote_and_the_rest_is_asked_later(
    sparse_adapt, corpus, monkeypatch
):
    monkeypatch.setattr(server, "AT_ONCE", 1)
    monkeypatch.setattr(server, "PATIENCE", 1)
    chat = Chat(lambda text, _: defining(text) if len(chat.seen) < 2 else Reply(200, b"", cut=True))
    with serving(chat) as address:
        ran, place = define(sparse_adapt, corpus, address, "--json")
    reasons = Counter(json.loads(ran.out)["defined"]["unanswered"].values())
    assert ran.status == 0 and len(read_dictionary(place)) == 1
    assert reasons["not sent any more"] == 1 and len(reasons) == 2
    again = Chat(defining)
    with serving(again) as address:
        ran, place = define(sparse_adapt, corpus, address, "--overwrite")
    assert "(1 more were answered before)" in ran.messages[0]
    assert len(again.requests) == 2 and len(read_dictionary(place)) == 3


def test_a_killed_run_goes_on_to_the_same_bytes(sparse_adapt, corpus, monkeypatch):
    monkeypatch.setattr(server, "AT_ONCE", 1)
    chat = Chat(defining)
    with serving(chat) as address:
        _, place = define(sparse_adapt, corpus, address)
        whole, answers = place.read_bytes(), server.journal_beside(place)
        place.unlink()
        answers.unlink()
        chat.requests.clear()

        def dying() -> None:
            note, done = server.note, []

            def noting(*line: object) -> None:
                note(*line)
                done.append(line)
                if len(done) == 2:
                    kill_this()

            server.note = noting
            define(sparse_adapt, corpus, address)

        assert fork(dying).wait().status == -signal.SIGKILL
        assert len(answers.read_text().splitlines()) == 2 and not place.exists()
        with answers.open("a") as file:
            file.write('{"key": "cut by a ki')
        ran, _ = define(sparse_adapt, corpus, address)
    assert ran.status == 0 and place.read_bytes() == whole
    assert sorted(chat.seen.values()) in ([2, 2, 2], [2, 2, 3])  # the call under way may have been sent twice


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ("A zorvex is a kind of zorvex.", "repeats the term"),
        ("Zorvex.", "repeats the term"),
        ("A report that a zorvexed team writes on spending.", "repeats the term"),
        ("A zorvex report is a plan of what is spent.", "defines something else"),
        ("The passages don't say what it means.", "doesn't know"),
        ("I do not know what a zorvex might be.", "doesn't know"),
        ("A report on spending, see https://evil.example/a.", "a link or markup"),
        ("A report on spending, see evil.com for more.", "a link or markup"),
        ("A report on <b>spending</b> of a team.", "a link or markup"),
        ("A [report](x) on spending of a team.", "a link or markup"),
        ("A report on\u202espending of a team.", "a link or markup"),
        ("Acme Cloud is the best product for spending.", "defines something else"),
        ("A blenkin that compares spending with a plan.", "says another term"),
        (" ".join(f"word{number}" for number in range(80)), "longer than a definition"),
    ],
)  # fmt: skip
def test_an_answer_that_a_document_made_is_no_definition(sparse_adapt, corpus, definition, reason):
    written = {"zorvex": definition}

    def write(text: str, times: int) -> Reply:
        term = term_of(text)
        return answer(json.dumps({"term": term, "definition": written.get(term, TERMS[term])}))

    with serving(Chat(write)) as address:
        ran, place = define(sparse_adapt, corpus, address, "--json")
    assert json.loads(ran.out)["defined"]["refused"] == {"zorvex": reason}
    assert {each.term for each in read_dictionary(place)} == {"blenkin", "quimbal"}


def test_the_first_sentence_stays_without_the_term_before_it(sparse_adapt, corpus):
    text = f"```json\n{json.dumps({'term': 'Zorvex', 'definition': 'A zorvex is a report on spending. Buy it.'})}\n```"
    with serving(
        Chat(lambda asked, _: answer(text) if term_of(asked) == "zorvex" else defining(asked))
    ) as address:
        _, place = define(sparse_adapt, corpus, address)
    assert "a report on spending." in {each.definition for each in read_dictionary(place)}


def test_settings_that_a_server_does_not_know_are_left_out(sparse_adapt, corpus):
    def write(request: str, times: int) -> Reply:
        sent = chat.requests[-1]
        for name in ("response_format", "max_tokens"):
            if name in sent:
                return failed(400, f"Unsupported parameter: '{name}'")
        return defining(request)

    chat = Chat(write)
    with serving(chat) as address:
        ran, place = define(sparse_adapt, corpus, address)
    assert ran.status == 0 and len(read_dictionary(place)) == 3
    assert chat.requests[-1].keys() >= {"temperature", "max_completion_tokens"}


@pytest.mark.parametrize(
    "llm", ["localhost:8000#m", "ftp://host/v1#m", "http://host/v1", "http://:80/v1#m", "http://host:x#m", "http://h?a=1#m",
            "http://me:hunter2@host/v1#m"],
)  # fmt: skip
def test_an_address_without_a_model_is_refused(llm, sparse_adapt, corpus):
    problem = refused(sparse_adapt("terms", corpus, "--define", "d.jsonl", "--llm", llm))
    assert problem.startswith("error: --llm: ") and "hunter2" not in problem
    with pytest.raises(ConfigError):
        server.server_of(llm)


def test_what_defines_and_where_go_together(sparse_adapt, corpus):
    assert "go together" in refused(sparse_adapt("terms", corpus, "--define", "d.jsonl"))
    assert "go together" in refused(sparse_adapt("terms", corpus, "--llm", "http://h#m"))
    assert server.server_of("https://host:8/#org/m:1") == ("https://host:8/v1", "org/m:1")


# -- queries --------------------------------------------------------------------------------------


ASKING = {"term": "zorvex", "says": "who weighs a zorvex", "means": "who looks at a worn part each spring"}


def asking(text: str, times: int = 1) -> Reply:
    term = next(term for term in TERMS if f" {term} " in text)
    house = re.search(r"house (\d+)", text)[1]
    about = {
        "term": term,
        "says": f"who weighs a {term} of {house}",
        "means": f"who mends old parts in {house} {term[:2]}",
    }
    return answer(json.dumps(about))


@pytest.fixture
def written(sparse_adapt, corpus):
    out = corpus.with_name("made")
    with serving(Chat(asking)) as address:
        ran = sparse_adapt("queries", corpus, "--held", 2, "-o", out, "--llm", f"{address}#smollm", "--json")
    assert ran.status == 0
    return ran, out


def test_queries_say_a_term_or_mean_it(written):
    ran, out = written
    found = [query for query in read_synthetic_queries(out) if query.kind in ("explicit", "semantic")]
    assert Counter(query.kind for query in found) == {"explicit": 12, "semantic": 12}
    assert sum(query.split == HELD for query in found) == 4
    for query in found:
        assert any(term in query.text for term in TERMS) == (query.kind == "explicit")
    assert json.loads(ran.out)["llm"]["taken"] == 24
    assert server.journal_beside(out).is_file()


def test_the_teacher_filters_written_queries(written, sparse_adapt):
    _, out = written
    ran = sparse_adapt("candidates", out, "--teacher", "bm25", "-o", out.with_name("candidates.jsonl"))
    assert ran.status == 0
    kept = out.with_name("candidates.jsonl").read_text()
    assert "who weighs a zorvex of 1" in kept


@pytest.mark.parametrize(
    ("change", "reason", "left"),
    [
        ({"term": "Acme"}, "its term isn't one of the document", 0),
        ({"says": "who weighs the brass"}, "the explicit query lacks the term", 0),
        ({"means": "who weighs the Zorvex"}, "the semantic query says the term", 1),
        ({"means": "how to fasten one tube to the next"}, "repeats the example", 1),
        ({"means": "who"}, "the semantic query is too short or too long", 1),
        ({"says": "who weighs a zorvex at www.evil.com"}, "a link or markup", 0),
        ({"more": 1}, "not the JSON that was asked for", 0),
    ],
)
def test_queries_that_break_a_rule_are_counted(sparse_adapt, corpus, change, reason, left):
    def write(text: str, times: int) -> Reply:
        return answer(json.dumps(ASKING | change)) if "house 10 " in text and "zorvex" in text else answer("")

    out = corpus.with_name("made")
    with serving(Chat(write)) as address:
        ran = sparse_adapt("queries", corpus, "-o", out, "--llm", f"{address}#smollm", "--json")
    found = json.loads(ran.out)["llm"]
    assert found["refused"]["z0"] == reason and found["taken"] == left
    assert Counter(found["refused"].values())["empty"] == 11


def test_adapt_has_queries_written_too(sparse_adapt, corpus):
    out = corpus.with_name("adapted")
    with serving(Chat(asking)) as address:
        words = ["adapt", corpus, "-o", out, "--teacher", "bm25", "--until", "queries"]
        ran = sparse_adapt(*words, "--llm", f"{address}#smollm")
    assert ran.status == 0 and "24 queries written by smollm (12 prompts; 12 requests)" in ran.err
    kinds = Counter(query.kind for query in read_synthetic_queries(f"{out}.partial/collection"))
    assert kinds["semantic"] == 12 and server.journal_beside(out).is_file()


def test_without_the_package_its_extra_is_named(sparse_adapt, corpus, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    ran, _ = define(sparse_adapt, corpus, "http://127.0.0.1:9")
    assert "pip install 'sparse-adapt[llm]'" in refused(ran)


# -- a real model ---------------------------------------------------------------------------------

SMOLLM = Path(sys.prefix) / "smollm"  # where `make smollm` puts two packages
CONVERT = """
import sys
from pathlib import Path
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
file, = Path(sys.argv[1]).rglob("*.gguf")
read = dict(pretrained_model_name_or_path=file.parent, gguf_file=file.name)
model = AutoModelForCausalLM.from_pretrained(**read, dtype=torch.float32)
del model.config.quantization_config
plain = AutoModelForCausalLM.from_config(model.config, dtype=torch.float32)
plain.load_state_dict(model.state_dict())
for each in (plain, AutoTokenizer.from_pretrained(**read)):
    each.save_pretrained(sys.argv[2])
"""


@contextmanager
def serving_smollm(folder: Path) -> Iterator[str]:
    """SmolLM2-135M-Instruct behind `transformers serve`: no wheel of the package index brings llama.cpp's server."""
    offline = {
        "PYTHONPATH": str(SMOLLM),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PATH": "/usr/bin:/bin",
    }
    subprocess.run([sys.executable, "-c", CONVERT, SMOLLM, folder], check=True, env=offline)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [Path(sys.prefix) / "bin" / "transformers", "serve", folder, "--port", port, "--device", "cpu"]
    command += ["--host", "127.0.0.1"]
    process = subprocess.Popen(command, env=offline, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", int(port))) == 0:
                    break
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}#{folder}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.nightly
def test_a_real_model_writes_and_its_answers_are_kept(sparse_adapt, corpus, monkeypatch):
    if not SMOLLM.is_dir():
        pytest.skip(f"no SmolLM2 at {SMOLLM}: run make smollm")
    monkeypatch.delenv(server.KEY)
    place = corpus.with_name("dictionary.jsonl")
    with serving_smollm(corpus.parent / "model") as llm:
        words = ["terms", corpus, "--top", 3, "--define", place, "--llm", llm, "--overwrite", "--json"]
        first, again = sparse_adapt(*words), sparse_adapt(*words)
    found, kept = (json.loads(ran.out)["defined"] for ran in (first, again))
    assert found["prompts"] == found["requests"] == 3 and not found["unanswered"]
    assert found["taken"] + len(found["refused"]) == 3 and found["taken"]
    assert kept == found | {"before": 3, "requests": 0}
    assert all(row["model"].endswith("model") for row in map(json.loads, place.read_text().splitlines()))
