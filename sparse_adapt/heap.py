"""Memory that the C library keeps: how little of what was freed stays with the process.

Batches differ in size by a little, and blocks of many sizes fragment a heap. Left alone, glibc's grows to four times
what training uses. Other C libraries go on as usual.
"""

import ctypes
import platform

M_MMAP_THRESHOLD, M_TRIM_THRESHOLD = -3, -1  # of mallopt; glibc raises both by itself until one is set
LARGE_BLOCK = 32 << 20  # bytes; from 8 MiB on a step takes a tenth longer, fetching its pages anew
FREE_AT_END = 64 << 20  # bytes; with glibc's first 128 KiB a step takes a tenth longer again


def return_large_blocks() -> None:
    """Have large blocks returned to the system from now on, whenever they are freed."""
    if platform.libc_ver()[0] == "glibc":
        for parameter, size in ((M_MMAP_THRESHOLD, LARGE_BLOCK), (M_TRIM_THRESHOLD, FREE_AT_END)):
            ctypes.CDLL(None).mallopt(parameter, size)


def trim_heap() -> None:
    """Return what is free by now to the system, small blocks too: after 8,400 passages were encoded half a gigabyte."""
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)
