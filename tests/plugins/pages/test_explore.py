"""The explorer: every view, what it refuses, and the model that its slider saves."""

import json
import re
import shutil
import socket
import threading
import time
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pytest
import torch
from browsing import SIZES, browsing
from conftest import refused
from starlette.testclient import TestClient

from sparse_adapt.collection.readers import Document, read_documents, write_documents
from sparse_adapt.errors import ConfigError, InputError, ModelError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.words import WordOptions, add_exact_words
from sparse_adapt.plugins.pages.explorer import connections, server
from sparse_adapt.plugins.pages.explorer.server import HOST, listen, make_app, serve
from sparse_adapt.plugins.pages.explorer.subject import ExploredPlaces, explored, find_places
from sparse_adapt.plugins.pages.explorer.terms import terms_page
from sparse_adapt.plugins.pages.explorer.views import Addresses
from sparse_adapt.plugins.pages.queries import rankings_of, weighed
from sparse_adapt.plugins.pages.subject import read_subject
from sparse_adapt.plugins.pages.terms import find_terms
from sparse_adapt.plugins.pages.verdict import verdict_section
from sparse_adapt.retrieve.activity import Activity, background_queries
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.selection.retention import measure_retention

TOKEN, PORT = "secret", 8765
HOSTILE = "</title><script>alert(1)</script>\x1b[2J\u202eevil"


@pytest.fixture(scope="module", autouse=True)
def few_background_queries():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sparse_adapt.retrieve.activity.BACKGROUND_TEXTS", 80)
        yield


@pytest.fixture(scope="module")
def subject(tiny_run):
    return explored(find_places(str(tiny_run), None, None))


@pytest.fixture
def client(subject, tmp_path):
    app = make_app(subject, TOKEN, PORT, tmp_path)
    return TestClient(app, base_url=f"http://{HOST}:{PORT}", follow_redirects=False)


@pytest.fixture
def term(subject):
    return next(iter(subject.terms))


def test_every_view_shows_what_it_is_for(client, subject, term):
    shown = client.get(f"/{TOKEN}/", params={"q": "who owns zorvex"}).text
    assert "What is found" in shown and "d07" in shown and "By position" in shown
    assert shown.count('class="name">before') == shown.count('class="name">after') == 1
    assert "zorvex" in client.get(f"/{TOKEN}/terms").text
    page = client.get(f"/{TOKEN}/term/{term}", params={"amount": "0.5", "q": "who owns zorvex"}).text
    for said in (
        "pieces before",
        "nearest tokens",
        "background queries that activate a term",
        "with this",
        "Save as a model",
    ):
        assert said in page, said
    document = client.get(f"/{TOKEN}/document?name=d07").text
    assert "By weight" in document and "<summary>before</summary>" in document


def test_judged_answers_are_marked(client):
    judged = client.get(f"/{TOKEN}/", params={"q": " The Plan of what to  spend"}).text
    assert "its relevant documents are marked" in judged
    names = re.findall(r'<summary>(\w+) <span class="relevant">', judged)
    found = re.findall(r"<summary>(d\d\d) ", judged)
    assert names == [name for name in found if name in ("d05", "d06", "d07")] != []
    assert 'class="relevant"' not in client.get(f"/{TOKEN}/", params={"q": "who has a saw"}).text


def test_judged_answers_are_marked_beside_the_slider_too(client, term):
    query = {"amount": "0.5", "q": "the plan of what to spend"}
    shown = client.get(f"/{TOKEN}/term/{term}", params=query).text
    names = re.findall(r'<summary>(\w+) <span class="relevant">', shown)
    found = re.findall(r"<summary>(d\d\d) ", shown)
    assert names == [name for name in found if name in ("d05", "d06", "d07")] != []
    assert "= score" not in shown and '<ul class="bars">\n</ul>' not in shown  # no sum without its parts


def test_pages_and_anchors_are_apart(client):
    shown = client.get(f"/{TOKEN}/", params={"q": "who owns zorvex"}).text
    pages, anchors = (part.split("</nav>")[0] for part in shown.split("<nav ")[1:])
    assert "Terms" in pages and 'href="#' not in pages
    assert 'href="#found"' in anchors and f"/{TOKEN}/" not in anchors


