"""What a reader sees of HTML and of Markdown. Code stays whole, and elements that HTML doesn't know are words.

HTML is read by resiliparse, by HTML5's own rules; Markdown by markdown-it, as CommonMark with tables, behind its front
matter (`front`).
"""

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sparse_adapt.collection.texts import LooseText
from sparse_adapt.errors import InputError, MissingExtraError
from sparse_adapt.plugins.files.front import front_matter

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*+)((?:[^>\"']++|\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))*+)")
WHOLE_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*+)((?:[\s/][^<>]*)?)>")
FILTERED = re.compile(
    "title|textarea|xmp|noembed|noframes|plaintext"
)  # that GitHub shows as they are written
TAG_ALONE = re.compile(r"<[^<>]*>")
ALONE = re.compile("br|dd|dt|hr|li|p")  # tags that stand without an end, and hardly for anything else
QUOTED = re.compile(r"=\s*(?:\"[^\"]*\"|'[^']*')")
SEPARATOR = re.compile(r"[\s/]+")
SELF_CLOSED = re.compile(r"<([A-Za-z]+)([^<>]*)/>")
MOST_ATTRIBUTES, MOST_OPEN = 10_000, 20_000  # of a tag; tags without an end: HTML5 takes their square in time
VOID = re.compile("area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr")
MAY_STAY_OPEN = re.compile(f"{VOID.pattern}|dd|dt|li|p|tbody|td|tfoot|th|thead|tr")
WITHIN_LINES = re.compile(
    "a|abbr|acronym|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|q|rp|rt|ruby|s|samp|small|span"
    "|strike|strong|sub|sup|time|tt|u|var|wbr"
)
BLOCKS = re.compile(
    "address|applet|area|article|aside|audio|base|blockquote|body|br|button|canvas|caption|center|col|colgroup|datalist"
    "|dd|details|dialog|dir|div|dl|dt|embed|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header"
    "|hgroup|hr|html|iframe|img|input|legend|li|link|main|map|math|menu|meta|meter|nav|noframes|noscript|object|ol"
    "|optgroup|option|output|p|param|picture|pre|progress|script|search|section|select|slot|source|style|summary|svg"
    "|table|tbody|td|template|textarea|tfoot|th|thead|title|tr|track|ul|video"
)  # elements of HTML, with those of them above


def text_of_page(markup: str, path: str | Path, *, xml: bool = False) -> LooseText:
    """What a reader without scripts sees of a page or a part of one, in single spaces. `xml`: whether it is XHTML.

    Raises InputError for more open tags or attributes than any page has, MissingExtraError without resiliparse.
    """
    try:
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.html import HTMLTree
    except ImportError as error:
        raise MissingExtraError("resiliparse", "files") from error
    if xml:
        markup = SELF_CLOSED.sub(_closed, markup)
    _check_bounded(markup, path)
    tree = HTMLTree.parse(markup)
    text = extract_plain_text(
        tree, preserve_formatting=False, noscript=True, form_fields=True, links=False, alt_texts=False
    )
    return LooseText(_single(tree.title or ""), _single(text))


def _closed(tag: re.Match[str]) -> str:
    """A tag of XHTML that closes itself, as HTML has it."""
    return tag[0] if VOID.fullmatch(tag[1]) else f"<{tag[1]}{tag[2]}></{tag[1]}>"


def _check_bounded(markup: str, path: str | Path) -> None:
    """Raise InputError for a page that would keep a parser busy for as long as somebody wants."""
    tags = Counter[str]()
    for tag in TAG.finditer(markup):
        tags[tag[2].lower()] += -1 if tag[1] else 1
        if len(tag[3]) > MOST_ATTRIBUTES and len(SEPARATOR.findall(QUOTED.sub("", tag[3]))) > MOST_ATTRIBUTES:
            raise InputError(path, f"a tag has over {MOST_ATTRIBUTES:,} attributes; save the page as text")
    if (
        sum(count for name, count in tags.items() if count > 0 and not MAY_STAY_OPEN.fullmatch(name))
        > MOST_OPEN
    ):
        raise InputError(path, f"over {MOST_OPEN:,} tags have no end; mend the page, or save it as text")


def _single(text: str) -> str:
    return " ".join(text.split())


# -- Markdown ------------------------------------------------------------------------------------


def text_of_markdown(source: str, path: str | Path) -> LooseText:
    """The words of a Markdown file, each block in lines of its own; its title is its front matter's or first heading.

    Raises MissingExtraError without the packages that read it.
    """
    title, body = front_matter(source)
    tokens = _markdown().parse(body)
    closed = _closed_in(tokens)
    if tokens and tokens[0].type == "heading_open":
        heading = _single("".join(_inline(tokens[1], closed)))
        if title in ("", heading):
            title, tokens = heading, tokens[3:]
    return LooseText(
        title, "\n".join(filter(None, (_block(token, closed, path).strip() for token in tokens)))
    )


@cache
def _markdown() -> "MarkdownIt":
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise MissingExtraError(str(error.name), "files") from error
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _block(token: "Token", closed: Container[str], path: str | Path) -> str:
    if token.type == "html_block":
        return text_of_page(_with_words(token.content, closed), path).text
    return "".join(_inline(token, closed)) if token.type == "inline" else token.content


def _inline(token: "Token", closed: Container[str]) -> Iterator[str]:
    """The words of a line of Markdown: of a link its text, of a picture what is said for it."""
    for child in token.children or ():
        if child.type in ("softbreak", "hardbreak"):
            yield "\n"
        elif child.type == "html_inline":
            yield _seen(child.content, closed)
        else:
            yield child.content


def _closed_in(tokens: Sequence["Token"]) -> frozenset[str]:
    """The elements of HTML that a file opens and closes somewhere."""
    parts = [token.content for token in tokens if token.type == "html_block"]
    parts += [each.content for token in tokens for each in token.children or () if each.type == "html_inline"]
    tags = [(bool(tag[1]), tag[2].lower()) for part in parts for tag in TAG.finditer(part)]
    return frozenset({name for end, name in tags if end} & {name for end, name in tags if not end})


def _seen(tag: str, closed: Container[str]) -> str:
    """What a reader sees of a tag in a line: nothing, a gap, or the tag itself where it is only named.

    A tag is only named where HTML doesn't know it, and where nothing closes it and it has no attribute: `<title>`.
    """
    named = TAG.match(tag)
    if named is None:
        return ""
    name = named[2].lower()
    if not _is_markup(named, closed):
        return tag
    return "" if WITHIN_LINES.fullmatch(name) else " "


def _is_markup(tag: re.Match[str], closed: Container[str]) -> bool:
    name = tag[2].lower()
    is_known = WITHIN_LINES.fullmatch(name) or BLOCKS.fullmatch(name)
    is_closed = name in closed and not FILTERED.fullmatch(name)
    return bool(is_known) and bool(is_closed or ALONE.fullmatch(name) or name == "wbr" or "=" in tag[3])


def _with_words(markup: str, closed: Container[str]) -> str:
    """A block of HTML in which tags that are only named are words; one that fills its line never is.

    Markdown may stand between a block's beginning and its end, which then lie in other blocks.
    """

    def shown(tag: re.Match[str]) -> str:
        line = markup[markup.rfind("\n", 0, tag.start()) + 1 :].partition("\n")[0]
        known = WITHIN_LINES.fullmatch(tag[2].lower()) or BLOCKS.fullmatch(tag[2].lower())
        fills = known and not TAG_ALONE.sub("", line).strip()
        return tag[0] if fills or _is_markup(tag, closed) else f"&lt;{tag[0][1:]}"

    return TAG.sub(shown, markup)


def without_markup(text: str, path: str | Path) -> str:
    """A text that holds HTML, as a reader sees it; a text that holds none, as it is.

    A tag is markup where its end is in the text, or HTML needs none: `List<object>`, `cp <source>` and `a<b` are words.
    Raises MissingExtraError for a text with markup, without resiliparse.
    """
    tags = [(tag, tag[2].lower()) for tag in WHOLE_TAG.finditer(text)]
    closed = {name for tag, name in tags if tag[1]} & {name for tag, name in tags if not tag[1]}
    parts, place = list[str](), 0
    for tag, name in tags:
        known = WITHIN_LINES.fullmatch(name) or BLOCKS.fullmatch(name)
        if ALONE.fullmatch(name) or (known and ("=" in tag[3] if VOID.fullmatch(name) else name in closed)):
            parts += [text[place : tag.start()].replace("<", "&lt;"), tag[0]]
            place = tag.end()
    if not parts:
        return text
    return text_of_page("".join([*parts, text[place:].replace("<", "&lt;")]), path).text
