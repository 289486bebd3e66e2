"""A real headless browser for the tests of pages: Debian's chromium by Playwright; axe-core where it was fetched."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
AXE = Path(sys.prefix) / "axe" / "package" / "axe.min.js"
SIZES = [(380, "dark"), (380, "light"), (1100, "dark"), (1100, "light")]


class Seen(NamedTuple):
    """An opened page, what its console said, and which addresses it asked for."""

    page: Any
    console: list[str]
    asked: list[str]

    def finds(self) -> list[str]:
        """What an accessibility checker finds, of what is serious. Skips without axe-core (tools/browser.sh)."""
        if not AXE.is_file():
            pytest.skip(f"no axe-core at {AXE}: run tools/browser.sh")
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run().then(result => result.violations)")
        return [
            f"{each['id']}: {each['nodes'][0]['html'][:200]}"
            for each in found
            if each["impact"] in ("serious", "critical")
        ]

    def too_wide(self) -> int:
        """Pixels by which the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


class Browser:
    """Opens pages in windows of a width and a colour scheme."""

    def __init__(self, driven: Any) -> None:
        self.driven = driven

    @contextmanager
    def open(
        self, address: str, width: int = 1600, scheme: str = "light", script: bool = True
    ) -> Iterator[Seen]:
        context = self.driven.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=script,
            bypass_csp=False,
        )
        page, console, asked = context.new_page(), [], []
        page.on("console", lambda said: console.append(said.text))
        page.on("pageerror", lambda error: console.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        try:
            yield Seen(page, console, asked)
        finally:
            context.close()


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser; skips, and says why, where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no chromium here: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        driven = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield Browser(driven)
        driven.close()
