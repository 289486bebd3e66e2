"""Fill in what the pages show of the tool's own output, from real runs.

    python tools/outputs.py

On these pages, `<!-- output: COMMAND -->` stands before a block that holds what COMMAND prints, cut after
twelve lines where it says `<!-- output 12: COMMAND -->`; `<!-- columns: NAME=RUN/COLUMN ... -->` before
a table of what the demo measured of these models; `<!-- lines of PAGE -->` before some lines of what another page
shows, found again by their labels. Each part goes up to `<!-- end -->`. Commands run in the order in which they
stand, in the repository's folder.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from sparse_adapt.pipeline.demo_report import tabulate_demo
from sparse_adapt.report.tables import to_markdown

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "docs" / "tutorial.md", ROOT / "README.md", ROOT / "benchmarks" / "README.md")
WIDTH = "100"
MARK = re.compile(
    r"<!-- (?P<kind>output|columns|lines of)(?: (?P<lines>\d+))?:? (?P<words>.+?) -->\n(?P<old>.*?)<!-- end -->\n",
    re.DOTALL,
)


def main() -> None:
    """Rewrite the marked parts, each as soon as it is known; one whose run isn't there stays as it is."""
    for page in PAGES:
        for mark in MARK.finditer(page.read_text(encoding="utf-8")):
            _rewrite(page, mark)


def _rewrite(page: Path, mark: re.Match[str]) -> None:
    sys.stderr.write(f"{mark['kind']}: {mark['words']}\n")
    try:
        match mark["kind"]:
            case "columns":
                new = _columns(mark["words"])
            case "output":
                new = _output(mark["words"], mark["lines"])
            case _:
                new = again(mark["old"], (ROOT / mark["words"]).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        sys.stderr.write(f"left as it is: {error.filename} is missing\n")
        return
    whole = f"{mark[0].splitlines()[0]}\n{new}<!-- end -->\n"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace(mark[0], whole), encoding="utf-8")


def _output(command: str, lines: str | None) -> str:
    """What a command prints on both channels, progress bars left out."""
    environment = {
        **os.environ,
        "COLUMNS": WIDTH,
        "PYTHONUNBUFFERED": "1",
        "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}",
    }
    done = subprocess.run(
        shlex.split(command),
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    shown = [line.rstrip() for line in done.stdout.splitlines() if "━━" not in line]
    if lines is not None and len(shown) > int(lines):
        shown = [*shown[: int(lines)], "..."]
    return "\n".join(["```text", f"$ {command}", *shown, "```", ""])


def again(block: str, page: str) -> str:
    """The lines of a block as a page has them: each the next there that begins with the same words.

    Raises LookupError for a line that the page no longer has.
    """
    left = iter(page.splitlines())
    lines = []
    for line in block.splitlines():
        label = _label(line)
        line_now = (
            line if line.startswith("```") else next((each for each in left if _label(each) == label), None)
        )
        if line_now is None:
            raise LookupError(f"no line {label!r} on that page after the line before it")
        lines.append(line_now)
    return "\n".join([*lines, ""])


def _label(line: str) -> str:
    """A line up to its first column: what stands before two spaces or more."""
    return re.split(r"(?<=\S)\s{2,}", line)[0].strip()


def _columns(words: str) -> str:
    """One table of columns from several demos: `NAME=RUN/COLUMN`, where NAME heads the column."""
    columns, report = [], {}
    for word in shlex.split(words):
        name, place = word.split("=", 1)
        folder, column = place.rsplit("/", 1)
        report = json.loads((ROOT / folder / "report.json").read_text(encoding="utf-8"))
        values = next(each for each in report["demo"]["columns"] if each["name"] == column)
        columns.append({**values, "name": name})
    return to_markdown(tabulate_demo({**report, "demo": {**report["demo"], "columns": columns}}))


if __name__ == "__main__":
    main()
