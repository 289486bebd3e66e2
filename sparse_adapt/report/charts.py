"""Pictures of five kinds, drawn as SVG: lines, differences, strips, columns, and bars with intervals.

A scale of lines and bars always holds 0, so that a change looks as large as it is.
"""

from collections.abc import Mapping, Sequence
from colorsys import hls_to_rgb
from itertools import pairwise
from typing import cast

from sparse_adapt.report.drawing import (
    BAD,
    GOOD,
    INK,
    QUIET,
    SERIES,
    SMALL,
    Scale,
    Sheet,
    cut,
    width_of,
)
from sparse_adapt.report.sections import Picture
from sparse_adapt.report.tables import Row

WIDTH, HEIGHT = 400, 165  # of a picture with all that is around it; of what is drawn by lines and columns
WIDE = 760  # of a picture with many names
EDGE, RIGHT = 8, 16  # between a picture's marks and its words; beside an axis, for half of its last number
ROW = 26  # of a name
NAME = 158  # width of a name beside a row
NAMES = 8  # of columns, below them
RADIUS = 4.0
DASHES = ("", "6 3", "2 2", "8 2 2 2")  # of lines, a new one when the colours are used up
SLANT = -35


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
    """A line for each value of `by`; `order` names the places of x where these are words, which then have points.

    The legend says where each line with points begins and ends.
    """
    sheet, names = Sheet(WIDTH), list(dict.fromkeys(str(row[by]) for row in rows))
    top = sheet.head(title, y)
    up = Scale.of([_of(row, y) for row in rows], top + HEIGHT, top)
    left = _numbers_beside(sheet, up)
    across, bottom = _places_below(sheet, rows, x, order, left, top + HEIGHT)
    for number, name in enumerate(names):
        found = [row for row in rows if str(row[by]) == name]
        points = [
            (across[str(row[x])], up.at(_of(row, y)), f"{name}, {row[x]}: {_of(row, y):.4g}") for row in found
        ]
        _line(sheet, number, points, marked=order is not None)
    if len(names) > 1 or order is not None:
        ends = {name: [_of(row, y) for row in rows if str(row[by]) == name] for name in names}
        shown = [
            f"{name} {values[0]:.3g} to {values[-1]:.3g}" if order is not None else name
            for name, values in ends.items()
        ]
        bottom = _legend(sheet, shown, bottom, marked=order is not None)
    return Picture(sheet.written(bottom, description), description)


def differences(title: str, rows: Sequence[Row], *, description: str, unit: str = "difference") -> Picture:
    """A point and its interval for each row: `name`, `value`, `low`, `high`; green above 0, red below."""
    sheet = Sheet(WIDTH)
    top = sheet.head(title, unit)
    values = [_of(row, key) for row in rows for key in ("low", "high", "value")]
    across = _names_beside(sheet, [str(row["name"]) for row in rows], values, top, right=62)
    sheet.rule(across.at(0), top, across.at(0), top + ROW * len(rows), stroke=QUIET, stroke_dasharray="3 3")
    for number, row in enumerate(rows):
        middle, low, high = top + ROW * (number + 0.5), _of(row, "low"), _of(row, "high")
        tone = GOOD if low > 0 else BAD if high < 0 else QUIET
        tip = f"{row['name']}: {_of(row, 'value'):+.3f}, from {low:+.3f} to {high:+.3f}"
        sheet.rule(across.at(low), middle, across.at(high), middle, stroke=tone, stroke_width=2)
        sheet.add("circle", "", tip, cx=across.at(_of(row, "value")), cy=middle, r=RADIUS + 1, fill=tone)
        sheet.text(WIDTH, middle + RADIUS, f"{_of(row, 'value'):+.3f}", text_anchor="end", fill=tone)
    return Picture(sheet.written(top + ROW * len(rows) + SMALL + EDGE, description), description)


def strip(title: str, rows: Sequence[Row], *, description: str, unit: str = "weight") -> Picture:
    """A tick for each row: `value` in the group `name`."""
    sheet, names = Sheet(WIDTH), list(dict.fromkeys(str(row["name"]) for row in rows))
    top = sheet.head(title, unit)
    across = _names_beside(sheet, names, [_of(row, "value") for row in rows], top)
    for number, name in enumerate(names):
        places = [across.at(_of(row, "value")) for row in rows if str(row["name"]) == name]
        ticks = "".join(f"M{place:.1f} {top + ROW * number + 5:.0f}v{ROW - 10}" for place in places)
        sheet.add("path", d=ticks, stroke=SERIES[0], stroke_width=2, stroke_opacity=0.6)
    return Picture(sheet.written(top + ROW * len(names) + SMALL + EDGE, description), description)