def test_a_page_has_each_heading_once_and_says_where_it_is(client, term):
    for path, here in (
        ("", "Ask a query"),
        ("?q=who+owns+zorvex", "Ask a query"),
        ("terms", "Terms"),
        (f"term/{term}", "Terms"),
        ("document?name=d07", None),
        ("document?name=d99", None),
        (f"term/{term}?amount=much", None),
    ):
        shown = client.get(f"/{TOKEN}/{path}").text
        headings = re.findall(r"<h[12][^>]*>(.*?)</h[12]>", shown)
        assert len(headings) == len(set(headings)) and "" not in headings, path
        current = re.findall(r'aria-current="true">(.*?)</a>', shown)
        assert current == ([] if here is None else [here]), path


def test_what_the_slider_changes_is_named_apart_from_the_models(client, term):
    shown = client.get(f"/{TOKEN}/term/{term}", params={"amount": "0.5", "q": "who owns zorvex"}).text
    headings = re.findall(r'<th scope="col" class="number">(.*?)</th>', shown)
    assert (
        headings[:2] == re.findall(r'class="name">(as it is|with this)<', shown) == ["as it is", "with this"]
    )


def test_tokens_of_a_query_are_listed_once(client):
    assert "The query weighs" not in client.get(f"/{TOKEN}/", params={"q": "who owns zorvex"}).text


def test_a_page_names_the_model_before_and_the_one_after(client, subject):
    places = subject.places
    lead = f"Before: {places.against}. After: {places.model}. 12 documents of {places.corpus}."
    assert lead in client.get(f"/{TOKEN}/").text


def test_bars_of_both_models_have_one_scale(subject):
    query = "the plan of what to spend"
    queries = {name: weighed(encoded, query) for name, encoded in subject.encoded.items()}
    rankings = rankings_of(subject.encoded, queries, subject.documents)
    bars = [
        bar for ranking in rankings for found in ranking.documents for bar in found.bars if bar.share > 0.2
    ]
    scales = [float(bar.figure) / bar.share for bar in bars]
    assert max(bar.share for bar in bars) == 1.0
    assert scales == pytest.approx([max(float(bar.figure) for bar in bars)] * len(bars), rel=0.02)


def test_a_deep_link_is_an_address(client):
    shown = client.get(f"/{TOKEN}/", params={"q": "who owns zorvex"}).text
    assert f"/{TOKEN}/document?name=d07" in shown
    assert client.get(f"/{TOKEN}/document?name=d07").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/wrong/",
        f"/{TOKEN}/term/3",
        f"/{TOKEN}/term/{'1' * 5_000}",
        f"/{TOKEN}/term/x",
        f"/{TOKEN}/term/\u0663",
        f"/{TOKEN}/document?name=d99",
        f"/{TOKEN}/x",
    ],
)
def test_nothing_is_at_other_addresses(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert TOKEN not in answer.text or path.startswith(f"/{TOKEN}")


def test_a_wrong_address_leads_on_for_whom_the_page_is(client):
    for path in ("x", "term/", "term/3", "document/d07"):
        shown = client.get(f"/{TOKEN}/{path}").text
        assert "Nothing is here" in shown and f'href="/{TOKEN}/terms"' in shown, path
    assert "Nothing is here" not in client.get("/wrong/x").text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": f"evil.example:{PORT}"}, 421),
        ({"host": f"{HOST}:1"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"host": f"localhost:{PORT}", "origin": f"http://localhost:{PORT}"}, 200),
    ],
)
def test_other_hosts_and_origins_are_refused(client, headers, status):
    answer = client.get(f"/{TOKEN}/", headers=headers)
    assert answer.status_code == status
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_an_order_needs_an_origin_and_a_plain_name(client, term, tmp_path):
    given = {"amount": "0.5", "name": "calm"}
    here = {"origin": f"http://{HOST}:{PORT}"}
    place = f"/{TOKEN}/term/{term}/save"
    assert client.post(place, data=given).status_code == 403
    for name in ("../calm", "/calm", "", ".hidden", "a/b"):
        answer = client.post(place, data={**given, "name": name}, headers=here)
        assert answer.status_code == 400, name
    assert client.post(place, data={**given, "amount": "nan"}, headers=here).status_code == 400
    assert client.post(place, data={"name": "x" * 9_000}, headers=here).status_code == 413
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sent", "status", "told"),
    [
        ({"data": {f"field{number}": "1" for number in range(9)}}, 400, "an order has 8 fields at most"),
        ({"data": {"amount": "1" * 3_000, "name": "a"}}, 400, "lies beyond"),
        ({"data": {"amount": "nan", "name": "a"}}, 400, "lies beyond"),
        ({"content": b"\xff=%ff&" * 3}, 400, "use letters, digits"),
        ({"content": b"", "headers": {"content-length": "9" * 5_000}}, 413, "too much"),
        ({"content": b"", "headers": {"content-length": "-1"}}, 413, "too much"),
        ({"content": b"", "headers": {"content-length": "\u00b2"}}, 413, "too much"),
        ({"content": iter([b"name=a"])}, 413, "too much"),
    ],
)
def test_an_order_that_is_none_is_said(client, term, sent, status, told):
    headers = {"origin": f"http://{HOST}:{PORT}", **sent.pop("headers", {})}
    headers = {name: value.encode() for name, value in headers.items()}
    answer = client.post(f"/{TOKEN}/term/{term}/save", headers=headers, **sent)
    assert (answer.status_code, told in answer.text) == (status, True), answer.text[-300:]


