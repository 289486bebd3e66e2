"""Make the general questions that come with the package anew.

    python tools/general FOLDER [VECTORS]

FOLDER is a collection in BEIR's layout (`corpus.jsonl`, `queries.jsonl`, `qrels/train.tsv`) whose ids begin with the
kind of question; `sparse_adapt/synthetic/data/README.md` names the sources and the licences of each kind. VECTORS is a
folder for the dense model's vectors, which take long. Every draw depends on a hash of the text and the seed in
`questions.py`, so the same questions give the same bytes on the same kind of processor.
"""

import json
import lzma
import sys
from collections import Counter
from pathlib import Path

import choosing
from finding import Finder
from questions import Passage, read

OUT = Path(__file__).resolve().parents[2] / "sparse_adapt" / "synthetic" / "data" / "general_measure.jsonl.xz"


def main(folder: Path, vectors: Path | None = None) -> None:
    """Write the file, and say how many questions and passages of each kind it holds."""
    passages = choosing.measure(Finder(read(folder), vectors))
    lines = [json.dumps(_row(passage), ensure_ascii=False) for passage in passages]
    packed = lzma.compress(("\n".join(lines) + "\n").encode(), preset=9 | lzma.PRESET_EXTREME)
    OUT.write_bytes(packed)
    questions = Counter(passage.kind for passage in passages for _ in passage.questions)
    message = f"{questions.total():,} questions {dict(questions)}; {len(passages):,} passages "
    message += f"{dict(Counter(passage.kind for passage in passages))}; {len(packed):,} bytes"
    sys.stderr.write(f"{OUT}: {message}\n")


def _row(passage: Passage) -> dict[str, object]:
    return {"id": passage.name, "text": passage.text, "questions": list(passage.questions)}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
