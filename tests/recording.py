"""What is remembered of a file: the SHA-256 of its content, and its numbers in short.

The content is what a file means to its reader. Of a tensor file these are the tensors, of an ONNX or TorchScript
model its tensors and operators, of a text its characters, without times, versions and paths. A record is

    {"sha256": HASH, "words": HASH, "numbers": {NAME: [sum, sum of magnitudes, first values]}}

where `words` is of a text without its numbers, or of the names and shapes of tensors. Only files with computed
numbers have the last two. On disk, `numbers` has no names.
"""

import hashlib
import io
import json
import os
import platform
import re
import zipfile
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load as load_tensors

# records of a run, which say how it was made: settings, times, checksums of files that are recorded themselves
LEFT_OUT = (
    *("*/sparse-adapt.json", "*/stage.json", "*/run.toml", "*/request.json", "*/steps/*.json", "*/README.md"),
    *(".*", "*/.*"),
)
KEYS_LEFT_OUT = {
    # when, by what and how
    *("version", "versions", "__version__", "transformers_version", "seconds", "written", "peak_memory"),
    *("stages", "settings"),
    # words for people
    *("message", "command"),
    # of files that are recorded themselves, or that hold names of modules
    *("sha256", "model_content_size_in_bytes", "model_content_hash_value"),
}
MOMENT = re.compile(  # on a page: when, how long, and by which version
    r"\d{4}-\d\d-\d\d[T ][\d:]+[+-]\d{4}|\b\d+ (?:s|min|h)\b|\btook \d+%|\bsparse-adapt \d+(?:\.\d+)+"
    r'|(?<=<td class="number">)\d+(?=</td>\s*<td>)'  # the column of seconds, which stands before words
)
RTOL, ATOL = 1e-3, 1e-4  # between processors
SIZE_RTOL = 0.05  # of a binary file
FIRST_OF_TENSOR, FIRST_OF_COLUMN = 1, 3
DIGITS = 5

FLOAT = re.compile(r"-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)")
HASH = re.compile(r"\b[0-9a-f]{64}\b")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
IMPACT = "*/documents/*", "*/queries.tsv"  # whole numbers that were rounded

Numbers = dict[str, NDArray[np.float64]]


def machine() -> dict[str, str]:
    """What decides in which order a processor adds: the same description, the same bits."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    facts = dict(re.split(r"\s*:\s*", line, maxsplit=1) for line in lines if ":" in line)
    parts = [facts[key] for key in ("model name", "cpu family", "model", "stepping") if key in facts]
    return {
        "processor": " / ".join(parts) or platform.processor() or platform.machine(),
        "flags": _sha256(facts.get("flags", ""))[:16],
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
    }


def record(folder: Path, printed: str, paths: Mapping[str, str]) -> dict[str, Any]:
    """The record of every file under a folder, by its name; `paths` are named by what they stand for."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(fnmatch(name, pattern) for pattern in LEFT_OUT):
            found[name] = _of_file(path, name, paths)
    if printed:
        found["printed"] = _of_text(printed, "printed.json", paths)
    return found


def difference(
    before: Mapping[str, Any], now: Mapping[str, Any], *, exactly: bool, numbers: bool = True
) -> list[str]:
    """A line for each file that isn't what it was; none where all are.

    Not `exactly`, numbers may differ as between processors; without `numbers` they may be any.
    """
    lines = [f"{name}: is new" for name in now if name not in before]
    for name, old in before.items():
        if name not in now:
            lines.append(f"{name}: is missing")
        elif old["sha256"] != now[name]["sha256"]:
            found = _apart(old, now[name], numbers=numbers or exactly)
            if exactly or found:
                lines.append(f"{name}: {'; '.join(found) or 'other bytes, though the numbers are near'}")
    return lines


# -- content --------------------------------------------------------------------------------------


def _of_file(path: Path, name: str, paths: Mapping[str, str]) -> dict[str, Any]:
    if path.suffix == ".safetensors":
        return _of_tensors(load_tensors(path.read_bytes()), "")
    if path.suffix == ".onnx":
        return _of_tensors(*_onnx(path))
    if path.suffix == ".zip":
        return _of_tensors(*_scripted(path))
    if path.suffix == ".ciff":
        content = path.read_bytes()
        return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    return _of_text(path.read_text(encoding="utf-8"), name, paths)


def _of_tensors(tensors: Mapping[str, NDArray[Any]], words: str) -> dict[str, Any]:
    whole = hashlib.sha256(words.encode())
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        whole.update(f"{name} {tensor.dtype} {tensor.shape}\n".encode())
        whole.update(tensor.tobytes())
    numbers = {name: np.asarray(tensors[name], dtype=np.float64) for name in sorted(tensors)}
    return _with_numbers(whole.hexdigest(), words, numbers, FIRST_OF_TENSOR)