def test_an_order_for_what_is_no_term_is_missing(client):
    for name in ("x", "1" * 5_000, "3"):
        answer = client.post(
            f"/{TOKEN}/term/{name}/save",
            headers={"origin": f"http://{HOST}:{PORT}"},
            data={"amount": "1", "name": "a"},
        )
        assert answer.status_code == 404


def test_the_slider_saves_a_model(client, subject, term, tmp_path):
    here = {"origin": f"http://{HOST}:{PORT}"}
    answer = client.post(f"/{TOKEN}/term/{term}/save", data={"amount": "0.5", "name": "calm"}, headers=here)
    assert answer.status_code == 303
    assert "Saved as calm" in client.get(answer.headers["location"]).text
    saved = SparseEncoder.load(tmp_path / "calm")
    before = subject.main.model.output_bias[term]
    assert saved.output_bias[term].item() == pytest.approx(before.item() - 0.5, abs=1e-5)
    again = client.post(f"/{TOKEN}/term/{term}/save", data={"amount": "0.5", "name": "calm"}, headers=here)
    assert again.status_code == 400 and "already there" in again.text


def test_what_is_typed_and_what_documents_say_stays_text(tmp_path, tiny_run):
    documents = [Document(f"{HOSTILE} {row}", f"zorvex {HOSTILE}", HOSTILE) for row in range(3)]
    write_documents(tmp_path / "corpus.jsonl", documents)
    found = explored(ExploredPlaces(str(tiny_run / "4-distill"), None, str(tmp_path / "corpus.jsonl")))
    client = TestClient(make_app(found, TOKEN, PORT, tmp_path), base_url=f"http://{HOST}:{PORT}")
    term = next(iter(found.terms))
    for answer in (
        client.get(f"/{TOKEN}/", params={"q": f"zorvex {HOSTILE}"}),
        client.get(f"/{TOKEN}/term/{term}", params={"q": HOSTILE, "saved": HOSTILE}),
        client.get(f"/{TOKEN}/document", params={"name": documents[0].document_id}),
    ):
        assert answer.status_code == 200
        assert (
            "<script>alert" not in answer.text and "\u202e" not in answer.text and "\x1b" not in answer.text
        )
        assert "&lt;script&gt;" in answer.text


def test_a_wrong_amount_is_said(client, term):
    answer = client.get(f"/{TOKEN}/term/{term}", params={"amount": "much"})
    assert answer.status_code == 400 and "is no number" in answer.text


def test_a_port_in_use_is_one_line():
    taken = listen(0)
    with pytest.raises(ConfigError, match=r"can't be listened on .*; choose another one"):
        listen(taken.getsockname()[1])
    taken.close()


def test_a_model_and_a_corpus_that_dont_fit(tmp_path, tiny_run):
    write_documents(tmp_path / "corpus.jsonl", [Document("a", ""), Document("b", " ")])
    with pytest.raises(InputError, match="model and corpus don't fit"):
        explored(ExploredPlaces(str(tiny_run / "4-distill"), None, str(tmp_path / "corpus.jsonl")))


def test_mistakes_are_one_line(sparse_adapt, tmp_path, tiny_run, tiny_model, zorvex_collection):
    taken = listen(0)
    port = str(taken.getsockname()[1])
    assert "choose another one" in refused(sparse_adapt("explore", tiny_run, "--port", port))
    taken.close()
    assert "names no corpus" in refused(sparse_adapt("explore", tiny_model))
    assert "nowhere" in refused(sparse_adapt("explore", "nowhere", "--corpus", zorvex_collection))
    write_documents(tmp_path / "corpus.jsonl", [Document("a", " ")])
    words = ["--corpus", tmp_path / "corpus.jsonl", "--port", "0"]
    assert "model and corpus don't fit" in refused(sparse_adapt("explore", tiny_run / "4-distill", *words))
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    (run / "report.json").write_text("{")
    assert "not the report of a run" in refused(sparse_adapt("explore", run))


