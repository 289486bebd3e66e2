"""Pictures: drawn without any other package, by the page's colours, on scales that exaggerate nothing."""

import re
import sys
from xml.etree import ElementTree

import pytest
from test_html import HOSTILE, Tags

from sparse_adapt.errors import MissingExtraError
from sparse_adapt.plugins.pages.html import png_file, svg_file, written
from sparse_adapt.report import charts
from sparse_adapt.report.drawing import CUT, Scale, cut, width_of
from sparse_adapt.report.printable import printable_line
from sparse_adapt.report.sections import Section, WebPage

STAGES = ["base", "extend", "warmup"]


def draw_all(text):
    rows = [{"x": place, "y": place / 2, "by": text, "stage": f"{text}{place}"} for place in range(3)]
    named = [{"name": text, "value": 0.5, "low": 0.1, "high": 0.9, "group": text, "marked": True}]
    return [
        charts.lines(text, rows, "x", "y", "by", description=text),
        charts.lines(text, rows, "stage", "y", "by", order=[row["stage"] for row in rows], description=text),
        charts.differences(text, named, description=text, unit=text),
        charts.strip(text, named, description=text, unit=text),
        charts.columns(text, named, description=text, unit=text),
        charts.intervals(text, named, description=text, unit=text),
    ]


def elements(picture, name):
    """The elements of a kind, in their order."""
    return ElementTree.fromstring(picture.svg).findall(f"{{http://www.w3.org/2000/svg}}{name}")


def test_pictures_are_escaped_and_take_the_colours_of_the_page():
    for picture in draw_all(HOSTILE):
        tags = Tags()
        tags.feed(picture.svg)
        assert tags.open == []
        assert {tag for tag, _ in tags.seen} <= {
            *("svg", "text", "line", "path", "circle", "rect", "polygon", "title")
        }
        assert tags.seen[0][1]["role"] == "img"
        assert tags.seen[0][1]["aria-label"] == printable_line(HOSTILE)
        assert "\u202e" not in picture.svg and "\x1b" not in picture.svg
        assert "var(--ink)" in picture.svg and "style=" not in picture.svg
        assert "http" not in picture.svg.replace("http://www.w3.org/", "")


def test_a_page_has_pictures_where_nothing_that_draws_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    pictures = draw_all("a")
    assert written(WebPage("t", [Section("s", "S", pictures)])).count("<svg") == len(pictures)
    with pytest.raises(MissingExtraError, match=r"pip install 'sparse-adapt\[pages\]'"):
        png_file(pictures[0])


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([194.0, 200.0], ["0", "50", "100", "150", "200"]),
        ([0.49, 0.98], ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        ([-0.1, 0.62], ["-0.20", "0.00", "0.20", "0.40", "0.60", "0.80"]),
        ([0.0], ["0", "1"]),
        ([1_900_000.0], ["0", "500,000", "1,000,000", "1,500,000", "2,000,000"]),
        ([-3.0, -1.0], ["-3", "-2", "-1", "0"]),
    ],
)
def test_a_scale_is_round_and_holds_every_value_and_zero(values, labels):
    scale = Scale.of(values, 100.0, 0.0)
    assert [label for _, label in scale.ticks()] == labels
    assert all(0.0 <= scale.at(value) <= 100.0 for value in (0.0, *values))


def test_two_percent_are_no_cliff():
    rows = [
        {"model": name, "weights": value, "kind": "a document"}
        for name, value in zip(STAGES, (194, 200, 196), strict=True)
    ]
    picture = charts.lines("Weights", rows, "model", "weights", "kind", order=STAGES, description="d")
    heights = [float(point.get("cy")) for point in elements(picture, "circle")[:3]]
    assert 0 < max(heights) - min(heights) < 0.05 * charts.HEIGHT
    assert "a document 194 to 196" in picture.svg  # the legend


