"""What several benchmarks share: where their pages lie, a line of one, means over seeds; how rankings are measured."""

import statistics
from collections.abc import Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
CONTROL = "msmarco_pool"  # general questions, which an adaptation shouldn't answer worse
MEASURE = "ndcg@10"


def line(cells: Sequence[str]) -> str:
    """One row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def spread(values: Sequence[float], digits: int = 3) -> str:
    """The mean, and from least to most where there are several."""
    mean = f"{statistics.fmean(values):.{digits}f}"
    return f"{mean} ({min(values):.{digits}f} to {max(values):.{digits}f})" if len(values) > 1 else mean