def test_places_of_a_run_and_of_a_model(tiny_run, tiny_model, zorvex_collection):
    of_run = find_places(str(tiny_run), None, None)
    assert of_run == ExploredPlaces(str(tiny_run / "4-distill"), str(tiny_model), str(zorvex_collection))
    of_model = find_places(str(tiny_run / "4-distill"), None, None)
    assert of_model == ExploredPlaces(str(tiny_run / "4-distill"), None, str(zorvex_collection))
    with pytest.raises(InputError, match="names no corpus"):
        find_places(str(tiny_model), None, None)


# -- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saves(tmp_path_factory):
    return tmp_path_factory.mktemp("saves")


@pytest.fixture(scope="module")
def address(subject, saves):
    return served_at(subject, saves)


ODD_NAMES = [".", "..", "a/../b", "%2e", "?name=x", "#", "constructor", "a&b=c"]


@pytest.fixture(scope="module")
def odd_address(tiny_run, tmp_path_factory):
    """The explorer of documents with odd names."""
    folder = tmp_path_factory.mktemp("odd")
    write_documents(
        folder / "corpus.jsonl", [Document(name, f"Who owns zorvex {name}?") for name in ODD_NAMES]
    )
    return served_at(explored(find_places(str(tiny_run), None, str(folder))), folder)


def served_at(subject, saves):
    """The explorer as it is served; its thread ends with the tests."""
    listening, heard = listen(0), []
    threading.Thread(target=serve, args=(subject, listening, saves, heard.append), daemon=True).start()
    until = time.monotonic() + 60
    while not heard and time.monotonic() < until:
        time.sleep(0.05)
    return heard[0]


@pytest.fixture(scope="module")
def browser():
    with browsing() as found:
        yield found


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_every_view_in_a_browser(browser, address, subject, width, scheme):
    term = next(iter(subject.terms))
    for place, said in (
        ("", "Ask"),
        ("?q=who%20owns%20zorvex", "What is found"),
        ("terms", "zorvex"),
        (f"term/{term}?amount=0.5&q=zorvex", "background queries that activate a term"),
        ("document?name=d07", "By weight"),
    ):
        with browser.open(address + place, width, scheme) as seen:
            assert said in seen.page.locator("body").inner_text()
            assert seen.too_wide() <= 0, place
            assert seen.console == []
            assert all(each.startswith((address, "data:")) for each in seen.asked), seen.asked


@pytest.mark.parametrize("width", [380, 1100])
def test_a_sum_stays_on_its_line_and_bars_can_be_compared(browser, address, width):
    with browser.open(f"{address}?q=the+plan+of+what+to+spend", width) as seen:
        sizes = seen.page.locator("#found .rankings details[open] .figure").evaluate_all(
            "all => all.map(each => [each.getClientRects().length, each.scrollWidth - each.clientWidth])"
        )
        assert sizes and all(lines == 1 and over <= 0 for lines, over in sizes)
        tracks = seen.page.locator("#found details[open] .track").evaluate_all(
            "all => all.map(each => Math.round(each.getBoundingClientRect().width))"
        )
        assert len(set(tracks)) == 1 and tracks[0] >= 30


@pytest.mark.parametrize("width", [380, 1100])
def test_bars_of_both_models_are_as_long_as_each_other_on_every_page(browser, address, width):
    for place in ("?q=who+owns+zorvex", "document?name=d07"):
        with browser.open(address + place, width) as seen:
            tracks = seen.page.locator("ul.bars:not(.sums) .track").evaluate_all(
                "all => all.map(each => Math.round(each.getBoundingClientRect().width))"
            )
            assert len(tracks) > 10 and len(set(tracks)) == 1, place


def test_before_and_after_stand_side_by_side_where_there_is_room(browser, address):
    for place, beside in (("?q=who+owns+zorvex", "#tokens"), ("document?name=d07", "#weights")):
        for width, rows in ((1100, 1), (380, 2)):
            with browser.open(address + place, width) as seen:
                boxes = [each.bounding_box() for each in seen.page.locator(f"{beside} .beside > div").all()]
                assert len({box["y"] for box in boxes}) == rows, (place, width)
                assert len({box["width"] for box in boxes}) == 1


