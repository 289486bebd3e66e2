"""Pages in a real browser: every part is there, nothing is asked of a network, and everybody can read them."""

from itertools import pairwise

import pytest
from browsing import SIZES, browsing

from sparse_adapt.plugins.pages.html import written
from sparse_adapt.plugins.pages.run import PAGE_FILE, write_run_page
from sparse_adapt.plugins.pages.verdict import COLUMNS
from sparse_adapt.report.sections import (
    Bar,
    BarList,
    CommandText,
    Facts,
    Heat,
    Section,
    TableRows,
    Warm,
    WebPage,
)
from sparse_adapt.report.tables import Column, Table

TITLES = [
    "Verdict",
    "Stages",
    "Terms",
    "Queries",
    "Where the weight comes from",
    "How to make it again",
    "Words of this page",
]


@pytest.fixture(scope="module")
def browser():
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def address(tmp_path_factory, tiny_run):
    path = tmp_path_factory.mktemp("page") / "page.html"
    return write_run_page(tiny_run, path).as_uri()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_a_page_fits_and_everybody_can_read_it(browser, address, width, scheme):
    with browser.open(address, width, scheme) as seen:
        assert seen.page.locator("h2").all_inner_texts() == TITLES
        assert seen.too_wide() <= 0
        for fold in seen.page.locator("summary").all():
            if fold.is_visible():
                fold.click()
        assert seen.too_wide() <= 0
        dark = seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 28)"
        assert dark == (scheme == "dark")
        assert seen.page.locator("svg[role=img]").count() >= 4
        assert seen.asked == [address]
        assert seen.console == []


def test_without_a_script_nothing_is_missing(browser, address):
    with browser.open(address) as with_script, browser.open(address, script=False) as without:
        texts = [seen.page.locator("main").inner_text() for seen in (with_script, without)]
        assert texts[0] == texts[1]


def test_the_keyboard_reaches_every_fold(browser, address):
    with browser.open(address) as seen:
        for _ in range(60):
            seen.page.keyboard.press("Tab")
            if seen.page.evaluate("document.activeElement.tagName") == "SUMMARY":
                break
        before = seen.page.evaluate("document.activeElement.parentElement.open")
        seen.page.keyboard.press("Enter")
        assert seen.page.evaluate("document.activeElement.parentElement.open") != before


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1600, "light")])
def test_an_accessibility_checker_finds_nothing_serious(browser, address, width, scheme):
    with browser.open(address, width, scheme) as seen:
        seen.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert seen.finds() == []


@pytest.fixture
def show(browser, tmp_path):
    """Opens a page of some parts."""

    def opened(*parts, width=380):
        path = tmp_path / "page.html"
        path.write_text(written(WebPage("t", [Section("s", "", parts)])), encoding="utf-8")
        return browser.open(path.as_uri(), width)

    return opened


@pytest.mark.parametrize("width", [380, 1100])
def test_a_word_beside_a_bar_stays_whole_and_the_bar_as_long_as_the_others(show, width):
    names = ["short", "misconfigurations", "gatrocraptic", "an internationalisation"]
    with show(BarList("", [Bar(name, "1.00", 1.0, "note") for name in names]), width=width) as seen:
        lines = seen.page.locator(".label").evaluate_all(
            """all => all.map(label => {
                const range = document.createRange(); range.selectNodeContents(label);
                return range.getClientRects().length})"""
        )
        assert lines == [1, 1, 1, 1]
        boxes = [track.bounding_box() for track in seen.page.locator(".track").all()]
        assert len({(box["x"], box["width"]) for box in boxes}) == 1
        assert seen.too_wide() <= 0


def test_gains_and_losses_fit_a_telephone(show):
    figures = {"base": 0.702, "model": 0.988, "difference": 0.400, "low": 0.278, "high": 0.522}
    rows = [{"kind": kind, "queries": 56, **figures} for kind in ("all queries", "semantic")]
    with show(TableRows(Table("Gained and lost, in figures", COLUMNS, rows))) as seen:
        over = seen.page.locator(".scroll").evaluate("each => each.scrollWidth - each.clientWidth")
        assert over <= 0


