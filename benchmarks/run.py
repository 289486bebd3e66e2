"""Everything that the table of speeds in benchmarks/README.md holds, measured in one run.

    python -m benchmarks.run --data DIR [--threads N] [--clock processor]

DIR holds the collection `medquad` in BEIR layout. Prints a Markdown table and saves it with all figures under
benchmarks/results, as NAME.md and NAME.json. On a busy machine take one thread and the processor's clock.
"""

import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

import torch

from benchmarks import encoding, head, searching, step
from benchmarks.measure import matrix_product, options, product_rate, take_turns
from benchmarks.tables import RESULTS, line

PACKAGES = ("torch", "numba", "scipy", "transformers", "sentence-transformers")
COLUMNS = (
    "work",
    "time",
    "sentence-transformers",
    "textbook or scipy",
    "faster by",
    "memory",
    "of theirs",
    "rate",
)
OURS, THEIRS = head.OURS, head.THEIRS

Row = Mapping[str, object]


def machine(clock: str) -> dict[str, object]:
    """What ran, where, and how fast its matrix products are."""
    rates = {}
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        times = take_turns({name: matrix_product(dtype)}, 10, clock, warm_ups=3)
        rates[name] = product_rate(times.median(name))
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "clock": clock,
        "products_per_second": rates,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
    }


def _processor() -> str:
    flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    bfloat16 = next((flag for flag in ("amx_bf16", "avx512_bf16") if flag in flags), "no bfloat16")
    return f"{platform.machine()}, {bfloat16}"


def cells(row: Row) -> list[str]:
    """A row of figures as text, in the order of `COLUMNS`."""
    seconds, ratios = _numbers(row, "seconds"), _numbers(row, "ratio")
    memory, share = _numbers(row, "memory"), row.get("rate_share")
    others = [name for name in seconds if name not in (OURS, THEIRS, encoding.FILTERED)]
    shares = {OURS: share} if isinstance(share, float) else _numbers(row, "rate_share")
    return [
        str(row["work"]),
        _time(seconds[OURS])
        + (f" (filtered {_time(seconds[encoding.FILTERED])})" if encoding.FILTERED in seconds else ""),
        _time(seconds[THEIRS]) if THEIRS in seconds else "",
        " ".join(_time(seconds[name]) for name in others),
        ", ".join(f"{ratio:.1f}" for ratio in ratios.values()),
        f"{memory[OURS] / 2**20:,.0f} MB" if memory else "",
        ", ".join(f"1/{memory[name] / memory[OURS]:.1f}" for name in memory if name in (THEIRS, *others)),
        ", ".join(f"{shares[name]:.0%}" for name in shares if name != THEIRS),
    ]


def _numbers(row: Row, key: str) -> dict[str, float]:
    value = row.get(key)
    return {str(name): float(each) for name, each in value.items()} if isinstance(value, dict) else {}


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def markdown(rows: list[Row]) -> str:
    """The table."""
    lines = [COLUMNS, ["---"] * len(COLUMNS), *(cells(row) for row in rows)]
    return "\n".join(map(line, lines)) + "\n"


def main() -> None:
    """Measure every row, print the table, save both."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--name", default="processor", help="of the result files")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    turns, clock = arguments.turns, arguments.clock
    about = machine(clock)
    rows: list[Row] = []
    works: list[Callable[[], Row]] = [
        *(partial(head.measure, *size, turns, clock) for size in head.SIZES),
        lambda: step.measure(step.Batch(arguments.data / "medquad"), arguments.data, turns, clock),
        lambda: encoding.measure(arguments.data, max(turns // 2, 1), clock),
        lambda: searching.measure(arguments.data, turns, clock),
    ]
    for work in works:
        rows.append(work())
        print(cells(rows[-1]), file=sys.stderr, flush=True)
    RESULTS.mkdir(exist_ok=True)
    content = {"machine": about, "rows": rows}
    (RESULTS / f"{arguments.name}.json").write_text(json.dumps(content, indent=2) + "\n")
    (RESULTS / f"{arguments.name}.md").write_text(markdown(rows))
    print(markdown(rows))


if __name__ == "__main__":
    main()
