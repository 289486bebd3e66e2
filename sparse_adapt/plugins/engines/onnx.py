"""The encoder for ONNX Runtime: token ids and mask in, SPLADE weights out, the pooling inside the graph.

    FOLDER/model.onnx                               input_ids, attention_mask (B, L) int64 -> weights (B, V) float32
    FOLDER/tokenizer.json, tokenizer_config.json    for transformers or raw tokenizers
    FOLDER/tokens.json, manifest.json

B and L may be anything from 1 on, L up to the longest text of the model. The graph is run before it is kept,
and refused where a weight differs from torch's by more than `BOUND`.

It is opened to encode queries; the documents are searched exactly, in this process.
Dimensions: B texts, L positions, V vocabulary.
"""

import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_matrix, vstack
from tokenizers import Tokenizer
from torch import Tensor, nn

from sparse_adapt.errors import ModelError
from sparse_adapt.files.marker import MARKER_FILE
from sparse_adapt.model.saved import write_tokenizer
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import pad
from sparse_adapt.plugins.engines.engine import EncoderEngine, quiet_logs
from sparse_adapt.plugins.engines.layout import ExportLayout, ExportSource
from sparse_adapt.plugins.engines.manifest import ExportFolder, ExportManifest, file_there
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.retrieve.vectors.manifest import TOKENS_FILE

MODEL_FILE = "model.onnx"
INPUTS, OUTPUT = ("input_ids", "attention_mask"), "weights"
BOUND = 1e-4  # the most by which a weight may differ from torch's
FORMS = {
    "encoders": "reads queries by a model of its own",
    "table": "weighs queries by a table",
    "prompts": "puts a prompt before texts",
    "entries": "keeps the heaviest entries alone",
}
TRIED_LENGTHS = ((1,), (2, 5, 3), (17, 4, 9, 1), (64,), (10_000,))  # of texts, batch by batch
EXAMPLE = (2, 7)  # the batch that the graph is traced with
ENCODED_AT_ONCE = 16

Weigh = Callable[[Tensor, Tensor], Tensor]
"""Ids and mask (B, L), int64 -> weights (B, V)."""


# -- the files ------------------------------------------------------------------------------------


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: the encoder as a graph, and its tokenizer."""
    assert source.encoder is not None, "the engine holds the encoder"
    check_form(source.encoder, "ONNX", source.vectors.model.name, FORMS)
    return ExportLayout(documents=partial(_write_encoder, source.encoder))


def how_to_load(export: ExportFolder) -> str:
    """Python that encodes a text."""
    return f"""\
import json
import numpy
import onnxruntime
from tokenizers import Tokenizer
tokens = json.load(open({str(export.path / TOKENS_FILE)!r}, encoding="utf-8"))
tokenizer = Tokenizer.from_file({str(export.path / "tokenizer.json")!r})
session = onnxruntime.InferenceSession({str(export.path / MODEL_FILE)!r})
text = tokenizer.encode("QUERY")
feed = {{"input_ids": numpy.array([text.ids]), "attention_mask": numpy.array([text.attention_mask])}}
weights = session.run(None, feed)[0]
print(sorted(((float(w), tokens[t]) for t, w in enumerate(weights[0]) if w > 0), reverse=True)[:10])"""


def _write_encoder(
    encoder: SparseEncoder, work: Path, manifest: ExportManifest, blocks: Iterable[EncodedBatch]
) -> ExportManifest:
    """Write graph and tokenizer. Raises ModelError where the graph's weights aren't those of torch."""
    opset = _write_graph(encoder, work / MODEL_FILE)
    weigh, token_scales = _as_written(work / MODEL_FILE), torch.from_numpy(encoder.token_scales_of())
    difference = largest_difference(encoder, weigh, token_scales)
    check_bound(difference, "ONNX Runtime", manifest.model.name)
    write_tokenizer(work, encoder.tokenizer, encoder.max_tokens)
    files = sorted(path.name for path in work.iterdir() if path.name != MARKER_FILE)
    written = (file_there(work, name) for name in files)
    return manifest.holding(*written, largest_difference=difference, bound=BOUND, opset=opset)


def check_form(encoder: SparseEncoder, engine: str, name: str, cannot: Container[str]) -> None:
    """Raise ModelError for a model whose form an engine's encoder can't follow: it holds logits and pooling alone."""
    if encoder.words is not None:
        raise ModelError(
            f"{name}: has exact words, which {engine} can't read; export the model that they were added to"
        )
    for part, words in FORMS.items():
        if part in encoder.unusual and part in cannot:
            raise ModelError(
                f"{name}: {words}, which {engine} can't do; load the model in sentence-transformers instead"
            )


def check_bound(difference: float, engine: str, name: str) -> None:
    """Raise ModelError where an engine's weights differ from torch's by too much, or by what is no number."""
    if not difference <= BOUND:
        raise ModelError(
            f"{name}: {engine}'s weights differ from torch's by {difference:.1e}, which is more than {BOUND:.0e}; "
            "load the model in sentence-transformers instead"
        )


class PooledEncoder(nn.Module):
    """Masked language model, SPLADE's pooling and the model's token scales as one graph."""

    token_scales: Tensor

    def __init__(self, encoder: SparseEncoder) -> None:
        super().__init__()
        self.masked_lm, self.form = encoder.masked_lm, encoder.form
        self.register_buffer("token_scales", torch.from_numpy(encoder.token_scales_of()))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Weights (B, V) as the form makes them of the logits at unmasked positions, times token scales."""
        logits = self.masked_lm(input_ids=input_ids, attention_mask=attention_mask).logits
        masked = logits.masked_fill(attention_mask.unsqueeze(-1) == 0, float("-inf"))
        if self.form.pooling == "sum":
            return self.form.activate(masked).sum(dim=1) * self.token_scales
        return self.form.activate(masked.amax(dim=1)) * self.token_scales


