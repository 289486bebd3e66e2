"""A page written out: one template, escaped throughout, with its style sheet inside."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sparse_adapt import __version__
from sparse_adapt.errors import InputError
from sparse_adapt.report.html.parts import Page, Part, spelt

TEMPLATES = Path(__file__).with_name("templates")
STYLE_FILE, SCRIPT_FILE = "page.css", "explore.js"
GENERATOR = '<meta name="generator" content="sparse-adapt">'
HEAD = 4_000  # characters of a page within which it says what it is


def written(page: Page) -> str:
    """A page that needs no other file, and that no text in it can make run anything."""
    return (
        _environment()
        .get_template("page.html")
        .render(page=page, style=Markup(style_sheet()), version=__version__, style_link="", script_link="")
    )


def served(page: Page, style_link: str, script_link: str) -> str:
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


def fragment(parts: Sequence[Part]) -> str:
    """Parts for a notebook: no page around them, styles within their own box."""
    return _environment().get_template("fragment.html").render(given=parts, style=Markup(style_sheet()))


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
    environment.filters["drawn"] = Markup  # of pictures alone, which `pictures` drew
    return environment


def _finalised(value: object) -> object:
    """Every string with the signs spelt out that would turn text around; markup of our own as it is."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else spelt(value)
