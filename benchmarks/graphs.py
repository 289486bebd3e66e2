"""ONNX Runtime as a contestant: the graph that `export onnx` writes, in float32, and its matrices in 8 bits.

sentence-transformers' own backends `onnx` and `int8` run the same masked language model in the same library, with the
pooling outside. They need `optimum-onnx`, whose release 0.1.0 takes transformers before 4.58 alone.
"""

from pathlib import Path

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from scipy.sparse import csr_matrix, vstack
from tokenizers import Tokenizer

import sparse_adapt as sa
from benchmarks.measure import Work

WHOLE, EIGHT_BITS = "ONNX Runtime", "ONNX Runtime, 8 bits"
FILES = {WHOLE: "model.onnx", EIGHT_BITS: "eight_bits.onnx"}


def written(source: str, folder: Path) -> Path:
    """A model's graph, and the same with matrices of 8 bits, in a folder that is made for them."""
    sa.export("onnx", source, None, folder, device="cpu")
    folded, less = folder / "folded.onnx", folder / FILES[EIGHT_BITS]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(
        folded
    )  # where the rows of tied embeddings are a matrix of their own
    onnxruntime.InferenceSession(str(folder / FILES[WHOLE]), options, providers=["CPUExecutionProvider"])
    quantize_dynamic(folded, less, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gemm"])
    return folder


def runs(name: str, folder: Path, texts: list[str], batch_size: int) -> Work:
    """Texts, longest first, from strings to CSR."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # it would count as work
    session = onnxruntime.InferenceSession(
        str(folder / FILES[name]), options, providers=["CPUExecutionProvider"]
    )
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    ordered = sorted(texts, key=len, reverse=True)

    def work() -> object:
        rows = []
        for first in range(0, len(ordered), batch_size):
            read = tokenizer.encode_batch(ordered[first : first + batch_size])
            ids, mask = ([getattr(each, key) for each in read] for key in ("ids", "attention_mask"))
            feed = {"input_ids": np.array(ids), "attention_mask": np.array(mask)}
            rows.append(csr_matrix(session.run(None, feed)[0]))
        return vstack(rows, format="csr")

    return work