def test_a_wide_table_on_a_telephone_keeps_names_beside_their_figures(show):
    columns = (Column("name", "", "text"), *(Column(str(each), f"stage {each}") for each in range(9)))
    figures = {str(each): 1_000_000 for each in range(9)}
    rows = [{"name": "weights"}, {"name": "  gatrocraptic-approvals", **figures}]
    with show(TableRows(Table("", columns, rows))) as seen:
        tops = seen.page.locator("tbody tr:last-child td").evaluate_all(
            """all => all.map(each => {
                const range = document.createRange(); range.selectNodeContents(each);
                return Math.round(range.getClientRects()[0].top)})"""
        )
        assert len(set(tops)) == 1
        name = seen.page.locator("td.part")
        before = name.bounding_box()
        seen.page.locator(".scroll").evaluate("each => each.scrollLeft = 200")
        assert name.bounding_box() == before and before["x"] >= 0
        padding = name.evaluate("each => getComputedStyle(each).paddingLeft")
        assert float(padding.removesuffix("px")) > 5
        lines = name.evaluate("each => getComputedStyle(each.closest('table')).borderCollapse")
        assert lines == "separate"  # a line of one that stands still is else drawn where its cell was


@pytest.mark.parametrize("width", [380, 1100])
def test_facts_in_two_lists_stand_as_in_one(show, width):
    with show(Facts([("a", "1"), ("b", "2")]), Facts([("c", "3")]), width=width) as seen:
        boxes = [each.bounding_box() for each in seen.page.locator("dl div").all()]
        gaps = [below["y"] - above["y"] - above["height"] for above, below in pairwise(boxes)]
        assert gaps[1] == pytest.approx(gaps[0], abs=1)


def test_an_option_of_a_command_is_never_broken(show):
    command = "sparse-adapt demo --corpus gatrocraptic --model splade-tiny --preset default\n" * 3
    with show(CommandText(command)) as seen:
        options = seen.page.locator("pre span")
        assert options.all_inner_texts() == ["--corpus", "--model", "--preset"] * 3
        assert {*options.evaluate_all("all => all.map(each => each.getClientRects().length)")} == {1}
        assert seen.page.locator("code").text_content() == command


def test_a_word_of_cold_pieces_is_never_broken(show):
    pieces = [Warm(text, 0.0) for text in ("ga", "##tro", "##cr", "##ap", "##tic")]
    with show(Heat("t", [Warm("the", 0.0), *pieces] * 30)) as seen:
        tops = seen.page.locator(".heat .tokens").evaluate(
            """each => Array.from(each.children).map(piece => piece.getClientRects()[0].top)"""
        )
        words = [tops[start + 1 : start + 6] for start in range(0, len(tops), 6)]
        assert len(set(tops)) > 5 and all(len(set(word)) == 1 for word in words)


def test_the_figure_behind_a_piece_keeps_apart_from_the_next_piece(show):
    pieces = [Warm("ga", 1.0, "4.19"), Warm("##tro", 0.5, "1.91"), Warm("##cr", 0.0), Warm("##ap", 0.0)]
    with show(Heat("t", pieces, "a note")) as seen:
        boxes = [each.bounding_box() for each in seen.page.locator(".heat span").all()]
        gaps = [right["x"] - left["x"] - left["width"] for left, right in pairwise(boxes)]
        assert gaps[0] >= 0 and gaps[1] >= 0  # behind a figure
        assert gaps[2] < 0  # one word, without a seam
        heights = "all => all.map(each => getComputedStyle(each).lineHeight)"
        assert len(set(seen.page.locator(".heat p:not(.tokens)").evaluate_all(heights))) == 1


@pytest.mark.nightly
def test_the_demos_page_shows_each_part_with_real_figures(browser, demo_run):
    path = demo_run / PAGE_FILE
    assert path.stat().st_size < 3_000_000
    with browser.open(path.as_uri(), 400) as seen:
        text = seen.page.locator("main").inner_text()
        assert seen.page.locator("h2").all_inner_texts() == TITLES
        assert seen.too_wide() <= 0
        for said in (
            "Use it",
            "semantic",
            "ga ##tro ##cr ##ap ##tic",
            "The management of an organisation's spending",
            "False activations: background queries that activate it",
            "Won most",
            "Lost most",
            "sparse-adapt demo --corpus gatrocraptic",
        ):
            assert said in text, said
        assert seen.asked == [path.as_uri()]
        assert seen.console == []
