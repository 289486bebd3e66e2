"""The file of hashes: every pin, at its version, in the form that `pip --require-hashes` takes; without network."""

import re
from pathlib import Path

import pytest

from tools.lock import HEAD, without_those_of_a_machine

ROOT = Path(__file__).parents[1]
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
LOCK = (ROOT / "requirements.lock").read_text()
OF_A_MACHINE = {"torch"}  # of which each machine has its own build
FIRST = re.compile(r"([a-z0-9][a-z0-9._-]*)==(\S+)(?: ; [^\\]+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}")


def named(package: str) -> str:
    """A package's name as every index spells it."""
    return re.sub(r"[-_.]+", "-", package).lower()


def entries(lock: str) -> dict[str, str]:
    """Version by package. Raises AssertionError for a line that isn't in its place, or a package named twice."""
    assert lock.startswith(HEAD)
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", lock.removeprefix(HEAD).strip()):
        first, *hashes = entry.split("\n")
        said = FIRST.fullmatch(first)
        assert said is not None, first
        assert named(said[1]) not in found, first
        assert hashes and all(HASH.fullmatch(line.removesuffix(" \\")) for line in hashes), first
        assert all(line.endswith(" \\") for line in hashes[:-1]) and not hashes[-1].endswith("\\"), first
        assert len(set(hashes)) == len(hashes), first
        found[named(said[1])] = said[2]
    return found


def test_every_pin_has_hashes_at_its_version():
    locked = entries(LOCK)
    pinned = {named(package): version for package, version in PINS.items()}
    assert pinned.keys() - locked.keys() == OF_A_MACHINE
    assert {name: version for name, version in locked.items() if pinned.get(name, version) != version} == {}
    assert list(locked) == sorted(locked)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (r"==(\S+) \\", r">=\1 \\"),
        (r"sha256:[0-9a-f]", "sha256:"),
        (r"sha256:", "md5:"),
        (r" \\\n", "\n"),
        (r"\A", "# another head\n"),
        (r"\Z", "torch==2.13.0\n"),
        (r"(\nnumpy==.*\n)", r"\1\1"),
    ],
)
def test_a_line_of_another_form_is_noticed(before, after):
    with pytest.raises(AssertionError):
        entries(re.sub(before, after, LOCK, count=1))


def test_builds_of_a_machine_are_left_out():
    of_each = "numpy==2.4.0 \\\n    --hash=sha256:0\n"
    theirs = "nvidia-cublas-cu12==12.8 ; x \\\n    --hash=sha256:1\ntorch==2.13.0 \\\n    --hash=sha256:2\ntriton==3\n"
    assert without_those_of_a_machine(theirs + of_each) == of_each


def test_no_address_is_written_down():
    for name in ("constraints.txt", "requirements.lock"):
        assert re.search(r"://|--index|--find", (ROOT / name).read_text()) is None