def _as_written(path: Path) -> Weigh:
    """A function that gives the weights of ONNX Runtime for the graph at `path`."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def weigh(ids: Tensor, mask: Tensor) -> Tensor:  # (B, L), (B, L) -> (B, V)
        feed = dict(zip(INPUTS, (ids.numpy(), mask.numpy()), strict=True))
        return torch.from_numpy(session.run([OUTPUT], feed)[0])

    return weigh


def largest_difference(encoder: SparseEncoder, weigh: Weigh, token_scales: Tensor) -> float:
    """The largest difference between the weights that `weigh` gives and those of torch, times token scales (V).

    The texts are made from a seed, in padded batches of many shapes.
    """
    generator = torch.Generator().manual_seed(0)
    largest = 0.0
    for lengths in TRIED_LENGTHS:
        texts = [
            torch.randint(encoder.vocabulary_size, (min(length, encoder.max_tokens),), generator=generator)
            for length in lengths
        ]
        ids, mask = pad([text.tolist() for text in texts], encoder.tokenizer.pad_token_id or 0)
        with torch.inference_mode():
            expected = (
                encoder.pool(ids.to(encoder.device), mask.to(encoder.device)).weights.cpu() * token_scales
            )
            largest = max(largest, float((weigh(ids, mask.long()) - expected).abs().max()))
    return largest


def _write_graph(encoder: SparseEncoder, path: Path) -> int:
    """Trace the model with batch and length left open; the version of the operators that it uses."""
    batch = torch.export.Dim("batch", min=1)
    shape = {0: batch, 1: torch.export.Dim("length", min=1, max=encoder.max_tokens)}
    return write_graph(PooledEncoder(encoder), EXAMPLE, INPUTS, (OUTPUT,), shape, path)


def write_graph(
    module: nn.Module,
    example: tuple[int, int],
    inputs: Sequence[str],
    outputs: Sequence[str],
    shape: dict[int, torch.export.Dim],
    path: Path,
    ir_version: int | None = None,
) -> int:
    """Trace a module by ones of the shape `example` for each input; the version of the operators that it uses.

    `shape`: the dimensions that stay open. `ir_version`: of the file's format, for a runtime that reads no newer one.
    """
    device = next(module.parameters()).device
    ones = tuple(
        torch.ones(example, dtype=torch.long, device=device) for _ in inputs
    )  # one tensor would be one input
    with quiet_logs("torch.onnx"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module.eval(),
            ones,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=(shape,) * len(inputs),
            dynamo=True,
            verbose=False,
        )
        assert program is not None, "torch.onnx.export with dynamo gives a program"
        program.model.ir_version = ir_version or program.model.ir_version
        program.save(str(path))
    return int(program.model.opset_imports[""])


# -- the engine -----------------------------------------------------------------------------------


@contextmanager
def open_export(export: ExportFolder, url: str, documents: EncodedBatch | None) -> "Iterator[OnnxEncoder]":
    """An export's encoder in memory, and the documents to search in: the export holds none."""
    size = export.manifest.model.vocabulary_size
    yield OnnxEncoder(export.path, documents or EncodedBatch([], csr_matrix((0, size))))


class OnnxEncoder(EncoderEngine):
    """An export's graph and tokenizer."""

    def __init__(self, folder: Path, documents: EncodedBatch) -> None:
        super().__init__(f"ONNX Runtime {version('onnxruntime')}", documents)
        self._weigh = _as_written(folder / MODEL_FILE)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_padding()  # behind the mask, where any token will do

    def encode(self, texts: Sequence[str]) -> csr_matrix:
        """Texts as ONNX Runtime turns them into weights (rows, V)."""
        rows = [csr_matrix((0, self._documents.vectors.shape[1]), dtype=np.float32)]
        for first in range(0, len(texts), ENCODED_AT_ONCE):
            encoded = self._tokenizer.encode_batch(list(texts[first : first + ENCODED_AT_ONCE]))
            ids, mask = [text.ids for text in encoded], [text.attention_mask for text in encoded]
            rows.append(csr_matrix(self._weigh(torch.tensor(ids), torch.tensor(mask)).numpy()))
        return vstack(rows, format="csr")
