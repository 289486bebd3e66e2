"""Pictures as specifications of Vega-Lite, which `html` draws.

Colours stand in a specification as signs of ours, which become the style sheet's variables, so one picture serves a
light page and a dark one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sparse_adapt.report.printable import printable
from sparse_adapt.report.sections import Picture
from sparse_adapt.report.tables import Row

COLOURS = {
    "#010101": "var(--ink)",
    "#020202": "var(--quiet)",
    "#030303": "var(--line)",
    "#040404": "var(--first)",
    "#050505": "var(--second)",
    "#060606": "var(--third)",
    "#070707": "var(--fourth)",
    "#080808": "var(--good)",
    "#090909": "var(--bad)",
}
LIGHT = ("#1c2024", "#5a6470", "#d5dae0", "#2166ac", "#b2460e", "#1b7837", "#762a83", "#1a6b2f", "#b3261e")
INK, QUIET, LINE, FIRST, SECOND, THIRD, FOURTH, GOOD, BAD = COLOURS
SERIES = (FIRST, SECOND, THIRD, FOURTH)
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2])  # of lines, a new one when the colours are used up
MANY = "tableau20"  # colours of Vega's own, where there are more names than ours
NAMES = 8  # of columns, below them
SHAPES = ("circle", "square", "triangle-up", "diamond")
WIDTH, HEIGHT = 300, 190  # of a drawing without its axes; its whole fits a narrow screen
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
CONFIG = {
    "background": None,
    "font": "system-ui, sans-serif",
    "padding": {"left": 16, "top": 5, "right": 12, "bottom": 5},
    "view": {"stroke": None},
    "title": {"color": INK, "anchor": "start", "fontSize": 13},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": LINE,
        "domainColor": QUIET,
        "tickColor": QUIET,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelLimit": 130,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 11,
        "orient": "bottom",
        "columns": 2,
        "columnPadding": 30,
        "labelLimit": 200,
    },
}


def lines(
    title: str,
    rows: Sequence[Row],
    x: str,
    y: str,
    by: str,
    *,
    order: Sequence[str] | None = None,
    description: str,
) -> Picture:
    """A line and points for each value of `by`; `order` names the places of x where these are words."""
    names = list(dict.fromkeys(str(row[by]) for row in rows))
    if order is None:
        across = _number("x", x) | {"axis": {"tickCount": 5}}
    else:
        across = _words("x", sort=list(map(printable, order)), axis={"labelAngle": -35})
    encoding = {
        "x": across,
        "y": _number("y", y) | {"scale": {"zero": False}},
        **_series(names, points=order is not None),
    }
    mark = {"type": "line", "point": {"size": 45, "filled": True} if order else False}
    values = _values(rows, {"x": x, "y": y, "by": by})
    return _picture(title, description, values, HEIGHT, mark=mark, encoding=encoding)


def differences(title: str, rows: Sequence[Row], *, description: str, unit: str = "difference") -> Picture:
    """A point and its interval for each row: `name`, `value`, `low`, `high`; green above 0, red below."""
    values = _values(rows, {each: each for each in ("name", "value", "low", "high")})
    for value in values:
        value["tone"] = "gain" if value["low"] > 0 else "loss" if value["high"] < 0 else "open"
    scale = {"domain": ["gain", "open", "loss"], "range": [GOOD, QUIET, BAD]}
    shared = {
        "y": _words("name"),
        "color": {"field": "tone", "type": "nominal", "scale": scale, "legend": None},
    }
    between = {"x": _number("low", unit), "x2": {"field": "high"}}
    layer = [
        {
            "mark": {"type": "rule", "color": QUIET, "strokeDash": [3, 3]},
            "encoding": {"x": {"datum": 0, "type": "quantitative"}},
        },
        {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {**between, **shared}},
        {
            "mark": {"type": "point", "filled": True, "size": 70},
            "encoding": {"x": {"field": "value", "type": "quantitative"}, **shared},
        },
    ]
    return _picture(title, description, values, {"step": 30}, WIDTH - 60, layer=layer)


def strip(title: str, rows: Sequence[Row], *, description: str, unit: str = "weight") -> Picture:
    """A tick for each row: `value` in the group `name`."""
    values = _values(rows, {"name": "name", "value": "value"})
    mark = {"type": "tick", "color": FIRST, "opacity": 0.6, "thickness": 2}
    encoding = {"x": _number("value", unit), "y": _words("name")}
    return _picture(title, description, values, {"step": 26}, WIDTH - 60, mark=mark, encoding=encoding)


def columns(title: str, rows: Sequence[Row], *, description: str, unit: str) -> Picture:
    """A column for each row: `name`, `value`, and `marked` for those that stand out; some of the names are told."""
    values = _values(rows, {"name": "name", "value": "value", "marked": "marked"})
    some = [value["name"] for value in values[:: max(1, len(values) // NAMES)]]
    scale = {"domain": [True, False], "range": [SECOND, FIRST]}
    encoding = {
        "x": _words("name", axis={"values": some, "labelAngle": -50}),
        "y": _number("value", unit),
        "color": {"field": "marked", "type": "nominal", "scale": scale, "legend": None},
    }
    return _picture(title, description, values, HEIGHT, mark="bar", encoding=encoding)


def intervals(title: str, rows: Sequence[Row], *, description: str, unit: str) -> Picture:
    """Grouped bars with intervals: `group`, `name`, `value`, `low`, `high`; the legend stands below, whole."""
    names = list(dict.fromkeys(str(row["name"]) for row in rows))
    shared = {"y": _words("group"), "yOffset": {"field": "name", "sort": None}}
    values = _values(rows, {each: each for each in ("group", "name", "value", "low", "high")})
    colours = {"range": list(SERIES[: len(names)])} if len(names) <= len(SERIES) else {"scheme": MANY}
    scale = {"domain": list(map(printable, names)), **colours}
    legend = {"columns": 1, "labelLimit": 0}
    colour = {"field": "name", "type": "nominal", "scale": scale, "title": None, "legend": legend}
    between = {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}
    layer = [
        {"mark": "bar", "encoding": {**shared, "x": _number("value", unit), "color": colour}},
        {"mark": {"type": "rule", "color": INK}, "encoding": {**shared, **between}},
    ]
    return _picture(title, description, values, {"step": 14}, 2 * WIDTH, layer=layer)


def _picture(
    title: str,
    description: str,
    values: Sequence[Mapping[str, object]],
    height: int | dict[str, int],
    width: int = WIDTH,
    **drawn: object,
) -> Picture:
    """A specification of these values under a title; `drawn` says how they are."""
    size = {"width": width, "height": height}
    return Picture({"title": printable(title), **size, "data": {"values": values}, **drawn}, description)


def _number(field: str, unit: str) -> dict[str, object]:
    """An axis of numbers."""
    return {"field": field, "type": "quantitative", "title": unit}


def _words(field: str, *, sort: Sequence[str] | None = None, **more: object) -> dict[str, object]:
    """An axis of names in their order."""
    return {"field": field, "type": "ordinal", "sort": sort, "title": None, **more}


def _series(names: Sequence[str], *, points: bool) -> dict[str, object]:
    """A colour for each name, and a shape or a dash, so that nobody has to tell colours apart."""
    rows = range(len(names))
    scales: dict[str, object] = {
        "color": [SERIES[row % len(SERIES)] for row in rows],
        "strokeDash": [DASHES[row // len(SERIES) % len(DASHES)] for row in rows],
    }
    if points:
        scales["shape"] = [SHAPES[row % len(SHAPES)] for row in rows]
    shared = {"field": "by", "type": "nominal", "title": None}
    legend: dict[str, object] = {} if len(names) > 1 else {"legend": None}
    domain = list(map(printable, names))
    return {
        channel: {**shared, **legend, "scale": {"domain": domain, "range": values}}
        for channel, values in scales.items()
    }


def _values(rows: Sequence[Row], fields: Mapping[str, str]) -> list[dict[str, Any]]:
    """The fields that a picture shows, under its own names; strings as a page may show them."""
    return [
        {
            name: printable(value) if isinstance(value := row.get(key), str) else value
            for name, key in fields.items()
        }
        for row in rows
    ]
