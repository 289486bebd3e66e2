"""Work in a process of its own, forked after the imports: it begins at once, and a signal ends it at any moment."""

import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import IO, NamedTuple

import torch


class Ended(NamedTuple):
    """How a process ended, as subprocess counts it, and all that it wrote."""

    status: int
    messages: str


class Forked(NamedTuple):
    """A process at its work."""

    process: int
    log: IO[bytes]

    def wait(self) -> Ended:
        """Wait for its end."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        self.log.seek(0)
        return Ended(status, self.log.read().decode())


def fork(work: Callable[[], object], **environment: object) -> Forked:
    """Begin a piece of work, with these variables of the environment beside ours.

    What it changes in modules and in the environment is gone with it.
    """
    torch.set_num_threads(1)  # a forked process has no other threads
    log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the test
    process = os.fork()
    if process == 0:
        os.environ.update({name: str(value) for name, value in environment.items()})
        os._exit(_status_of(work, log))
    return Forked(process, log)


def forked(work: Callable[[], object]) -> Ended:
    """Do a piece of work, whatever ends it."""
    return fork(work).wait()


def forked_by(count: int, work: Callable[[int], object]) -> list[Ended]:
    """Do it in so many processes that find each other, as `accelerate launch` starts them, each with its number."""
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 20_000 + os.getpid() % 20_000, "WORLD_SIZE": count}
    meeting |= {"LOCAL_WORLD_SIZE": count, "ACCELERATE_USE_CPU": "true"}

    def begun(rank: int) -> Forked:
        return fork(lambda: _together(work, rank), **meeting, RANK=rank, LOCAL_RANK=rank)

    return [process.wait() for process in [begun(rank) for rank in range(count)]]


def _together(work: Callable[[int], object], rank: int) -> None:
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)  # what the process before knew of being alone
    work(rank)
    torch.distributed.destroy_process_group()


def kill_this() -> None:
    """End the process that calls it by SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


def dying_at(step: int) -> Callable[..., None]:
    """A progress bar's function that ends the process behind a step of training."""
    return lambda done, *_: kill_this() if done == step else None


def killed_at(part: float, whole: Callable[[], object], again: Callable[[], object]) -> None:
    """Do a piece of work, then once more elsewhere, with a kill at this part of its durable writes."""
    ended = forked(lambda: print(_counting(whole)))  # noqa: T201 - read below
    assert ended.status == 0, ended.messages
    last = max(1, round(part * int(ended.messages.split()[-1])))
    ended = forked(lambda: _counting(again, last))
    assert ended.status == -signal.SIGKILL, ended.messages


def _counting(work: Callable[[], object], last: int = 0) -> int:
    """Do the work and count its fsyncs; the one of that number kills the process."""
    done, sync = 0, os.fsync

    def counted(descriptor: int) -> None:
        nonlocal done
        done += 1
        if done == last:
            kill_this()
        sync(descriptor)

    os.fsync = counted
    work()
    return done


def _status_of(work: Callable[[], object], log: IO[bytes]) -> int:
    """The status that a process with this work would end by; what it writes goes to a file."""
    for stream in (1, 2):
        os.dup2(log.fileno(), stream)
    sys.stdout = sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - until the process ends
    try:
        work()
    except SystemExit as end:
        print(end.code if isinstance(end.code, str) else "")  # noqa: T201 - as Python does
        return int(not isinstance(end.code, int) or end.code)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
    return 0
