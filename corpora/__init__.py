"""The corpora that come with the project, one folder each in the BEIR layout; each has a README.md.

A name from `NAMES` works wherever a command takes a corpus.
"""

from pathlib import Path

NAMES = ("coined", "gatrocraptic")


def path(name: str) -> Path:
    """The folder of a bundled corpus, in a clone or an installed wheel. Raises KeyError for other names."""
    if name not in NAMES:
        raise KeyError(f"{name}: no bundled corpus; there are {', '.join(NAMES)}")
    return Path(__file__).resolve().parent / name
