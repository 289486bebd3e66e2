"""Pictures of the pages for the documentation: the page of a run, and the explorer, in Debian's chromium.

    python tools/screenshots.py RUN

They lie in docs/images. Without a browser the old ones stay.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1100, 850
QUERY = "which tools monitor what a company spends and where its means go"


def main(run: Path) -> None:
    """Draw both pages anew."""
    program = shutil.which("chromium")
    if program is None:
        sys.stderr.write("left as they are: no chromium here; apt-get install chromium\n")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}).new_page()
        page.goto((run / "report.html").resolve().as_uri())
        page.screenshot(path=IMAGES / "report.png")
        _explorer(page, run)
        browser.close()


def _explorer(page: Any, run: Path) -> None:  # noqa: ANN401 - playwright's
    """Ask the demo's hard query of the explorer."""
    command = [
        sys.executable,
        "-c",
        "from sparse_adapt.cli import main; main()",
        "explore",
        str(run),
        "--port",
        "0",
    ]
    serving = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert serving.stderr is not None, "it was asked for"
        matches = (re.search(r"open (http://\S+)", line) for line in serving.stderr)
        address = next(match[1] for match in matches if match)
        page.goto(f"{address}?q={QUERY.replace(' ', '+')}")
        page.screenshot(path=IMAGES / "explorer.png")
    finally:
        serving.terminate()
        serving.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
