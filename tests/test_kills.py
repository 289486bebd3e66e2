"""Killed at every file operation of every command that writes, and resumed: the same bytes, and nothing beside them.

The suite looks at some operations of some commands, `make nightly` at every one of all.
"""

import json
import os
import re
import time
from pathlib import Path

import pytest
import torch
from commands import COMMANDS, RESUMABLE, inputs, ran
from killing import State, restore, state_of, watched

from sparse_adapt.pipeline import adapt

LUCENES_OWN = re.compile(r"whole/(_|segments)")
SOME = {  # states in the usual suite
    **{"terms": 3, "queries": 4, "extend": 4, "contrast": 4, "run": 2},
    **{"encode": 5, "index": 2, "export": 5, "adapt": 1},
}


@pytest.fixture(scope="module")
def words(tiny_model, tmp_path_factory) -> dict[str, str]:
    """What stands for what in the commands' lines."""
    torch.set_num_threads(1)
    return inputs(tmp_path_factory.mktemp("inputs"), tiny_model)


@pytest.fixture(autouse=True)
def no_clock(monkeypatch):
    """Every moment is the same, so that records of a run and of a resumed one are; and no disk is waited for."""
    torch.set_num_threads(1)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(time, "strftime", lambda *_: "2026-01-01T00:00:00+0000")
    monkeypatch.setattr(adapt, "peak_memory", lambda: 0)


def content(folder: Path) -> State:
    """All that lies beside and in a result; of a report without which stages were done before."""
    found = state_of(folder)
    if (report := found.get("whole/report.json")) is not None:
        told = json.loads(report)
        stages = [{**stage, "said": ""} for stage in told.get("stages", [])]
        found["whole/report.json"] = json.dumps({**told, "stages": stages}, sort_keys=True).encode()
        del found["whole/sparse-adapt.json"]
    of_lucene = [path for path in found if LUCENES_OWN.match(path)]  # hold numbers of chance
    if of_lucene:
        assert ran("verify", str(folder / "whole"))[0] == 0
    return {**found, **dict.fromkeys([*of_lucene, *(["whole/sparse-adapt.json"] if of_lucene else [])], b"")}


def check(name: str, words: dict[str, str], folder: Path, most: int) -> tuple[int, int]:
    """Go on from states that lie evenly, at most so many; how many operations and how many states there were."""
    line = [*COMMANDS[name].format(**words).split(), "-o", str(folder / "whole")]
    again = [*line, "--resume"] if name in RESUMABLE else line

    def first() -> None:
        status, said = ran(*line)
        assert status == 0, said

    first()
    expected = content(folder)
    restore(folder, {})
    found = watched(folder, first)
    assert content(folder) == expected, "another run, other bytes"
    states = list(found.states.values())
    faults = []
    most = min(most, len(states))
    for number in (len(states) * (2 * place + 1) // (2 * most) for place in range(most)):
        restore(folder, states[number])
        status, said = ran(*again)
        now = content(folder)
        if status and "already there" not in said:
            faults.append((number, sorted(states[number])[-4:], said.splitlines()[-1]))
        elif now != expected:
            differ = [path for path in {**now, **expected} if now.get(path, 0) != expected.get(path, 0)]
            faults.append((number, sorted(states[number])[-4:], differ[:5]))
    assert not faults, "\n".join(map(str, faults))
    return found.operations, len(states)


@pytest.mark.parametrize("name", SOME)
def test_a_kill_at_some_operations_leaves_no_trace(words, tmp_path, name):
    assert check(name, words, tmp_path, SOME[name])[1] > SOME[name]


@pytest.mark.nightly
@pytest.mark.parametrize("name", COMMANDS)
def test_a_kill_at_any_operation_leaves_no_trace(words, tmp_path, name):
    operations, states = check(name, words, tmp_path, 1 << 30)
    print(f"{name}: {operations} operations, {states} states")  # noqa: T201 - counted for the record
