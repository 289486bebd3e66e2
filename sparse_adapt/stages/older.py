"""What earlier versions wrote, under the names that it has now.

`distill` once had presets that are stages now, `corpus` the stage `imitate` and `plain` the stage `plain`, and settings
for all of them. A key that has gone is
passed over at the value at which it did nothing, and refused at any other.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sparse_adapt.errors import ConfigError

ANYTHING = object()
WAS_CALLED = {"imitate": "distill"}  # in run folders and records

RENAMED = {"kindred": "shared_steps"}

# Keys that a stage no longer has, and the value at which they did nothing.
GONE: dict[str, dict[str, Any]] = {
    "dictionary": {"weights": {"listwise": 0.0}},
    "distill": {
        "weights": {"listwise": 0.0},
        "anchored": "corpus",
        "factors": "none",
        "factor_rate": ANYTHING,
        "balanced": False,
    },
    "imitate": {
        "anchored": "everyday",
        **dict.fromkeys(("tau", "margin", "targets", "judge", "samples", "raw_logits", "silence"), ANYTHING),
        "weights": dict.fromkeys(("rank", "domain", "contrast", "expand", "recall", "listwise"), 0.0),
    },
    "plain": {
        **{"kd": "mse", "calibrate": False, "raw_logits": False, "silence": 0.0, "penalised": "none"},
        **{"flops_query": 0.0, "flops_document": 0.0, "longest": None, "factors": "none", "balanced": False},
        **dict.fromkeys(
            ("temperature", "targets", "judge", "samples", "common", "anchored", "factor_rate"), ANYTHING
        ),
        "weights": dict.fromkeys(("anchor", "recall", "listwise"), 0.0),
    },
}


def name_in_adapt(name: str) -> str:
    """The stage that a name means to `adapt`, which takes the stages under the preset `corpus`."""
    return next((now for now, before in WAS_CALLED.items() if name == before), name)


class Gone(NamedTuple):
    """A key that a stage no longer has, at a value at which it did something."""

    stage: str
    keys: tuple[str, ...]
    value: object

    def __str__(self) -> str:
        """One line that says so, and which stage learns so now."""
        told = f"{'.'.join(self.keys)} = {self.value!r} is of an earlier version; "
        if self.keys[-1] == "listwise":
            return told + "no stage learns so now, for it cost general questions"
        return told + f"the stage {'imitate' if self.stage == 'distill' else 'distill'} learns so now"


def settings_now(stage: str, table: Mapping[str, Any]) -> tuple[dict[str, Any], Gone | None]:
    """A stage's settings without keys that did nothing, and the first one that did something, if there is one."""
    table = {RENAMED.get(key, key): value for key, value in table.items()}
    return _without(stage, table, GONE.get(stage, {}), ())


def record_now(stage: str, record: Mapping[str, Any], place: Path) -> dict[str, Any]:
    """The record of a stage as it would be written now. Raises ConfigError for a setting that no stage has now."""
    name = stage if record["stage"] == WAS_CALLED.get(stage) else record["stage"]
    settings, gone = settings_now(name, record["settings"])
    if gone is not None:
        raise ConfigError(f"{place}: {gone}; pass --overwrite without --resume to start again")
    return {**record, "stage": name, "settings": settings}


def _without(
    stage: str, table: Mapping[str, Any], gone: Mapping[str, Any], above: tuple[str, ...]
) -> tuple[dict[str, Any], Gone | None]:
    kept, first = {}, None
    for key, value in table.items():
        nothing = gone.get(key)
        if key not in gone or (isinstance(nothing, dict) and not isinstance(value, Mapping)):
            kept[key] = value
        elif isinstance(nothing, dict):
            kept[key], inner = _without(stage, value, nothing, (*above, key))
            first = first or inner
        elif nothing is not ANYTHING and value != nothing:
            first = first or Gone(stage, (*above, key), value)
    return kept, first
