"""What goes wrong by a user's hand: each error is one line with place, problem and next step.

`cli.main` prints these and exits with status 2. Anything else that is raised is a bug of ours
and keeps its traceback.
"""

import difflib
from collections.abc import Sequence
from pathlib import Path


class SparseAdaptError(Exception):
    """A mistake that its maker can mend; the message says how."""


class InputError(SparseAdaptError):
    """A file that can't be used as it is: `path:line: problem; next step`."""

    def __init__(self, path: str | Path, problem: str, *, line: int | None = None) -> None:
        self.path, self.problem, self.line = str(path), problem, line
        place = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{place}: {problem}")


class ConfigError(SparseAdaptError):
    """A setting that doesn't exist, or a value outside its range."""


class ModelError(SparseAdaptError):
    """A model that can't be loaded, or isn't one this project can adapt."""


class OutputError(SparseAdaptError):
    """A place that can't be written: taken, locked, read-only or full. Nothing was lost there."""


class MissingExtraError(SparseAdaptError):
    """An optional dependency is absent; the message holds its `pip install` line."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'sparse-adapt[{extra}]'")


class MissingPackageError(SparseAdaptError):
    """A package that one feature uses is absent; the message holds its `pip install` line."""

    def __init__(self, package: str) -> None:
        super().__init__(f"{package} is not installed: pip install {package}")


class MissingPluginError(SparseAdaptError):
    """No plug-in has what is asked for; the message names the plug-ins that could not be loaded."""

    def __init__(self, kind: str, name: str, missing: Sequence[str]) -> None:
        lost = f"; missing: {', '.join(missing)} (reinstall sparse-adapt)" if missing else ""
        super().__init__(f"no plug-in has {name!r} among its {kind}{lost}")


def first_line(error: BaseException | str) -> str:
    """The first line of what another library says, which may be a whole page, or the name of its error."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def is_panic(error: BaseException) -> bool:
    """Whether a library in Rust gave up; its PanicException is no `Exception`."""
    return type(error).__name__ == "PanicException"


def without(secret: str, text: str) -> str:
    """A text of another program in which dots stand for a secret; before it is cut, so that no part of one is left."""
    return text.replace(secret, "...") if secret else text


def unknown(what: str, name: str, known: Sequence[str]) -> str:
    """That a word isn't known, and the nearest one that is."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"unknown {what} {name!r}; {advice}"