def _onnx(path: Path) -> tuple[dict[str, NDArray[Any]], str]:
    """Initial tensors and operators, without the names of modules and lines of code that the file keeps beside."""
    import onnx

    graph = onnx.load(path).graph
    tensors = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    lines = [f"{node.op_type} {list(node.input)} {list(node.output)}" for node in graph.node]
    return tensors, "\n".join(lines)


def _scripted(path: Path) -> tuple[dict[str, NDArray[Any]], str]:
    """Tensors of a script, its answer to a text, and the texts beside it in the zip file."""
    with zipfile.ZipFile(path) as opened:
        files = {name: opened.read(name) for name in sorted(opened.namelist())}
    script = torch.jit.load(io.BytesIO(files.pop("model.pt")))
    tensors = {name: tensor.numpy() for name, tensor in script.state_dict().items()}
    text = torch.tensor([[2, 60, 90, 120, 3]])
    with torch.no_grad():
        answer = script({"input_ids": text, "attention_mask": torch.ones_like(text)})
    tensors |= {f"answer.{name}": tensor.numpy() for name, tensor in answer.items()}
    return tensors, "\n".join(f"{name} {content.decode()}" for name, content in files.items())


def _of_text(text: str, name: str, paths: Mapping[str, str]) -> dict[str, Any]:
    for path in sorted(paths, key=len, reverse=True):
        text = text.replace(path, paths[path])
    if name.endswith(".json"):
        text = _without_circumstances(text)
    if name.endswith(".html"):
        text = MOMENT.sub("MOMENT", text)
    whole = _sha256(text)
    columns = _columns(text) if name.endswith("history.jsonl") else None
    if columns is not None:
        return _with_numbers(whole, "", columns, FIRST_OF_COLUMN)
    rounded = any(fnmatch(name, pattern) for pattern in IMPACT)
    if not (rounded or FLOAT.search(text) or HASH.search(text)):
        return {"sha256": whole}
    words = HASH.sub("HASH", text)
    values = np.array([float(each) for each in NUMBER.findall(words)])
    return _with_numbers(whole, NUMBER.sub("#", words), {"the text": values}, 0)


def _without_circumstances(text: str) -> str:
    """JSON without keys for when, by what and how; as it stands where there are none."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError:
        return text  # a bulk file, or another of many lines
    left = _without(content)
    return text if left == content else json.dumps(left, ensure_ascii=False, indent=1)


def _without(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without(value) for key, value in content.items() if key not in KEYS_LEFT_OUT}
    return [_without(each) for each in content] if isinstance(content, list) else content


def _columns(text: str) -> Numbers:
    """The columns of a history."""
    rows = [json.loads(line) for line in text.splitlines()]
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: np.array([float(row[key]) for row in rows if key in row]) for key in keys}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# -- numbers in short -----------------------------------------------------------------------------


def on_disk(row: Mapping[str, Any]) -> dict[str, Any]:
    """A file's record without the names of its numbers, which are long and in `words`."""
    return {**row, "numbers": list(row["numbers"].values())} if "numbers" in row else dict(row)


def _with_numbers(whole: str, words: str, numbers: Numbers, first: int) -> dict[str, Any]:
    shapes = "\n".join(f"{name} {values.shape}" for name, values in numbers.items())
    short = {name: _short(values, first) for name, values in numbers.items()}
    return {"sha256": whole, "words": _sha256(f"{shapes}\n{words}")[:16], "numbers": short}


def _short(values: NDArray[np.float64], first: int) -> list[float]:
    figures = [values.sum(), np.abs(values).sum(), *values.ravel()[:first]]
    return [float(f"{figure:.{DIGITS}g}") for figure in figures]


def _apart(old: Mapping[str, Any], new: Mapping[str, Any], *, numbers: bool) -> list[str]:
    """In which ways a file is farther from what it was than another processor explains."""
    if "bytes" in old:
        near = abs(old["bytes"] - new.get("bytes", 0)) <= SIZE_RTOL * old["bytes"]
        return [] if near else [f"{new.get('bytes')} bytes, not {old['bytes']}"]
    if "numbers" not in old or "numbers" not in new:
        return ["another text"]
    if old["words"] != new["words"]:
        return ["other words, names or shapes"]
    pairs = zip(old["numbers"], new["numbers"].items(), strict=True)
    far = [name for figures, (name, others) in pairs if numbers and not _near(figures, others)]
    return [f"other numbers in {', '.join(far)}"] if far else []


def _near(old: list[float], new: list[float]) -> bool:
    """Sums within `RTOL` of all magnitudes, and first values within `RTOL` or `ATOL`."""
    magnitude = max(old[1], new[1])
    sums = np.allclose(old[:2], new[:2], rtol=0, atol=RTOL * magnitude + ATOL)
    return bool(sums and np.allclose(old[2:], new[2:], rtol=RTOL, atol=ATOL))