def test_a_long_query_is_seen_whole_while_there_is_room(browser, address):
    query = "Are our departments staying inside their allowance this quarter?"
    with browser.open(f"{address}?q={query}", 1100) as seen:
        field = seen.page.get_by_role("textbox", name="Query")
        assert field.evaluate("each => each.scrollWidth - each.clientWidth") <= 0


def test_views_have_no_serious_finding(browser, address, subject):
    for place in (
        "?q=who%20owns%20zorvex",
        f"term/{next(iter(subject.terms))}?amount=0.5&q=zorvex",
        "document?name=d07",
    ):
        with browser.open(address + place, 400, "dark") as seen:
            assert seen.finds() == [], place


def test_a_query_is_asked_by_hand_and_a_term_followed(browser, address):
    with browser.open(address) as seen:
        seen.page.get_by_label("Query").fill("who owns zorvex")
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_selector("#found")
        assert "q=who+owns+zorvex" in seen.page.url
        seen.page.get_by_role("link", name="Terms").click()
        seen.page.get_by_role("link", name="zorvex").click()
        seen.page.wait_for_url("**/term/**")
        seen.page.wait_for_load_state()  # by then the page's script follows the slider
        slider = seen.page.get_by_label("Lowered by")
        slider.focus()
        slider.press("ArrowRight")
        seen.page.wait_for_selector("output:not(:text-is('0'))")
        assert seen.page.locator("output").inner_text() == slider.input_value() != "0"
        assert seen.console == []


def test_a_model_is_saved_from_a_browser(browser, address, subject, saves):
    """Its order carries the origin that the browser names for a page of ours."""
    term = next(iter(subject.terms))
    with browser.open(f"{address}term/{term}?amount=0.5") as seen:
        seen.page.get_by_label("Folder for the model").fill("by-hand")
        seen.page.get_by_role("button", name="Save as a model").click()
        seen.page.wait_for_load_state()
        assert "saved=by-hand" in seen.page.url, seen.page.locator("body").inner_text()
        assert "Saved as by-hand." in seen.page.locator("body").inner_text()
        box = seen.page.get_by_text("Saved as by-hand.").bounding_box()
        assert 0 <= box["y"] <= 900 - box["height"]
        assert seen.console == []
    assert (saves / "by-hand" / "model.safetensors").is_file()


def test_the_slider_stays_in_view_when_it_is_used(browser, address, subject):
    term = next(iter(subject.terms))
    with browser.open(f"{address}term/{term}", 380) as seen:
        seen.page.get_by_label("Lowered by").press("ArrowRight")
        seen.page.get_by_label("A query to try it on").fill("zorvex")
        seen.page.get_by_role("button", name="Show").click()
        seen.page.wait_for_url("**amount=**")
        seen.page.wait_for_load_state()
        assert "q=zorvex" in seen.page.url and seen.page.url.endswith("#slider")
        for found in (seen.page.get_by_label("Lowered by"), seen.page.get_by_role("button", name="Show")):
            box = found.bounding_box()
            assert 0 <= box["y"] <= box["y"] + box["height"] <= 900


def test_documents_of_any_name_are_found_by_a_browser(browser, odd_address):
    for name in ODD_NAMES:
        with browser.open(f"{odd_address}?q=zorvex") as seen:
            seen.page.locator(f'a[href$="document?{urlencode({"name": name})}"]').first.evaluate(
                "link => link.click()"
            )
            seen.page.wait_for_url("**/document?**")
            assert "By weight" in seen.page.locator("body").inner_text(), name
            assert seen.console == []


def raw(address: str, sent: bytes, seconds: float = 30.0) -> tuple[bytes, float]:
    """What a connection gives until it is closed, and how long that took."""
    started = time.monotonic()
    with socket.create_connection((HOST, int(address.split(":")[2].split("/")[0])), seconds) as connection:
        connection.sendall(sent)
        parts = []
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts), time.monotonic() - started


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
def test_a_request_that_never_comes_whole_is_closed(address, monkeypatch, sent):
    monkeypatch.setattr(connections, "SECONDS", 0.5)
    answer, seconds = raw(address, sent)
    assert (answer, seconds < 20) == (b"", True)


