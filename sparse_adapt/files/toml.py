"""Values as TOML writes them."""

import json
from collections.abc import Mapping


def toml(value: object) -> str:
    """A value as TOML writes it; JSON's strings, numbers and lists are TOML's too.

    A table stands inside braces, without what is None in it, for which TOML has no sign.
    """
    if isinstance(value, Mapping):
        held = (f"{key} = {toml(inner)}" for key, inner in value.items() if inner is not None)
        return "{ " + ", ".join(held) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
