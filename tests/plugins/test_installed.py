"""The plug-in of CONTRIBUTING.md, installed from a folder outside as anybody's would be."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
MODULES = re.compile(r"`(pumps/\w+\.py)`:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROJECT = re.compile(r"`(pyproject\.toml)`, beside.*?```toml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MAIL = "From me\nMessage-ID: {0}\nSubject: Pumps\n\nThe pump number {0}.\n\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that pip installed the plug-in into; nothing is fetched for that."""
    source, target = (tmp_path_factory.mktemp(name) for name in ("source", "target"))
    for name, text in (*MODULES.findall(PAGE), *PROJECT.findall(PAGE)):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", target]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, source], check=True)
    return target


def called(installed, *words):
    """What the command line says where the plug-in is installed."""
    paths = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", "from sparse_adapt.cli import main; main()", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})


def test_what_it_adds_is_there_for_every_command(installed, tiny_model, tmp_path):
    (tmp_path / "box.mbox").write_text("".join(map(MAIL.format, ("m1", "m2"))))
    helped = called(installed, "--help").stdout
    assert "  quiet " in helped and "Missing" not in helped
    assert called(installed, "quiet", "--help").returncode == 0
    out = tmp_path / "out"
    done = called(
        installed, "export", "plain", "--model", tiny_model, "--corpus", tmp_path / "box.mbox", "-o", out
    )
    assert done.returncode == 0, done.stderr
    assert "2 documents" in done.stderr and f"cat {out}/documents/*.jsonl" in done.stderr
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "pump number"}\n')
    parity = called(
        *(installed, "check-export", out, "--model", tiny_model),
        *("--queries", tmp_path / "queries.jsonl", "--corpus", tmp_path / "box.mbox"),
    )
    assert parity.returncode == 0, parity.stderr


def test_one_that_fails_is_named_and_the_rest_goes_on(installed, tmp_path):
    (tmp_path / "pumps").mkdir()
    (tmp_path / "pumps" / "__init__.py").write_text("raise RuntimeError('no oil')\n")
    broken = os.pathsep.join([str(tmp_path), str(installed)])
    helped = called(broken, "--help")
    assert helped.returncode == 0 and "Missing plug-ins: pumps" in helped.stdout
    done = called(broken, "quiet")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "pumps" in done.stderr
    assert called(broken, "export", "--help").returncode == 0


def test_two_of_one_name_are_refused(monkeypatch):
    from sparse_adapt.errors import ConfigError
    from sparse_adapt.registry import Command, Plugin, registry

    monkeypatch.setitem(registry().plugins, "theirs", Plugin(commands=[Command("export", "theirs:export")]))
    with pytest.raises(ConfigError, match="plug-ins engines and theirs both add the command 'export'"):
        assert registry().commands
