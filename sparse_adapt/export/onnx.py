"""The encoder for ONNX Runtime: token ids and mask in, SPLADE weights out, the pooling inside the graph.

    FOLDER/model.onnx                               input_ids, attention_mask (B, L) int64 -> weights (B, V) float32
    FOLDER/tokenizer.json, tokenizer_config.json    for transformers or raw tokenizers
    FOLDER/tokens.json, manifest.json

B and L may be anything from 1 on, L up to the longest text of the model. The graph is run before it is kept,
and refused where a weight differs from torch's by more than `BOUND`. Dimensions: B texts, L positions, V vocabulary.
"""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from sparse_adapt.errors import ConfigError, MissingExtraError, ModelError
from sparse_adapt.export.parts import Manifest, begin, file_part, finish
from sparse_adapt.export.quantise import Quantisation
from sparse_adapt.files.folders import output_folder
from sparse_adapt.model.batches import pad
from sparse_adapt.model.saved import write_tokenizer
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors

MODEL_FILE = "model.onnx"
INPUTS, OUTPUT = ("input_ids", "attention_mask"), "weights"
BOUND = 1e-4  # the most by which a weight may differ from torch's
LENGTHS = ((1,), (2, 5, 3), (17, 4, 9, 1), (64,), (10_000,))  # of the texts that are tried, batch by batch
EXAMPLE = (2, 7)  # the batch that the graph is traced with
Weigh = Callable[[Tensor, Tensor], Tensor]
"""Ids and mask (B, L), int64 -> weights (B, V)."""


class PooledEncoder(nn.Module):
    """Masked language model, SPLADE's pooling and the model's factors as one graph."""

    factors: Tensor

    def __init__(self, encoder: SparseEncoder) -> None:
        super().__init__()
        self.masked_lm = encoder.masked_lm
        self.register_buffer("factors", torch.from_numpy(encoder.factors_of()))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Weights (B, V): log1p(relu(the largest logit over unmasked positions)), times factors."""
        logits = self.masked_lm(input_ids=input_ids, attention_mask=attention_mask).logits
        masked = logits.masked_fill(attention_mask.unsqueeze(-1) == 0, float("-inf"))
        return torch.log1p(torch.relu(masked.amax(dim=1))) * self.factors


def write(
    vectors: Vectors,
    folder: Path,
    *,
    encoder: SparseEncoder,
    queries: EncodedBatch | None = None,
    quantisation: Quantisation | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Write the encoder into a new folder; nothing stays there if it fails. Of `vectors` only the stamp is used.

    Raises ModelError where the graph's weights aren't those of torch, ConfigError for queries, which it holds none
    of, MissingExtraError without the packages that write and run it.
    """
    _check_packages()
    if queries is not None:
        raise ConfigError("onnx holds an encoder and no vectors; leave out --queries")
    with output_folder(folder, overwrite=overwrite, resumable=False) as work:
        manifest = begin("onnx", vectors, quantisation)
        opset = _write_graph(encoder, work / MODEL_FILE)
        weigh, factors = _as_written(work / MODEL_FILE), torch.from_numpy(encoder.factors_of())
        difference = largest_difference(encoder, weigh, factors)
        if not difference <= BOUND:
            raise ModelError(
                f"{vectors.model.name}: ONNX Runtime's weights differ from torch's by {difference:.1e}, which is "
                f"more than {BOUND:.0e}; export for sentence-transformers instead"
            )
        write_tokenizer(work, encoder.tokenizer, encoder.max_tokens)
        files = sorted(path.name for path in work.iterdir())
        facts = {"largest_difference": difference, "bound": BOUND, "opset": opset}
        parts = tuple(file_part(work, name, rows=0) for name in files)
        return finish(work, manifest.model_copy(update={"facts": facts, "parts": parts}), vectors.tokens)


def loading(folder: Path, manifest: Manifest) -> str:
    """Python that encodes a text."""
    return f"""\
import numpy
import onnxruntime
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file({str(folder / "tokenizer.json")!r})
session = onnxruntime.InferenceSession({str(folder / MODEL_FILE)!r})
text = tokenizer.encode("QUERY")
feed = {{"input_ids": numpy.array([text.ids]), "attention_mask": numpy.array([text.attention_mask])}}
weights = session.run(None, feed)[0]
print(sorted(((float(w), tokenizer.id_to_token(t)) for t, w in enumerate(weights[0]) if w > 0), reverse=True)[:10])"""


def _as_written(path: Path) -> Weigh:
    """ONNX Runtime's weights."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def weigh(ids: Tensor, mask: Tensor) -> Tensor:
        feed = dict(zip(INPUTS, (ids.numpy(), mask.numpy()), strict=True))
        return torch.from_numpy(session.run([OUTPUT], feed)[0])

    return weigh


def largest_difference(encoder: SparseEncoder, weigh: Weigh, factors: Tensor) -> float:
    """Between a weight as `weigh` gives it and torch's times factors (V): seeded batches of many shapes, padded."""
    generator = torch.Generator().manual_seed(0)
    largest = 0.0
    for lengths in LENGTHS:
        texts = [
            torch.randint(encoder.vocabulary_size, (min(length, encoder.max_tokens),), generator=generator)
            for length in lengths
        ]
        ids, mask = pad([text.tolist() for text in texts], encoder.tokenizer.pad_token_id or 0)
        with torch.inference_mode():
            expected = encoder.pool(ids.to(encoder.device), mask.to(encoder.device)).weights.cpu() * factors
            largest = max(largest, float((weigh(ids, mask.long()) - expected).abs().max()))
    return largest


def _write_graph(encoder: SparseEncoder, path: Path) -> int:
    """Trace the model with batch and length left open; the version of the operators that it uses."""
    ids = torch.ones(EXAMPLE, dtype=torch.long, device=encoder.device)
    batch = torch.export.Dim("batch", min=1)
    length = torch.export.Dim("length", min=1, max=encoder.max_tokens)
    shape = {0: batch, 1: length}
    with _silent():
        program = torch.onnx.export(
            PooledEncoder(encoder).eval(),
            (ids, torch.ones_like(ids)),
            input_names=list(INPUTS),
            output_names=[OUTPUT],
            dynamic_shapes=(shape, shape),
            dynamo=True,
            verbose=False,
        )
        assert program is not None, "torch.onnx.export with dynamo gives a program"
        program.save(str(path))
    return int(program.model.opset_imports[""])


def _check_packages() -> None:
    from importlib.util import find_spec

    for package in ("onnx", "onnxscript", "onnxruntime"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "onnx")


@contextmanager
def _silent() -> Iterator[None]:
    """Without the exporter's remarks on its own progress."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
