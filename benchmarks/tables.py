"""What several benchmarks share: where their pages lie, a line of one, means over seeds; how rankings are measured."""

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparse_adapt.files.writing import write_json

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


class Results:
    """What a benchmark has measured, one entry each, in a file that it goes on from when it was stopped."""

    def __init__(self, name: str, folder: Path = RESULTS) -> None:
        self.path = folder / f"{name}.json"
        self.rows: list[dict[str, Any]] = json.loads(self.path.read_text()) if self.path.is_file() else []

    def holds(self, words: Mapping[str, Any]) -> bool:
        """Whether an entry says all of this."""
        return any(words.items() <= each.items() for each in self.rows)

    def add(self, entry: dict[str, Any]) -> None:
        """Keep it at once."""
        self.rows.append(entry)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, self.rows)

    def conclude(self, text: str) -> None:
        """Print the page that tells of the entries, and keep it beside them."""
        self.path.with_suffix(".md").write_text(text)
        print(text)
