"""A mistake in a command line is known before anything heavy loads."""

import json
import shlex
import subprocess
import sys

import pytest

from sparse_adapt.cli import app

HEAVY = ("torch", "transformers", "scipy")
NEED_NOTHING = ("demo", "diagnose")  # which look at what is bundled, or at the latest run
STAGES = ("preserve", "warmup", "dynamic")  # which read nothing but a corpus
STAGE = "--model splade-tiny --corpus gatrocraptic -o x"
MISTAKES = [
    # what is missing
    *(name for name in app.command_names() if name not in NEED_NOTHING),
    "terms --corpus",
    # what isn't there
    "demo nowhere",
    "demo --model ./nowhere",
    "adapt nowhere",
    "adapt gatrocraptic --model ./nowhere",
    "adapt gatrocraptic --glossary nowhere.jsonl",
    "adapt gatrocraptic --queries nowhere.tsv",
    "adapt gatrocraptic --candidates nowhere.jsonl",
    "adapt gatrocraptic --teacher nowhere",
    "adapt gatrocraptic --teacher nowhere.tsv",
    "adapt gatrocraptic --until nowhere",
    "adapt gatrocraptic --stages extend,nowhere",
    "adapt gatrocraptic --learning-rate -1",
    "check nowhere",
    "terms nowhere",
    "terms gatrocraptic --model ./nowhere",
    "terms gatrocraptic --by nothing",
    "terms gatrocraptic -o taken",
    "queries nowhere -o x",
    "queries gatrocraptic -o taken",
    "candidates nowhere -o x",
    "candidates taken -o x --split nothing",
    "candidates taken -o x --model ./nowhere",
    "pairs nowhere -o x",
    "pairs taken -o x --reference ./nowhere",
    *(f"{name} {STAGE} --model ./nowhere" for name in STAGES),
    *(f"{name} {STAGE} --corpus nowhere" for name in STAGES),
    *(f"{name} {STAGE} --device gpu" for name in STAGES),
    *(f"{name} {STAGE} --steps 0" for name in STAGES),
    *(f"{name} {STAGE} --weights nothing=1" for name in STAGES),
    "extend --terms nowhere.json -o x",
    f"dictionary {STAGE} --glossary nowhere.jsonl",
    f"distill {STAGE} --candidates nowhere.jsonl",
    f"contrast {STAGE} --pairs nowhere.jsonl",
    "labelled --model splade-tiny --labelled nowhere.jsonl -o x",
    "triplets --model splade-tiny --triplets nowhere.jsonl -o x",
    "warmup --model splade-tiny --corpus gatrocraptic -o taken",
    "run nowhere.toml",
    "diagnose word --model ./nowhere",
    "diagnose word --corpus nowhere",
    "diagnose --baseline ./nowhere",
    "explain ' '",
    "explain word --model ./nowhere",
    "explain word --corpus nowhere",
    "pack ./nowhere --base splade-tiny -o x",
    "pack splade-tiny --base ./nowhere -o x",
    "unpack nowhere.pack --model splade-tiny -o x",
    "unpack --model splade-tiny -o x",
    "packs ./nowhere",
    "evaluate --model splade-tiny",
    "evaluate --model splade-tiny --collection nowhere",
    "evaluate --model ./nowhere --collection gatrocraptic",
    "evaluate --model splade-tiny --collection gatrocraptic --split nothing",
    "evaluate --model splade-tiny --collection gatrocraptic --baseline ./nowhere",
    "evaluate --model splade-tiny --collection gatrocraptic -o x",
    "evaluate --suite nowhere.toml",
    "encode --model splade-tiny --corpus nowhere -o x",
    "encode --model ./nowhere --corpus gatrocraptic -o x",
    "encode --model splade-tiny --corpus gatrocraptic -o taken",
    "encode --model splade-tiny --corpus gatrocraptic -o x --engine spark",
    "index --vectors nowhere -o x",
    "search word --index taken --vectors taken",
    "search word --queries nowhere.tsv",
    "search word --index nowhere",
    "search word --corpus nowhere",
    "export solr --model splade-tiny --corpus gatrocraptic -o x",
    "export anserini --corpus gatrocraptic -o x",
    "export anserini --model splade-tiny --corpus gatrocraptic --vectors taken -o x",
    "export anserini --model splade-tiny --corpus gatrocraptic -o taken",
    "check-export nowhere --model splade-tiny --queries gatrocraptic --corpus gatrocraptic",
    "check-export taken --model splade-tiny --queries gatrocraptic",
    "contradict nowhere -o x",
    "coin --collection nowhere -o x",
    "recovery --coined nowhere --model splade-tiny",
    "groups --model splade-tiny --groups nowhere.jsonl",
    "similarity --model splade-tiny --pairs nowhere.tsv",
    "relevant-words --model ./nowhere --pairs nowhere.tsv",
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
        input=json.dumps([shlex.split(line) for line in MISTAKES]),
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
