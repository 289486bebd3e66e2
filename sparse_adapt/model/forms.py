"""The form of a sparse model: how its folder says that logits become weights, and which forms are understood.

A weight is the maximum over a text's positions of log(1 + relu(logit)) here. Other forms give other weights from the
same files: a sum over positions, a second logarithm (Shen et al. 2025, arXiv:2504.14839), a table of weights for
queries, a limit of entries, a prompt. Such a model is refused, since everything measured with it would be wrong.
"""

import json
from pathlib import Path
from typing import Any, Literal

from sparse_adapt.errors import ModelError

Side = Literal["query", "document"]  # of a search, on which a text is

MODULES_FILE = "modules.json"
ABOUT_FILE = "config_sentence_transformers.json"
TRANSFORMERS = ("Transformer", "MLMTransformer")
POOLING = "SpladePooling"
UNDERSTOOD = {"pooling_strategy": "max", "activation_function": "relu"}
QUERY_TABLES = ("idf.json", "query_token_weights.txt")
ADVICE = "choose a model that encodes queries and documents alike, by the maximum of log(1 + relu)"


def check_form(folder: Path, source: str | Path) -> None:
    """Raise ModelError, naming `source`, where a folder says that its weights are made in another way."""
    if (folder / MODULES_FILE).is_file():
        _check_modules(folder, source)
        _check_settings(folder, source)
    for name in QUERY_TABLES:
        if (folder / name).is_file() and not _holds_factors(folder / name):
            raise ModelError(f"{source}: its queries are weighed by a table, {name}; {ADVICE}")


def _check_modules(folder: Path, source: str | Path) -> None:
    modules = _read(folder / MODULES_FILE)
    if not isinstance(modules, list) or not all(isinstance(each, dict) for each in modules):
        raise ModelError(f"{source}: {MODULES_FILE} is no list of modules; fetch the model again")
    kinds = [str(each.get("type", "")).rsplit(".", 1)[-1] for each in modules]
    strange = [kind for kind in kinds if kind not in (*TRANSFORMERS, POOLING)]
    if strange or len(kinds) != 2 or kinds[1] != POOLING:
        named = strange[0] if strange else " + ".join(kinds) or "none"
        raise ModelError(f"{source}: its modules include {named}, which can't be adapted; {ADVICE}")
    if modules[0].get("path"):
        raise ModelError(
            f"{source}: its transformer lies in the folder {modules[0]['path']}; "
            'copy the files of that folder beside modules.json and give its path as ""'
        )
    pooling = _read(folder / str(modules[1].get("path", "")) / "config.json")
    for key, wanted in UNDERSTOOD.items():
        found = pooling.get(key, wanted) if isinstance(pooling, dict) else pooling
        if found != wanted:
            raise ModelError(f"{source}: {key} is {found!r}, where only {wanted!r} is understood; {ADVICE}")


def _check_settings(folder: Path, source: str | Path) -> None:
    about = _read(folder / ABOUT_FILE) if (folder / ABOUT_FILE).is_file() else {}
    if not isinstance(about, dict):
        raise ModelError(f"{source}: {ABOUT_FILE} is no JSON object; fetch the model again")
    if about.get("max_active_dims") is not None:
        raise ModelError(
            f"{source}: keeps the {about['max_active_dims']} heaviest entries of a text; {ADVICE}"
        )
    prompts = about.get("prompts") or {}
    default = about.get("default_prompt_name")
    if not isinstance(prompts, dict) or not isinstance(default, str | None):
        raise ModelError(f"{source}: {ABOUT_FILE} holds prompts without names; fetch the model again")
    used = [name for name in ("query", "document", default) if name is not None and prompts.get(name)]
    if used:
        raise ModelError(f"{source}: puts a prompt before texts ({used[0]}); {ADVICE}")


def _holds_factors(path: Path) -> bool:
    """Whether a file is one of ours, as version 0.1 saved factors, rather than a table for queries."""
    content = _read(path) if path.suffix == ".json" else None
    return isinstance(content, dict) and set(content) == {"factors"}


def _read(path: Path) -> Any:  # noqa: ANN401 - JSON of any form
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: can't be read ({error}); fetch the model again") from error
