"""The Dockerfile: what hadolint says of it, and what a builder would find; no image is built here."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
LINES = [line.split(maxsplit=1) for line in TEXT.splitlines() if line and line[0] not in "# "]
COPIED = [
    word for name, rest in LINES if name == "COPY" and "--from" not in rest for word in rest.split()[:-1]
]


def test_hadolint_has_nothing_to_say():
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_whatever_the_package_is_built_of_is_copied_and_sent_to_the_builder():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    built = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    named = [project["project"]["readme"], *project["project"]["license-files"], *built]
    assert {Path(name).parts[0] for name in named} | {"pyproject.toml", "constraints.txt"} == set(COPIED)
    sent = (ROOT / ".dockerignore").read_text().split()
    assert sent == ["*", *(f"!{name}" for name in COPIED), "**/__pycache__"]
    assert all((ROOT / name).exists() for name in COPIED)


def test_versions_are_pinned_and_those_of_the_constraints():
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    assert re.findall(r"(\w+)==(\S+)", TEXT) == [("uv", pins["uv"])]
    bases = {rest.split()[0] for name, rest in LINES if name == "FROM"}
    assert len(bases) == 1 and re.fullmatch(r"python:3\.11\.\d+-slim-\w+", bases.pop())
    assert "--constraint constraints.txt" in TEXT and "--torch-backend cpu" in TEXT


def test_it_runs_as_nobody_special():
    (user,) = (rest for name, rest in LINES if name == "USER")
    assert user != "0" and f"useradd --create-home --uid {user} " in TEXT
    assert LINES.index(["USER", user]) > max(row for row, (name, _) in enumerate(LINES) if name == "RUN")