@pytest.mark.parametrize(
    ("order", "level"),
    [
        (["base", "extend", "warmup", "dictionary", "distill"], True),
        (["base", "a dictionary", "dictionaries", "distill", "all"], False),  # two that would touch
        (["dictionaries of", "a", "b", "c", "d"], False),  # that would leave the picture
    ],
)
def test_names_are_level_where_no_two_of_them_touch(order, level):
    rows = [{"model": name, "y": 0.25, "kind": "k"} for name in order]
    picture = charts.lines("t", rows, "model", "y", "kind", order=order, description="d")
    slanted = [text.text for text in elements(picture, "text") if text.get("transform")]
    assert slanted == ([] if level else order)


def test_each_series_has_a_mark_of_its_own():
    rows = [{"model": name, "y": row / 4, "kind": f"k{row}"} for row in range(4) for name in STAGES]
    picture = charts.lines("t", rows, "model", "y", "kind", order=STAGES, description="d")
    assert [len(elements(picture, name)) for name in ("circle", "rect", "polygon")] == [4, 4, 8]  # legend too
    many = [{"step": step, "y": row, "kind": f"k{row}"} for row in range(6) for step in range(3)]
    paths = elements(charts.lines("t", many, "step", "y", "kind", description="d"), "path")
    dashes = [each.get("stroke-dasharray") for each in paths]
    assert dashes == 2 * [*[None] * 4, *["6 3"] * 2]  # the lines, then the legend


def test_a_difference_is_coloured_by_its_whole_interval():
    rows = [
        {"name": "gain", "value": 0.2, "low": 0.1, "high": 0.3},
        {"name": "open", "value": 0.2, "low": -0.1, "high": 0.3},
        {"name": "loss", "value": -0.2, "low": -0.3, "high": -0.1},
    ]
    points = elements(charts.differences("t", rows, description="t"), "circle")
    assert [each.get("fill") for each in points] == ["var(--good)", "var(--quiet)", "var(--bad)"]


def test_bars_begin_at_zero_on_either_side():
    rows = [{"name": "a", "value": 4.0}, {"name": "b", "value": -2.0, "marked": True}]
    up, down = elements(charts.columns("t", rows, description="t", unit="u"), "rect")
    assert float(up.get("y")) + float(up.get("height")) == pytest.approx(float(down.get("y")), abs=0.2)
    assert float(up.get("height")) == pytest.approx(2 * float(down.get("height")), abs=0.2)
    assert (up.get("fill"), down.get("fill")) == ("var(--first)", "var(--second)")


def test_a_picture_of_its_own_is_drawn_on_white_with_its_intervals():
    pytest.importorskip("vl_convert")
    names = [f"a long name of a row, number {row}" for row in range(6)]
    rows = [{"group": "scifact", "name": name, "value": 0.5, "low": 0.4, "high": 0.6} for name in names]
    picture = charts.intervals("", rows, description="t", unit="ndcg@10")
    assert png_file(picture).startswith(b"\x89PNG")
    svg = svg_file(picture)
    assert "var(--" not in svg and "background:white" in svg
    assert all(f">{name}<" in svg for name in names)  # a legend with every name, whole
    assert len(set(re.findall(r'fill="(#\w+)"', svg))) > len(names)


def test_a_long_name_is_cut():
    assert cut("short", 100) == "short"
    assert cut("a name that is much too long", 60).endswith(CUT)
    assert width_of(cut("a name that is much too long", 60)) <= 60
    assert width_of("漢字") > width_of("ab")


def test_a_pointer_that_rests_on_a_mark_is_told_its_figure():
    rows = [{"model": name, "y": 0.25, "kind": f"k{row}"} for row in range(4) for name in STAGES]
    picture = charts.lines("t", rows, "model", "y", "kind", order=STAGES, description="d")
    tips = [tip.text for tip in ElementTree.fromstring(picture.svg).iter("{http://www.w3.org/2000/svg}title")]
    assert tips == [f"k{row}, {name}: 0.25" for row in range(4) for name in STAGES]
    bar = charts.intervals("", [{"group": "a", "name": "b", "value": 0.5}], description="t", unit="u")
    assert "<title>a, b: 0.5</title>" in bar.svg and " tip=" not in bar.svg + picture.svg
