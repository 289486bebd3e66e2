"""What OpenSearch's ML Commons takes: files in one zip file, and what registers it."""

import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Literal

EPOCH = (1980, 1, 1, 0, 0, 0)  # of the files inside: the same files give the same zip file

Function = Literal["SPARSE_ENCODING", "SPARSE_TOKENIZE"]


def packed(files: Mapping[str, bytes]) -> bytes:
    """A zip file of some files by their names."""
    held = BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)
    return held.getvalue()


def registration(
    name: str, description: str, function: Function, zip_file: Path, sha256: str
) -> dict[str, object]:
    """What `_plugins/_ml/models/_register` takes beside the URL of a zip file."""
    return {
        "name": name,
        "version": "1.0.0",
        "description": description,
        "model_format": "TORCH_SCRIPT",
        "function_name": function,
        "model_content_size_in_bytes": zip_file.stat().st_size,
        "model_content_hash_value": sha256,
    }


def how_to_register(config: str) -> list[str]:
    """Shell commands that register a model, its configuration in the file `config`, for FROM and URL that are set."""
    return [
        f'sed "1s|{{|{{\\"url\\": \\"$FROM\\",|" {config} |',
        "  curl -fsS \"$URL/_plugins/_ml/models/_register?deploy=true\" -H 'Content-Type: application/json' -d @-",
    ]
