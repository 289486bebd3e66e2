"""Killed at every file operation of every command that writes, and resumed: the same bytes, and nothing beside them.

The suite looks at some operations of some commands, `make nightly` at every one of all.
"""

from pathlib import Path

import pytest
import torch
from commands import COMMANDS, RESUMABLE, inputs, ran
from killing import content, restore, watched
from killing import no_clock as no_clock

pytestmark = pytest.mark.usefixtures("no_clock")
SOME = {  # states in the usual suite
    **{"terms": 3, "queries": 4, "extend": 4, "contrast": 4, "run": 2},
    **{"encode": 5, "index": 2, "export": 5, "adapt": 1},
}


@pytest.fixture(scope="module")
def words(tiny_model, tmp_path_factory) -> dict[str, str]:
    """What stands for what in the commands' lines."""
    torch.set_num_threads(1)
    return inputs(tmp_path_factory.mktemp("inputs"), tiny_model)


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
    assert check(name, words, tmp_path, SOME[name])[1] >= SOME[name]


@pytest.mark.nightly
@pytest.mark.parametrize("name", COMMANDS)
def test_a_kill_at_any_operation_leaves_no_trace(words, tmp_path, name):
    operations, states = check(name, words, tmp_path, 1 << 30)
    print(f"{name}: {operations} operations, {states} states")  # noqa: T201 - counted for the record