def columns(title: str, rows: Sequence[Row], *, description: str, unit: str) -> Picture:
    """A column for each row: `name`, `value`, and `marked` for those that stand out; some of the names are told."""
    sheet = Sheet(WIDTH)
    top = sheet.head(title, unit)
    up = Scale.of([_of(row, "value") for row in rows], top + HEIGHT, top)
    left = _numbers_beside(sheet, up)
    width, longest = (WIDTH - left) / max(1, len(rows)), 0.0
    sheet.rule(left, up.at(0), WIDTH, up.at(0), stroke=QUIET)
    for number, row in enumerate(rows):
        begin, value = left + width * number, _of(row, "value")
        upper, lower = min(up.at(value), up.at(0)), max(up.at(value), up.at(0))
        colour = SERIES[1] if row.get("marked") else SERIES[0]
        box = {"x": begin + width * 0.1, "width": width * 0.8, "y": upper, "height": max(0.5, lower - upper)}
        sheet.add("rect", "", f"{row['name']}: {value:.4g}", fill=colour, **box)
        if number % max(1, len(rows) // NAMES) == 0:
            name = cut(str(row["name"]), 90)
            longest = max(longest, width_of(name))
            _slanted(sheet, begin + width / 2, top + HEIGHT + SMALL + 2, name)
    return Picture(sheet.written(top + HEIGHT + SMALL + 8 + 0.62 * longest, description), description)


def intervals(title: str, rows: Sequence[Row], *, description: str, unit: str) -> Picture:
    """Grouped bars with intervals: `group`, `name`, `value`, `low`, `high`; the legend stands below, whole."""
    sheet, names = Sheet(WIDE), list(dict.fromkeys(str(row["name"]) for row in rows))
    groups = list(dict.fromkeys(str(row["group"]) for row in rows))
    top, bar, colours = sheet.head(title, unit), 14, _colours(len(names))
    room = bar * len(names) + EDGE
    values = [_of(row, key) for row in rows for key in ("low", "high", "value")]
    across = _names_beside(sheet, groups, values, top, room=room)
    for row in rows:
        number = names.index(str(row["name"]))
        upper = top + room * groups.index(str(row["group"])) + EDGE / 2 + bar * number
        begin, end = sorted((across.at(0), across.at(_of(row, "value"))))
        tip = f"{row['group']}, {row['name']}: {_of(row, 'value'):.4g}"
        sheet.add(
            "rect", "", tip, x=begin, y=upper + 1, width=end - begin, height=bar - 2, fill=colours[number]
        )
        middle = upper + bar / 2
        sheet.rule(across.at(_of(row, "low")), middle, across.at(_of(row, "high")), middle, stroke=INK)
    bottom = top + room * len(groups) + SMALL + EDGE
    for number, name in enumerate(names):
        sheet.add("rect", x=0, y=bottom + 18 * number + 4, width=11, height=11, fill=colours[number])
        sheet.text(18, bottom + 18 * number + 14, name)
    return Picture(sheet.written(bottom + 18 * len(names) + 4, description), description)


# -- axes -----------------------------------------------------------------------------------------


def _numbers_beside(sheet: Sheet, up: Scale) -> float:
    """Numbers of an upright axis and a line for each; the place where the drawing begins beside them."""
    left = max(width_of(label) for _, label in up.ticks()) + EDGE
    for place, label in up.ticks():
        sheet.rule(left, place, sheet.width, place)
        sheet.text(left - EDGE, place + RADIUS, label, text_anchor="end")
    return left


def _names_beside(
    sheet: Sheet,
    names: Sequence[str],
    values: Sequence[float],
    top: float,
    *,
    right: float = RIGHT,
    room: float = ROW,
) -> Scale:
    """Names beside rows, and the numbers of the axis below these, with a line for each."""
    left = min(NAME, max(map(width_of, names), default=0.0)) + EDGE
    across, bottom = Scale.of(values, left, sheet.width - right), top + room * len(names)
    for place, label in across.ticks():
        sheet.rule(place, top, place, bottom)
        sheet.text(place, bottom + SMALL + 2, label, text_anchor="middle")
    for number, name in enumerate(names):
        sheet.text(left - EDGE, top + room * (number + 0.5) + RADIUS, cut(name, NAME), text_anchor="end")
    return across


def _places_below(
    sheet: Sheet, rows: Sequence[Row], x: str, order: Sequence[str] | None, left: float, bottom: float
) -> tuple[Mapping[str, float], float]:
    """The place of each value of x, named below the drawing; and the place below the names.

    Names are level where no two of them touch, else slanted.
    """
    if order is None:
        across = Scale.of([_of(row, x) for row in rows], left, sheet.width - RIGHT)
        for place, label in across.ticks():
            sheet.text(place, bottom + SMALL + 4, label, text_anchor="middle")
        sheet.text(sheet.width, bottom + 2 * SMALL + 6, x, text_anchor="end", fill=QUIET)
        return {str(row[x]): across.at(_of(row, x)) for row in rows}, bottom + 2 * SMALL + 2 * EDGE
    names = [cut(name, 120) for name in order]
    room = (sheet.width - left) / max(1, len(order))
    places = {name: left + room * (number + 0.5) for number, name in enumerate(order)}
    widths = [width_of(name) for name in names]
    level = all((one + next_) / 2 <= room - 4 for one, next_ in pairwise([room - 8, *widths, room - 8]))
    for name, place in zip(names, places.values(), strict=True):
        if level:
            sheet.text(place, bottom + SMALL + 4, name, text_anchor="middle")
        else:
            _slanted(sheet, place, bottom + SMALL, name)
    return places, bottom + SMALL + EDGE + (4 if level else 0.62 * max(widths))


def _slanted(sheet: Sheet, x: float, y: float, name: str) -> None:
    sheet.text(x, y, name, text_anchor="end", transform=f"rotate({SLANT} {x:.1f} {y:.1f})")


# -- marks ----------------------------------------------------------------------------------------


def _line(sheet: Sheet, number: int, points: Sequence[tuple[float, float, str]], *, marked: bool) -> None:
    """The line of a series by its number, with a mark of its own at each point where it is `marked`."""
    colour, dash = SERIES[number % len(SERIES)], DASHES[number // len(SERIES) % len(DASHES)]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points)
    dashed = {"stroke_dasharray": dash} if dash else {}
    sheet.add("path", d=path, fill="none", stroke=colour, stroke_width=2, **dashed)
    for x, y, tip in points if marked else ():
        _mark(sheet, number, x, y, tip)


def _mark(sheet: Sheet, number: int, x: float, y: float, tip: str = "") -> None:
    """A circle, a square, a triangle or a diamond, so that nobody has to tell colours apart."""
    colour, r = SERIES[number % len(SERIES)], RADIUS
    match number % 4:
        case 0:
            sheet.add("circle", "", tip, cx=x, cy=y, r=r, fill=colour)
        case 1:
            sheet.add(
                "rect", "", tip, x=x - r + 0.5, y=y - r + 0.5, width=2 * r - 1, height=2 * r - 1, fill=colour
            )
        case shape:
            corners = (
                ((0, -r), (r, r), (-r, r))
                if shape == 2
                else ((0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0))
            )
            sheet.add(
                "polygon",
                "",
                tip,
                points=" ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in corners),
                fill=colour,
            )


def _legend(sheet: Sheet, names: Sequence[str], top: float, *, marked: bool) -> float:
    """A mark and a name for each series, as many beside each other as fit; the place below them."""
    widest = max(map(width_of, names)) + 26
    beside = max(1, int(sheet.width // widest))
    for number, name in enumerate(names):
        x, y = (number % beside) * widest, top + 18 * (number // beside) + 12
        if marked:
            _mark(sheet, number, x + 8, y - RADIUS)
        else:
            _line(sheet, number, [(x, y - RADIUS, ""), (x + 16, y - RADIUS, "")], marked=False)
        sheet.text(x + 20, y, cut(name, sheet.width - 20))
    return top + 18 * -(-len(names) // beside) + 4


def _colours(count: int) -> list[str]:
    """A colour for each of some names: the page's own, or around the circle where there are more."""
    if count <= len(SERIES):
        return list(SERIES[:count])
    around = [hls_to_rgb(number / count, 0.5, 0.45) for number in range(count)]
    return ["#" + "".join(f"{round(255 * part):02x}" for part in colour) for colour in around]


def _of(row: Row, key: str) -> float:
    """A number of a row."""
    return float(cast("float", row.get(key) or 0.0))
