"""Packages with hashes, without those of which each machine has a build of its own: torch and what it brings."""

import re
import sys
from pathlib import Path

HEAD = """\
# Every package that the tests run with, at the versions of constraints.txt, with the hashes of all its files on PyPI.
# torch and its CUDA packages are left out, for a machine's build of torch is its own: install torch first, then
#     pip install --no-deps --require-hashes -r requirements.lock && pip install --no-deps -e .
# `make lock` writes this file.
"""
OF_A_MACHINE = re.compile(r"(torch|triton|nvidia-[\w-]+|cuda-[\w-]+)==")


def without_those_of_a_machine(text: str) -> str:
    """The entries of a file of requirements that fit any machine."""
    entries = re.split(r"\n(?=\S)", text.strip())
    return "\n".join(entry for entry in entries if not OF_A_MACHINE.match(entry)) + "\n"


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_text(HEAD + without_those_of_a_machine(source.read_text()))
