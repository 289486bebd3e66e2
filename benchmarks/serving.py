"""What a query costs where it is encoded, by size of the encoder, in torch and ONNX Runtime; what pruning costs.

    python -m benchmarks.serving [--data DIR] [--collection scifact]

Encoders of 22 and 110 million parameters have the shapes of MiniLM-L6 and BERT base and random weights, with biases by
which a query has some 40 weights: time and memory don't depend on what was learnt. Each runs in a process of its own
with one thread, a query of eleven words at a time; its time is that of the processor. With --data, queries of
splade-tiny are pruned as OpenSearch does, and searched exactly. Prints both tables.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

QUERIES = [f"how is a pump of kind {number} cleaned after the rain" for number in range(40)]
SHAPES = {"22 M": (6, 384, 12), "110 M": (12, 768, 12)}  # layers, width, heads
ACTIVE = 40  # weights of a query
RATIOS = (0.0, 0.1, 0.2, 0.4, 0.6)  # of a query's largest weight
WINDOW = 50  # documents that a second phase scores, of 10: OpenSearch's expansion rate of 5


def main() -> None:
    """Measure and print, or, with --one, measure one encoder here."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--collection", default="scifact")
    parser.add_argument("--one", nargs=2, metavar=("RUNTIME", "PATH"))
    arguments = parser.parse_args()
    if arguments.one is not None:
        runtime, path = arguments.one
        tell(json.dumps(measured(by_onnx(Path(path)) if runtime == "onnx" else by_torch(path))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        for name, source, exported in encoders(Path(scratch)):
            for runtime, path in (("torch", source), ("onnx", exported)):
                command = [sys.executable, "-m", "benchmarks.serving", "--one", runtime, path]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                row = json.loads(done.stdout)
                tell(
                    f"{name:6} {runtime:6} {row['ms']:6.1f} ms, one of 20 {row['slow']:6.1f} ms  {row['mb']:5.0f} MB"
                )
    if arguments.data is not None:
        for line in pruned(arguments.data / arguments.collection):
            tell(line)


def tell(text: str) -> None:
    """A line on standard output, now."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def encoders(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Each size with a model that sparse-adapt loads, and its export for ONNX Runtime."""
    import sparse_adapt as sa

    models = {"4 M": "splade-tiny", **{name: shaped(folder / name, *shape) for name, shape in SHAPES.items()}}
    for name, source in models.items():
        exported = folder / f"{name}-onnx"
        sa.export("onnx", sa.load(source, device="cpu"), None, exported)
        yield name, source, str(exported)


def shaped(folder: Path, layers: int, width: int, heads: int) -> str:
    """A BERT of this shape with the tokens of splade-tiny and random weights, whose biases keep queries sparse."""
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM

    import sparse_adapt as sa

    torch.manual_seed(0)
    tiny = sa.load("splade-tiny", device="cpu").encoder
    config = AutoConfig.for_model(
        "bert",
        vocab_size=len(tiny.tokenizer),
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    made = AutoModelForMaskedLM.from_config(config).eval()
    ids = tiny.tokenizer(QUERIES, return_tensors="pt", padding=True)
    with torch.no_grad():
        largest = made(**ids).logits.amax(dim=1)
        made.cls.predictions.decoder.bias -= largest.kthvalue(largest.shape[1] - ACTIVE, dim=1).values.mean()
    made.save_pretrained(folder)
    tiny.tokenizer.save_pretrained(folder)
    return str(folder)


def by_torch(source: str) -> Callable[[str], object]:
    """Encode by sparse-adapt."""
    import torch

    import sparse_adapt as sa

    torch.set_num_threads(1)
    return sa.load(source, device="cpu").encode_query


def by_onnx(folder: Path) -> Callable[[str], object]:
    """Encode by ONNX Runtime and raw `tokenizers`, as `export onnx` prints it."""
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def encode(text: str) -> object:
        read = tokenizer.encode(text)
        feed = {"input_ids": np.array([read.ids]), "attention_mask": np.array([read.attention_mask])}
        weights = session.run(None, feed)[0][0]
        return np.flatnonzero(weights)

    return encode


def measured(encode: Callable[[str], object]) -> dict[str, float]:
    """Milliseconds of processor for a query, at the median and the slowest of 20; megabytes of the process."""
    seconds = []
    for number, query in enumerate(QUERIES * 3):
        start = time.process_time()
        encode(query)
        seconds += [time.process_time() - start] if number >= len(QUERIES) else []
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+)", status)  # getrusage counts what the parent had, too
    return {
        "ms": 1000 * statistics.median(seconds),
        "slow": 1000 * statistics.quantiles(seconds, n=20)[-1],
        "mb": int(kilobytes) / 1024,
    }


def pruned(collection: Path) -> Iterator[str]:
    """nDCG@10 and postings read with light tokens of queries left out, or scored in a second phase alone."""
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.retrieve.encode import encode
    from sparse_adapt.retrieve.evaluate import evaluate_ranking, read_collection

    judged, model = read_collection(collection), SparseEncoder.load("splade-tiny")
    documents = encode(model, [each.full_text for each in judged.documents], "document")
    queries = encode(model, [each.text for each in judged.queries], "query")
    lists, ids = np.diff(documents.tocsc().indptr), [each.document_id for each in judged.documents]
    for ratio in RATIOS:
        heavy = queries.copy()
        most = np.repeat(queries.max(axis=1).toarray().ravel(), np.diff(queries.indptr))
        heavy.data[heavy.data < ratio * most] = 0
        heavy.eliminate_zeros()
        first, whole = ((each @ documents.T).toarray() for each in (heavy, queries))
        window = np.argsort(-first, axis=1, kind="stable")[:, :WINDOW]
        runs: list[dict[str, dict[str, float]]] = [{}, {}]
        for row, query in enumerate(judged.queries):
            for run, scores in zip(runs, (first, whole), strict=True):
                best = window[row][np.argsort(-scores[row, window[row]], kind="stable")][:10]
                run[query.query_id] = {ids[each]: float(scores[row, each]) for each in best}
        reached = [evaluate_ranking(run, judged).means()["ndcg@10"] for run in runs]
        postings = float(lists[heavy.indices].sum()) / float(lists[queries.indices].sum())
        figures = f"{reached[0]:.3f} pruned, {reached[1]:.3f} in two phases"
        yield f"ratio {ratio}: {postings:5.1%} of postings, nDCG@10 {figures}"


if __name__ == "__main__":
    main()
