"""kill -9 at random moments of what trains for long, again and again, then resumed: the same bytes as without."""

import os
import random
import signal
import time

import pytest
import torch
from commands import COMMANDS, inputs, ran
from forking import fork
from killing import content, restore
from killing import no_clock as no_clock

pytestmark = [pytest.mark.nightly, pytest.mark.usefixtures("no_clock")]
MOMENTS = 30


@pytest.mark.parametrize("name", ["run", "adapt"])
def test_kills_at_random_moments_leave_no_trace(name, tiny_model, tmp_path_factory, tmp_path):
    torch.set_num_threads(1)
    words = inputs(tmp_path_factory.mktemp("inputs"), tiny_model)
    line = [*COMMANDS[name].format(**words).split(), "-o", str(tmp_path / "whole")]
    assert ran(*line)[0] == 0  # compiles what is compiled
    restore(tmp_path, {})
    started = time.perf_counter()
    assert ran(*line)[0] == 0
    longest, expected, chance = time.perf_counter() - started, content(tmp_path), random.Random(name)
    hits = 0
    for moment in range(MOMENTS):
        restore(tmp_path, {})
        for again in range(1 + moment % 3):  # killed again while it goes on
            work = fork(lambda again=again: ran(*line, *(["--resume"] if again else [])))
            time.sleep(chance.uniform(0.0, longest / (1 + again)))
            os.kill(work.process, signal.SIGKILL)
            hits += work.wait().status == -signal.SIGKILL
        status, said = ran(*line, "--resume")
        assert status == 0 or "already there" in said, said
        now = content(tmp_path)
        assert not [path for path in {**now, **expected} if now.get(path, 0) != expected.get(path, 0)]
    assert hits > MOMENTS // 3
