"""Two Ray workers against one, and against none: `python -m benchmarks.scaling`.

Each worker has one thread. The corpus is that of `benchmarks.streaming`. The workers of both contestants are
started, and their models loaded, before the clock starts; a turn encodes the corpus once with each. Beside wall
time stands the load of the machine: on one that is busy with other things two workers can't have two processors.
"""

import argparse
import json
import os
import tempfile
import time
from collections import deque
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.streaming import generate
from benchmarks.tables import RESULTS
from sparse_adapt.collection.readers import Document, read_documents
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.ray.cluster import Cluster, connected
from sparse_adapt.retrieve.vectors.clusters import on_cluster
from sparse_adapt.retrieve.vectors.shards import encode_corpus


def main() -> None:
    """Time each number of workers in turn; print medians and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=8192)
    parser.add_argument("--shard", type=int, default=512)
    parser.add_argument("--model", default="splade-tiny")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    figures = measure(arguments.documents, arguments.shard, arguments.model, arguments.turns)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "scaling.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=2))


def measure(documents: int, shard: int, model: str, turns: int) -> dict[str, Any]:
    """Seconds of each turn with one worker and with two, the load beside them, and that the bytes are the same."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=400 << 20)
    try:
        with tempfile.TemporaryDirectory() as folder:
            deque(generate(Path(folder) / "corpus.jsonl", documents), maxlen=0)
            texts = list(read_documents(Path(folder) / "corpus.jsonl"))
            encoder = SparseEncoder.load(model)
            with connected() as cluster:
                assert cluster.workers == 2, cluster
                _timed(encoder, model, texts[: 4 * shard], shard, cluster)  # loads both workers' models
                rows = [_turn(encoder, model, texts, shard) for _ in range(turns)]
    finally:
        ray.shutdown()
    ratios = [row["one"]["seconds"] / row["two"]["seconds"] for row in rows]
    return {
        "documents": documents,
        "documents_a_shard": shard,
        "ratio_of_wall_times": round(median(ratios), 2),
        "documents_a_second_of_two": round(documents / median(row["two"]["seconds"] for row in rows), 1),
        "turns": rows,
    }


def _turn(encoder: SparseEncoder, model: str, texts: list[Document], shard: int) -> dict[str, Any]:
    row = {}
    for name, workers in (("one", 1), ("two", 2)):
        row[name] = _timed(encoder, model, texts, shard, Cluster(workers, False))
    assert row["one"].pop("manifest") == row["two"].pop("manifest"), "the bytes differ"
    return row


def _timed(
    encoder: SparseEncoder, model: str, texts: list[Document], shard: int, cluster: Cluster
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        load, started, worked = os.getloadavg()[0], time.perf_counter(), time.process_time()
        work = on_cluster(cluster, encoder)
        manifest = encode_corpus(
            encoder,
            texts,
            Place(Path(folder) / "vectors", resume=True),
            documents_a_shard=shard,
            work=work,
            model_name=model,
        )
        return {
            "seconds": round(time.perf_counter() - started, 2),
            "processor_seconds_of_the_driver": round(time.process_time() - worked, 2),
            "load_before": round(load, 2),
            "manifest": manifest,
        }


if __name__ == "__main__":
    main()