def test_an_order_that_never_comes_whole_is_given_up_on(address, subject, monkeypatch):
    monkeypatch.setattr(server, "SECONDS", 0.5)
    host = address.removeprefix("http://").split("/")[0]
    path = f"/{address.split('/')[3]}/term/{next(iter(subject.terms))}/save"
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Length: 9\r\n\r\nna"
    answer, seconds = raw(address, f"{head}".encode())
    assert answer.startswith(b"HTTP/1.1 408 ") and seconds < 20


def test_requests_that_nobody_waits_for_cost_the_next_no_time(address, monkeypatch):
    asked = []
    real = server.query_page

    def slow(*given):
        asked.append(given)
        time.sleep(0.2)
        return real(*given)

    monkeypatch.setattr(server, "query_page", slow)
    host = address.removeprefix("http://").split("/")[0]
    line = f"GET /{address.split('/')[3]}/?q=zorvex HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    dropped = [socket.create_connection((HOST, int(host.split(":")[1]))) for _ in range(100)]
    for connection in dropped:
        connection.sendall(line)
    for connection in dropped:
        connection.close()
    started = time.monotonic()
    with urlopen(f"{address}?q=a", timeout=60) as answer:
        assert answer.status == 200
    assert time.monotonic() - started < 10 and len(asked) < 60


def test_rankings_are_those_of_the_model(client, subject):
    query = "the plan of what to spend"
    vector = encode(subject.main.model, [query], "query")
    scores = (subject.main.documents @ vector.T).toarray().ravel()
    best = subject.documents[int(np.argmax(scores))].document_id
    shown = client.get(f"/{TOKEN}/", params={"q": query}).text
    after = shown[shown.index('class="name">after') :]
    assert after[after.index("<summary>") :].startswith(f"<summary>{best}")


def test_a_dense_model_is_refused(tmp_path, tiny_run):
    folder = tmp_path / "dense"
    shutil.copytree(tiny_run / "4-distill", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sparse_adapt.plugins.pages.explorer.subject.is_dense", lambda place: True)
        with pytest.raises(ModelError, match="is a dense model"):
            find_places(str(folder), None, "x")


def test_exact_words_are_shown_and_marked(tiny_run, tmp_path):
    places = find_places(str(tiny_run), None, None)
    model = SparseEncoder.load(places.model)
    add_exact_words(model, lambda: read_documents(places.corpus), WordOptions(heaviest=20))
    model.save(tmp_path / "model")
    subject = explored(ExploredPlaces(str(tmp_path / "model"), places.against, places.corpus))
    app = make_app(subject, TOKEN, PORT, tmp_path)
    client = TestClient(app, base_url=f"http://{HOST}:{PORT}", follow_redirects=False)
    shown = client.get(f"/{TOKEN}/", params={"q": "who owns the database"}).text
    assert "=databas" in shown and "exact word" in shown
    assert "=zorvex" in client.get(f"/{TOKEN}/document?name=d07").text
    token_id = next(iter(subject.terms))
    assert "nearest tokens" in client.get(f"/{TOKEN}/term/{token_id}", params={"amount": "0.5"}).text


def test_background_queries_that_activate_a_term_are_one_figure_everywhere(
    sparse_adapt, tiny_run, zorvex_collection, tmp_path
):
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    base, final = SparseEncoder.load(tiny_run / "1-extend"), SparseEncoder.load(run / "4-distill")
    activity = Activity.of(final, background_queries(), "query")
    with torch.no_grad():  # so that half of them do
        final.output_bias[activity.tokens] -= float(np.median(activity.logits))
    shutil.rmtree(run / "4-distill")
    final.save(run / "4-distill")
    report = json.loads((run / "report.json").read_text())
    report["retention"] = measure_retention(base, final, list(read_documents(zorvex_collection)))
    (run / "report.json").write_text(json.dumps(report))
    share = report["retention"]["background texts"]["model"]["false_activations"]
    assert 0.3 < share < 0.7

    words = ["--model", run / "4-distill", "--lower-bias", "zorvex=0", "-o", tmp_path / "calm", "--json"]
    assert json.loads(sparse_adapt("calibrate", *words).out)["figures"][0]["before"] == share
    looked_at = read_subject(run)
    assert [each.background for each in find_terms(looked_at)] == [share]
    left = next(part for part in verdict_section(looked_at).parts if part.kind == "fold").parts[0].table
    assert left.rows[-1]["after"] == share
    there = explored(find_places(str(run), None, None))
    (table,) = terms_page(there, Addresses(TOKEN)).sections[0].parts
    assert [row["background"] for row in table.table.rows] == [share]
