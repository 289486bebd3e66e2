"""The encoder for OpenSearch's ML Commons: TorchScript and tokenizer in a zip file, and what registers it.

    FOLDER/model.zip            model.pt and tokenizer.json
    FOLDER/model_config.json    name, version, format, function, and the size and SHA-256 of the zip file
    FOLDER/tokens.json, manifest.json

ML Commons calls the model with {"input_ids", "attention_mask"} of one text each and wants {"output": weights}.
It names weights by decoding each token's id, leaves out special tokens and reads the longest text from the
tokenizer. The script is run before it is kept, and refused where a weight differs from torch's by more than
`BOUND`. Tokens that decode to another name than theirs are counted (`renamed_tokens`): an index that this model
and an export for opensearch both fill would hold them twice. Dimensions: B texts, L positions, V vocabulary.
"""

import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor, nn

from sparse_adapt.model.saved import write_tokenizer
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines.engine import Engine
from sparse_adapt.plugins.engines.layout import ExportLayout, ExportSource
from sparse_adapt.plugins.engines.manifest import ExportFolder, ExportManifest, file_there
from sparse_adapt.plugins.engines.onnx import (
    BOUND,
    EXAMPLE,
    PooledEncoder,
    check_bound,
    check_form,
    largest_difference,
)
from sparse_adapt.plugins.engines.opensearch import how_to_register, write_bundle
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

ZIP_FILE, CONFIG_FILE = "model.zip", "model_config.json"
SCRIPT, TOKENIZER = "model.pt", "tokenizer.json"
INPUTS, OUTPUT = ("input_ids", "attention_mask"), "output"
ABOUT = "A SPLADE encoder: texts to weights over its vocabulary."


class ScriptedEncoder(nn.Module):
    """The encoder as ML Commons calls it: a dictionary in, a dictionary out, nothing for special tokens."""

    kept: Tensor

    def __init__(self, encoder: SparseEncoder) -> None:
        super().__init__()
        self.encoder = PooledEncoder(encoder)
        mask = torch.ones(encoder.vocabulary_size)
        mask[list(encoder.tokenizer.all_special_ids)] = 0.0
        self.register_buffer("kept", mask)

    def forward(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Weights (B, V) of token ids and mask (B, L)."""
        return {OUTPUT: self.encoder(inputs[INPUTS[0]], inputs[INPUTS[1]]) * self.kept}


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: the encoder as a script in a zip file, and its configuration."""
    assert source.encoder is not None, "the engine holds the encoder"
    check_form(source.encoder, "ML Commons", source.vectors.model.name, ("encoders", "prompts", "entries"))
    return ExportLayout(documents=partial(_write_bundle, source.encoder, source.vectors.tokens))


def how_to_load(export: ExportFolder) -> str:
    """Shell commands that register and deploy it, once the zip file is where the cluster can fetch it."""
    return "\n".join(
        [
            "URL=http://localhost:9200",
            f"# put {export.path / ZIP_FILE} where the cluster can fetch it, and name that place here",
            "FROM=https://example.org/model.zip",
            *how_to_register(f"'{export.path / CONFIG_FILE}'"),
        ]
    )


def open_export(
    export: ExportFolder, url: str, documents: EncodedBatch | None
) -> AbstractContextManager[Engine]:
    """There is no such engine outside of OpenSearch; the table of engines says so."""
    raise AssertionError("OpenSearch alone opens it")


def renamed_tokens(encoder: SparseEncoder, tokens: list[str]) -> int:
    """How many tokens ML Commons knows by another name than theirs, special ones aside: those it decodes so."""
    special = set(encoder.tokenizer.all_special_ids)
    decode = encoder.tokenizer.backend_tokenizer.decode
    return sum(
        decode([token_id]) != token for token_id, token in enumerate(tokens) if token_id not in special
    )


def _write_bundle(
    encoder: SparseEncoder,
    tokens: list[str],
    work: Path,
    manifest: ExportManifest,
    blocks: Iterable[EncodedBatch],
) -> ExportManifest:
    """Write zip file and configuration. Raises ModelError where the script's weights aren't those of torch."""
    name = manifest.model.name
    with TemporaryDirectory() as scratch:
        difference = _write_script(encoder, Path(scratch) / SCRIPT)
        check_bound(difference, "TorchScript", name)
        write_tokenizer(Path(scratch), encoder.tokenizer, encoder.max_tokens)
        files = {file: (Path(scratch) / file).read_bytes() for file in (SCRIPT, TOKENIZER)}
    called = Path(name).name or "sparse-adapt"
    write_bundle(work / ZIP_FILE, files, work / CONFIG_FILE, called, ABOUT, "SPARSE_ENCODING")
    written = (file_there(work, ZIP_FILE), file_there(work, CONFIG_FILE))
    renamed = renamed_tokens(encoder, tokens)
    return manifest.holding(*written, largest_difference=difference, bound=BOUND, renamed_tokens=renamed)


def _write_script(encoder: SparseEncoder, path: Path) -> float:
    """Trace the model, on the CPU, and run what was written; its largest difference from torch."""
    device = encoder.device
    ids = torch.ones(EXAMPLE, dtype=torch.long)
    inputs = dict(zip(INPUTS, (ids, torch.ones_like(ids)), strict=True))
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # that shapes may have become constants: the runs below tell
            module = ScriptedEncoder(encoder).cpu().eval()
            buffer = BytesIO()  # torch ends the process where a file of its own can't be finished
            torch.jit.save(torch.jit.trace(module, (inputs,), strict=False), buffer)
            path.write_bytes(buffer.getvalue())
        script, token_scales = torch.jit.load(str(path)), torch.from_numpy(encoder.token_scales_of())
        token_scales[list(encoder.tokenizer.all_special_ids)] = 0.0

        def weigh(ids: Tensor, mask: Tensor) -> Tensor:  # (B, L), (B, L) -> (B, V)
            weights: Tensor = script(dict(zip(INPUTS, (ids, mask), strict=True)))[OUTPUT]
            return weights

        return largest_difference(encoder, weigh, token_scales)
    finally:
        encoder.to(device)
