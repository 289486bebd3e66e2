"""Memory and speed over a corpus of any length: `python -m benchmarks.streaming --documents 1000000`.

A seeded generator writes documents of background words, `encode` turns them into shards, `export anserini` takes
these. Each step runs in a process of its own, whose largest memory is read above what the loaded model takes.
"""

import argparse
import json
import multiprocessing
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
WORDS = 30_000
SHORTEST, LONGEST = 8, 40  # words of a document
HUNDRED_MILLION = 100_000_000
MEBIBYTE = 1 << 20


def main() -> None:
    """Generate, encode and export; print one line a step and keep the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--model", default="splade-tiny")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="to work in; by default a temporary one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        figures = measure(Path(folder), arguments.documents, arguments.model, arguments.threads)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"streaming-{arguments.documents}.json"
    path.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {path}")


def measure(folder: Path, documents: int, model: str, threads: int) -> dict[str, Any]:
    """Figures of each step over a corpus of so many documents."""
    corpus, vectors, exported = folder / "corpus.jsonl.gz", folder / "vectors", folder / "anserini"
    steps: tuple[tuple[str, Callable[..., Iterator[None]], tuple[Any, ...]], ...] = (
        ("generate", generate, (corpus, documents)),
        ("read", read, (corpus,)),
        ("encode", encode, (model, corpus, vectors)),
        ("export", export, (vectors, exported)),
    )
    figures: dict[str, Any] = {"documents": documents, "threads": threads, "load": os.getloadavg()[0]}
    for name, work, arguments in steps:
        figures[name] = apart(work, arguments, threads)
        rate = documents / figures[name]["processor_seconds"]
        figures[name]["documents_a_processor_second"] = round(rate, 1)
        figures[name]["processor_hours_for_a_hundred_million"] = round(HUNDRED_MILLION / rate / 3600, 1)
        print(f"{name}: {figures[name]}")
    figures["vectors_bytes"] = sum(path.stat().st_size for path in vectors.iterdir())
    figures["export_bytes"] = sum(path.stat().st_size for path in exported.rglob("*") if path.is_file())
    return figures


def apart(work: Callable[..., Iterator[None]], arguments: tuple[Any, ...], threads: int) -> dict[str, float]:
    """Do one step in a fresh process: seconds, and its largest memory above that before it began."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_report, args=(theirs, work, arguments, threads))
    process.start()
    theirs.close()
    figures: dict[str, float] = ours.recv()
    process.join()
    return figures


def _report(pipe: Any, work: Callable[..., Iterator[None]], arguments: tuple[Any, ...], threads: int) -> None:  # noqa: ANN401
    import torch

    from sparse_adapt.heap import return_large_blocks

    torch.set_num_threads(threads)
    return_large_blocks()
    step = work(*arguments)
    next(step)  # what it imports and loads doesn't count
    before, started = _resident(), (time.perf_counter(), time.process_time())
    next(step, None)
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    pipe.send(
        {
            "seconds": round(time.perf_counter() - started[0], 1),
            "processor_seconds": round(time.process_time() - started[1], 1),
            "mebibytes_above_the_start": round((largest - before) / MEBIBYTE),
        }
    )


# -- the steps: each yields once, between what it needs and what it does ---------------------------


def generate(path: Path, documents: int) -> Iterator[None]:
    """A compressed corpus of short documents: common words more often, some of a topic again and again."""
    from sparse_adapt.collection.readers import Document, write_documents

    words = _words()
    yield

    def texts() -> Iterator[Document]:
        chance = random.Random(0)
        for number in range(documents):
            topic = [words[chance.randrange(len(words))] for _ in range(4)]
            length = chance.randint(SHORTEST, LONGEST)
            text = [
                chance.choice(topic)
                if chance.random() < 0.2
                else words[int(len(words) ** chance.random()) - 1]
                for _ in range(length)
            ]
            yield Document(f"doc-{number}", " ".join(text) + ".", " ".join(topic[:2]))

    write_documents(path, texts())


def read(path: Path) -> Iterator[None]:
    """Every document once, as `encode` counts them."""
    from sparse_adapt.collection.readers import count_documents

    yield
    count_documents(path)


def encode(model: str, corpus: Path, vectors: Path) -> Iterator[None]:
    """Shards of vectors."""
    from sparse_adapt.collection.readers import read_documents
    from sparse_adapt.files.place import Place
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.retrieve.vectors.shards import encode_corpus

    encoder = SparseEncoder.load(model)
    yield
    encode_corpus(encoder, read_documents(corpus), Place(vectors, resume=True))


def export(vectors: Path, folder: Path) -> Iterator[None]:
    """Impacts for Anserini, from the shards."""
    from sparse_adapt.files.place import Place
    from sparse_adapt.plugins.engines.layout import ExportSource
    from sparse_adapt.plugins.engines.writing import write_export
    from sparse_adapt.retrieve.vectors.folder import open_vectors

    yield
    write_export("anserini", ExportSource(open_vectors(vectors)), Place(folder))


def _words() -> list[str]:
    from wordfreq import top_n_list

    return [word for word in top_n_list("en", WORDS) if word.isalpha()]


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main()
