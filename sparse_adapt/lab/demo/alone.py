"""Fine-tuning alone: the last stage on the base model, to see what training without new vocabulary does.

It takes nothing from the other stages, and small batches keep one core busy and no more. So where there are several,
it has a process of its own beside them. What that process leaves undone, this one does: nothing depends on it.
"""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import IO

import torch

from sparse_adapt.files.processes import several
from sparse_adapt.files.threads import lent
from sparse_adapt.lab.demo.verdict import ALONE
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.pipeline.run import Listener, done_before, run_stage
from sparse_adapt.stages.runner import Outcome, Place
from sparse_adapt.training.loop import Progress, device_of

STAGE = "distill"
FOLDER = f"{STAGE}-{ALONE}"


@contextmanager
def fine_tuned_alone(plan: Plan, work: Path, listener: Listener) -> Iterator[Callable[[], Path]]:
    """While this is open, fine-tuning may be under way; what is yielded waits for its end and tells the folder.

    On several threads half of them are its own, and half are left for what is done meanwhile.
    """
    folder, threads = work / FOLDER, torch.get_num_threads()
    if threads < 2 or several() or device_of(plan.settings[STAGE]) != "cpu" or not sys.executable:
        yield lambda: _finished(plan, folder, listener, listener.begin(ALONE))
        return
    progress = listener.begin(ALONE)
    with lent(threads // 2), _beside(plan, folder, progress, threads // 2) as wait:

        def finish() -> Path:
            wait()
            return _finished(plan, folder, listener, progress)

        yield finish


def _finished(plan: Plan, folder: Path, listener: Listener, progress: Progress | None) -> Path:
    """The folder of the fine-tuned model, once all of it is done."""
    listener.end(ALONE, _fine_tune(plan, folder, progress))
    return folder


def _fine_tune(plan: Plan, folder: Path, progress: Progress | None) -> Outcome:
    return done_before(STAGE, plan, plan.model, folder) or run_stage(
        STAGE, plan, plan.model, Place(folder, resume=True), progress
    )


@contextmanager
def _beside(
    plan: Plan, folder: Path, progress: Progress | None, threads: int
) -> Iterator[Callable[[], None]]:
    """Fine-tune in another process, which ends with this one; what is yielded waits for it."""
    child = subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import work_beside; work_beside()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # what goes wrong there goes wrong here, too, and is told here
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )
    assert child.stdin is not None and child.stdout is not None
    hearing = Thread(target=_hear, args=(child.stdout, progress), daemon=True)
    hearing.start()

    def wait() -> None:
        hearing.join()
        child.wait()

    try:
        with suppress(BrokenPipeError):  # it ended at once, and `wait` won't take long
            pickle.dump((plan, folder), child.stdin)
            child.stdin.flush()
        yield wait
    finally:
        child.kill()
        wait()
        child.stdout.close()
        with suppress(BrokenPipeError):
            child.stdin.close()


def _hear(lines: IO[bytes], progress: Progress | None) -> None:
    """Pass on each step that the other process tells of, until it ends."""
    for line in lines:
        if progress is not None:
            progress(*json.loads(line))


def work_beside() -> None:
    """What the other process does: fine-tune by the plan that it is sent, and stop when its sender is gone.

    It gives way to whoever calls its threads back.
    """
    if hasattr(os, "nice"):
        os.nice(19)
    plan, folder = pickle.load(sys.stdin.buffer)
    told, sys.stdout = sys.stdout, sys.stderr

    def end_with_sender() -> None:
        os.read(sys.stdin.fileno(), 1)  # nothing more comes
        os._exit(1)

    Thread(target=end_with_sender, daemon=True).start()
    _fine_tune(plan, folder, lambda *step: print(json.dumps(step), file=told, flush=True))
