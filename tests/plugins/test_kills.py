"""Killed at every file operation of every command that writes, and resumed: the same bytes, and nothing beside them.

The suite looks at some operations of one command a mechanism, `make nightly` at every one of all.
"""

from pathlib import Path

import pytest
import torch
from commands import COMMANDS, RESUMABLE, inputs, ran
from killing import REPORT, State, content, restore, state_of, watched
from killing import no_clock as no_clock

pytestmark = pytest.mark.usefixtures("no_clock")
SOME = {  # states in the usual suite: a file, a stage, shards, an export, the stages of a run, the steps of adapt
    **{"terms": 3, "extend": 4, "encode": 5, "export": 5, "run": 2, "adapt": 1}
}


@pytest.fixture(scope="module")
def words(tiny_model, tmp_path_factory) -> dict[str, str]:
    """What stands for what in the commands' lines."""
    torch.set_num_threads(1)
    return inputs(tmp_path_factory.mktemp("inputs"), tiny_model)


def again_from(state: State, line: list[str], folder: Path, expected: State, whole: State) -> object:
    """What is wrong once a command that was killed has gone on; nothing where nothing is.

    `expected`: what lies there without a kill, by `content`; `whole`: the same byte for byte, which counts where all
    but the page of a run was there already.
    """
    restore(folder, state)
    status, said = ran(*line)
    if status and "already there" not in said:
        return said.splitlines()[-1]
    now, wanted = (state_of(folder), whole) if REPORT in state else (content(folder), expected)
    return [path for path in {**now, **wanted} if now.get(path, 0) != wanted.get(path, 0)][:5]


def check(name: str, words: dict[str, str], folder: Path, most: int) -> tuple[int, int]:
    """Go on from states that lie evenly, at most so many; how many operations and how many states there were."""
    line = [*COMMANDS[name].format(**words).split(), "-o", str(folder / "whole")]
    again = [*line, "--resume"] if name in RESUMABLE else line

    def first() -> None:
        status, said = ran(*line)
        assert status == 0, said

    first()
    expected, whole = content(folder), state_of(folder)
    restore(folder, {})
    found = watched(folder, first)
    assert content(folder) == expected, "another run, other bytes"
    states = list(found.states.values())
    faults = []
    most = min(most, len(states))
    for number in (len(states) * (2 * place + 1) // (2 * most) for place in range(most)):
        if wrong := again_from(states[number], again, folder, expected, whole):
            faults.append((number, sorted(states[number])[-4:], wrong))
    assert not faults, "\n".join(map(str, faults))
    return found.operations, len(states)


@pytest.mark.parametrize("name", SOME)
def test_a_kill_at_some_operations_leaves_no_trace(words, tmp_path, name):
    assert check(name, words, tmp_path, SOME[name])[1] >= SOME[name]


def test_a_kill_while_the_page_of_a_run_is_written_changes_no_byte_of_it(words, tmp_path):
    line = [*COMMANDS["run"].format(**words).split(), "-o", str(tmp_path / "whole")]
    found = watched(tmp_path, lambda: ran(*line))
    whole = state_of(tmp_path)
    states = [state for state in found.states.values() if REPORT in state]
    without = [state for state in states if "whole/report.html" not in state]
    assert "whole/report.html" in whole and 0 < len(without) < len(states)
    for state in (without[0], without[-1], states[len(without)]):
        assert not again_from(state, [*line, "--resume"], tmp_path, {}, whole), sorted(state)


@pytest.mark.nightly
@pytest.mark.parametrize("name", COMMANDS)
def test_a_kill_at_any_operation_leaves_no_trace(words, tmp_path, name):
    operations, states = check(name, words, tmp_path, 1 << 30)
    print(f"{name}: {operations} operations, {states} states")  # noqa: T201 - counted for the record
