"""A mistake in a command line is known before anything heavy loads."""

import json
import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "scipy")
MISTAKES = [
    # what is missing
    *([name] for name in ("adapt", "check", "terms", "queries", "candidates", "pairs")),
    ["terms", "--corpus"],
    # what isn't there
    ["demo", "nowhere"],
    ["demo", "--model", "./nowhere"],
    ["adapt", "nowhere"],
    ["adapt", "gatrocraptic", "--model", "./nowhere"],
    ["adapt", "gatrocraptic", "--glossary", "nowhere.jsonl"],
    ["adapt", "gatrocraptic", "--queries", "nowhere.tsv"],
    ["adapt", "gatrocraptic", "--candidates", "nowhere.jsonl"],
    ["adapt", "gatrocraptic", "--teacher", "nowhere"],
    ["adapt", "gatrocraptic", "--teacher", "nowhere.tsv"],
    ["adapt", "gatrocraptic", "--until", "nowhere"],
    ["adapt", "gatrocraptic", "--stages", "extend,nowhere"],
    ["adapt", "gatrocraptic", "--learning-rate", "-1"],
    ["check", "nowhere"],
    ["terms", "nowhere"],
    ["terms", "gatrocraptic", "--model", "./nowhere"],
    ["terms", "gatrocraptic", "--by", "nothing"],
    ["terms", "gatrocraptic", "-o", "taken"],
    ["queries", "nowhere", "-o", "x"],
    ["queries", "gatrocraptic", "-o", "taken"],
    ["candidates", "nowhere", "-o", "x"],
    ["candidates", "taken", "-o", "x", "--split", "nothing"],
    ["candidates", "taken", "-o", "x", "--model", "./nowhere"],
    ["pairs", "nowhere", "-o", "x"],
    ["pairs", "taken", "-o", "x", "--reference", "./nowhere"],
]


@pytest.fixture
def taken(tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("keep")
    return tmp_path


def test_no_mistake_loads_anything_heavy(taken):
    """All in one process: what the first loads is seen at once, and what the last loads as well."""
    program = f"""
import json, sys
from sparse_adapt.cli import main
for words in json.loads(sys.stdin.read()):
    sys.argv = ["sparse-adapt", *words]
    try:
        main()
    except SystemExit as end:
        if end.code != 2:
            sys.exit(f"{{words}} ended with {{end.code}}")
    else:
        sys.exit(f"{{words}} isn't refused")
    loaded = [name for name in {HEAVY} if name in sys.modules]
    if loaded:
        sys.exit(f"{{words}} loads {{loaded}}")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(MISTAKES),
        capture_output=True,
        text=True,
        check=False,
        cwd=taken,
    )
    assert done.returncode == 0, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == len(MISTAKES)
    assert "Traceback" not in done.stderr
    assert {path.name for path in taken.iterdir()} == {"taken"}
