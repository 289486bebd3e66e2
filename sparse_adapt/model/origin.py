"""Where a model came from, for people: its name, its Hub id, and its licence with who says so."""

from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import ModelCard

from sparse_adapt.errors import ModelError
from sparse_adapt.model.addresses import BUNDLED, hub_id_in
from sparse_adapt.model.saved import model_at

CARD_FILE = "README.md"
UNKNOWN = "unknown"


class Origin(NamedTuple):
    """A model's name, its Hub id where it has one, its licence as the Hub spells it, and who says so.

    A licence that nobody tells is `unknown`.
    """

    name: str
    hub_id: str
    licence: str
    told_by: str


def origin_of(source: str | Path) -> Origin:
    """The origin of a model by its alias, its Hub id or its folder; nothing is fetched.

    The licence is that of the model's own card, else that of the package that brings the model along.
    """
    text = str(source)
    bundled, folder = BUNDLED.get(text), _folder(text)
    package = "" if bundled is None else bundled.distribution
    hub_id = hub_id_in(text) if bundled is None else bundled.hub_id
    name = Path(text).resolve().name if Path(text).is_dir() else text if package else hub_id or text
    licence = read_card(folder).get("license") if folder is not None else None
    if isinstance(licence, str) and licence:
        return Origin(name, hub_id, licence.lower(), f"its model card, {CARD_FILE}")
    licence = _licence_of_package(package) if package else ""
    told_by = f"the package {package}, which brings it along" if licence else ""
    return Origin(name, hub_id, licence.lower() or UNKNOWN, told_by)


def read_card(folder: Path) -> dict[str, Any]:
    """The YAML header of a folder's model card; empty where there is none that can be read."""
    if not (folder / CARD_FILE).is_file():
        return {}
    try:
        card = ModelCard.load(folder / CARD_FILE, ignore_metadata_errors=True)
    except Exception:  # a broken header raises whatever the library that reads it likes
        return {}
    header: dict[str, Any] = card.data.to_dict()
    return header


def _folder(source: str) -> Path | None:
    try:
        return model_at(source)
    except ModelError:
        return None


def _licence_of_package(package: str) -> str:
    """The licence that an installed package's metadata names; empty where it names none."""
    try:
        told = metadata(package)
    except PackageNotFoundError:
        return ""
    named = (told[key] for key in ("License-Expression", "License") if key in told)
    return next((licence.strip() for licence in named if licence.strip()), "")
