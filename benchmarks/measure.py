"""How the benchmarks measure: contestants in turn, medians, and memory in a process of its own.

A contestant is a function without arguments that does the whole work once. Other programs on the machine slow
everyone: so contestants take turns, and a ratio is the median of ratios within a turn.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch

Work = Callable[[], object]


class Times(NamedTuple):
    """Seconds of each turn, contestant by contestant."""

    seconds: dict[str, list[float]]

    def median(self, name: str) -> float:
        """The contestant's usual time."""
        return median(self.seconds[name])

    def ratio(self, name: str, other: str) -> float:
        """How many times as long the other takes, turn by turn."""
        pairs = zip(self.seconds[name], self.seconds[other], strict=True)
        return median(theirs / ours for ours, theirs in pairs)


CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "processor": time.process_time}


def options(description: str | None) -> argparse.ArgumentParser:
    """A parser of every benchmark's options."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=5, help="of which the median is taken")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    return parser


def take_turns(contestants: Mapping[str, Work], turns: int, clock: str, warm_ups: int = 1) -> Times:
    """Time every contestant in every turn, after rounds that don't count.

    The clock "processor" counts what all threads worked, which other programs on the machine hardly change.
    """
    now = CLOCKS[clock]
    for _ in range(warm_ups):
        for work in contestants.values():
            work()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(turns):
        for name, work in contestants.items():
            start = now()
            work()
            seconds[name].append(now() - start)
    return Times(seconds)


def matrix_product(dtype: torch.dtype, size: int = 2048) -> Work:
    """A product of square matrices, whose rate is the machine's."""
    left, right = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
    return lambda: left @ right


def product_rate(seconds: float, size: int = 2048) -> float:
    """Operations a second of `matrix_product`."""
    return 2 * size**3 / seconds


def peak_memory(module: str, *arguments: str) -> int:
    """Bytes that a case needs above the idle process: `python -m MODULE --memory ARGUMENTS` prints them."""
    done = subprocess.run(
        [sys.executable, "-m", module, "--memory", *arguments], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[-1])


def print_peak_memory(work: Work) -> None:
    """Run the work once and print by how many bytes the process grew at most, beyond what it held before."""
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest point so far
    before = _status("VmRSS")
    work()
    print(_status("VmHWM") - before)


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(field)
