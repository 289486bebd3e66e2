"""Every pinned package has its hashes, at the pinned version, whatever the machine."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
LOCK = (ROOT / "requirements.lock").read_text()
OF_A_MACHINE = {"torch"}  # of which each machine has its own build


def named(package: str) -> str:
    """A package's name as every index spells it."""
    return re.sub(r"[-_.]+", "-", package).lower()


def test_every_pin_has_hashes_at_its_version():
    entries = re.split(r"\n(?=\w)", LOCK)[1:]
    locked = {named(entry.split("==")[0]): entry for entry in entries}
    assert {named(package) for package in PINS} - locked.keys() == OF_A_MACHINE
    for package, version in PINS.items():
        entry = locked.get(named(package))
        assert entry is None or re.match(rf"\S+=={re.escape(version)}\s", entry), package
    for entry in entries:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry[:60]


def test_no_address_is_written_down():
    for name in ("constraints.txt", "requirements.lock"):
        assert re.search(r"://|--index|--find", (ROOT / name).read_text()) is None
