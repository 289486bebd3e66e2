"""What stands before the text of a Markdown file: front matter in YAML, TOML or JSON, of which the title is read.

Front matter is fields between two lines of `---` or `+++`, or an object of JSON, at the very beginning. Words between
two rules are words: front matter begins right below its first line, and what it holds is fields. Where a value breaks
the language (`title: Flux gate: how it works`) the title is that of its own line.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping

LONGEST = 1 << 16  # signs; a longer one isn't front matter
DEEPEST = 100  # brackets in one another, which parsers take a while for
FENCED = re.compile(
    r"\A\ufeff?(---|\+\+\+)[ \t]*\r?\n(.*?)^(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
FIELD = re.compile(r"[\w\"'{][^\n]*?(?::(?:\s|$)|=\s)")  # how fields begin: a key and its sign
OF_TOML = re.compile(r"\A[\w\"'.-]++[ \t]*+=")  # which needs no blank
TITLE = re.compile(r"^title[ \t]*[:=][ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)


def front_matter(source: str) -> tuple[str, str]:
    """The title that front matter gives, empty where it gives none, and the text behind it."""
    fenced = FENCED.match(source[: LONGEST + 1])
    if fenced is not None:
        parse, field = (_yaml, FIELD) if fenced[1] == "---" else (tomllib.loads, OF_TOML)
        fields = _fields(parse, field, fenced[2])
        if fields is not None:
            return _title(fields, fenced[2]), source[fenced.end() :]
    if source.lstrip("\ufeff").startswith("{"):
        return _of_json(source.lstrip("\ufeff"))
    return "", source


def _fields(
    parse: Callable[[str], object], field: re.Pattern[str], content: str
) -> Mapping[str, object] | None:
    """The fields of front matter, none of one that is broken; None for words that are no front matter."""
    first = content.partition("\n")[0]
    is_empty = not content.strip()
    if not is_empty and (not first.strip() or not (field.match(first) or first.startswith(("#", "[")))):
        return None
    if max(content.count("["), content.count("{")) > DEEPEST:
        return {}
    try:
        fields = parse(content)
    except Exception:  # YAML's and TOML's parsers raise errors of all kinds
        return {}
    return fields if isinstance(fields, Mapping) else {} if fields is None else None


def _yaml(content: str) -> object:
    import yaml

    return yaml.load(content, Loader=yaml.BaseLoader)  # every value as it is written


def _title(fields: Mapping[str, object], content: str) -> str:
    title = next((value for key, value in fields.items() if str(key).casefold() == "title"), None)
    if title is None and not fields and (line := TITLE.search(content)) is not None:
        title = line[1].strip().strip("\"'")
    return " ".join(str(title).split()) if isinstance(title, str | int | float) else ""


def _of_json(source: str) -> tuple[str, str]:
    """The same of an object of JSON with a title; any other is text."""
    try:
        fields, end = json.JSONDecoder().raw_decode(source)
    except (ValueError, RecursionError):
        return "", source
    behind = source[end:]
    is_front = isinstance(fields, dict) and end <= LONGEST and (not behind or behind[0] in "\r\n")
    title = _title(fields, "") if is_front else ""
    return (title, behind) if title else ("", source)
