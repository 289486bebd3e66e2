"""The corpora that come with the project, one folder each in the BEIR layout; each has a README.md.

A name from `NAMES` works wherever a command takes a corpus, one from `RUN_FILES` where `run` takes a run file.
"""

from pathlib import Path

NAMES = ("coined", "gatrocraptic")
RUN_FILES = ("H1", "H2", "H3", "H4")  # the published experiments, as run files on gatrocraptic


def path(name: str) -> Path:
    """The folder of a bundled corpus, in a clone or an installed wheel. Raises KeyError for other names."""
    if name not in NAMES:
        raise KeyError(f"{name}: no bundled corpus; there are {', '.join(NAMES)}")
    return Path(__file__).resolve().parent / name


def run_file(name: str) -> Path:
    """The run file of a published experiment. Raises KeyError for other names."""
    if name not in RUN_FILES:
        raise KeyError(
            f"{name}: no run file comes with the project under that name; there are {', '.join(RUN_FILES)}"
        )
    return path("gatrocraptic") / f"{name}.toml"
