"""Sections as a page: one template, escaped throughout, with its style sheet and its pictures inside.

A page can be read without a script and without another file. Widths and shades are classes of the style sheet, so a
page that forbids inline styles shows the same.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sparse_adapt import __version__
from sparse_adapt.errors import InputError, MissingExtraError
from sparse_adapt.report.printable import printable
from sparse_adapt.report.sections import Part, Picture, Prose, Section, WebPage

TEMPLATES = Path(__file__).with_name("templates")
STYLE_FILE, SCRIPT_FILE = "page.css", "explore.js"
GENERATOR = '<meta name="generator" content="sparse-adapt">'
HEAD = 4_000  # characters of a page within which it says what it is
OF_THE_PAGE = re.compile(r"var\(--(\w+)\)")  # colours of a picture
LIGHT = {  # the same of a light page
    "ink": "#1c2024",
    "quiet": "#5a6470",
    "line": "#d5dae0",
    "first": "#2166ac",
    "second": "#b2460e",
    "third": "#1b7837",
    "fourth": "#762a83",
    "good": "#1a6b2f",
    "bad": "#b3261e",
}


def written(page: WebPage) -> str:
    """A page that needs no other file, and that no text in it can make run anything."""
    return (
        _environment()
        .get_template("page.html")
        .render(page=page, style=Markup(style_sheet()), version=__version__, style_link="", script_link="")
    )


def served(page: WebPage, style_link: str, script_link: str) -> str:
    """The same for a server, which hands out the style sheet and the script under these addresses."""
    return (
        _environment()
        .get_template("page.html")
        .render(page=page, style="", version=__version__, style_link=style_link, script_link=script_link)
    )


def read_page(path: Path) -> str:
    """The title of a page that this project wrote. Raises InputError for any other file."""
    start = path.read_text(encoding="utf-8", errors="replace")[:HEAD]
    title = re.search(r"<title>(.*?)</title>", start, re.DOTALL)
    if GENERATOR not in start or title is None:
        raise InputError(path, "not a page of sparse-adapt")
    return title[1]


def fragment(sections: Sequence[Section]) -> str:
    """Sections for a notebook: no page around them, styles within their own box."""
    parts: list[Part] = []
    for section in sections:
        parts += [Prose(section.title, "title")] if section.title else []
        parts += section.parts
    return _environment().get_template("fragment.html").render(content=parts, style=Markup(style_sheet()))


@cache
def style_sheet() -> str:
    """The style sheet, widths of bars and shades of heat included."""
    rules = [(TEMPLATES / STYLE_FILE).read_text(encoding="utf-8")]
    rules += [f".sparse-adapt .w{width}{{width:{width}%}}" for width in range(101)]
    rules += [
        f".sparse-adapt .h{shade}{{background:color-mix(in srgb,var(--heat) {6 * shade}%,transparent)}}"
        for shade in range(1, 11)
    ]
    return "\n".join(rules)


def script() -> str:
    """The script of the explorer's pages; they can be used without."""
    return (TEMPLATES / SCRIPT_FILE).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalised,
    )
    environment.filters["drawn"] = _drawn
    return environment


def _finalised(value: object) -> object:
    """Every string with the signs spelt out that would turn text around; markup of our own as it is."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable(value)


# -- pictures -------------------------------------------------------------------------------------


def _drawn(picture: Picture) -> Markup:
    """A picture as SVG in the page's colours."""
    return Markup(picture.svg)


def svg_file(picture: Picture) -> str:
    """A drawing as a file of its own: in the colours of a light page, on white."""
    svg = OF_THE_PAGE.sub(lambda found: LIGHT[found[1]], picture.svg)
    return svg.replace("<svg ", '<svg style="background:white" ', 1)


def png_file(picture: Picture) -> bytes:
    """The same as PNG. Raises MissingExtraError without the package that makes one."""
    png: bytes = _converter().svg_to_png(svg_file(picture), scale=2)
    return png


def pdf_file(picture: Picture) -> bytes:
    """The same as PDF, for a paper."""
    pdf: bytes = _converter().svg_to_pdf(svg_file(picture))
    return pdf


def _converter() -> ModuleType:
    try:
        import vl_convert
    except ModuleNotFoundError as error:
        raise MissingExtraError("vl-convert-python", "pages") from error
    converter: ModuleType = vl_convert
    return converter
