"""The encoder itself for Anserini, as its own SPLADE encoders are: queries in words for an index of `anserini`.

    FOLDER/.cache/pyserini/encoders/splade-v3-optimized.onnx, splade-v3-vocab.txt
    FOLDER/tokens.json, manifest.json

The graph takes input_ids, token_type_ids and attention_mask (1, L), int64, and gives output_idx (n), int64, and
output_weights (n), float32; the other file holds a token a line, by its id.

Anserini knows an encoder by its class, and looks for the files of that class below the user's home. This folder is such
a home, in which the encoder stands in the place of SPLADE-v3: nothing is copied, compiled or fetched. Anserini leaves
out ids 0, 101 and 102, which must be special tokens, puts weight x 51.2 in whole numbers, and cuts words by
`splade-v3-vocab.txt` alone: an added token with punctuation or capitals falls apart there, which is counted.

It is opened to encode queries in Anserini; the documents are searched exactly. Dimensions: L positions, V vocabulary.
"""

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from scipy.sparse import csr_matrix
from tokenizers import Tokenizer
from torch import Tensor, nn

from sparse_adapt.errors import ModelError
from sparse_adapt.files.folders import write_text
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines.engine import EncoderEngine
from sparse_adapt.plugins.engines.java import anserini_jar, java_class
from sparse_adapt.plugins.engines.layout import ExportLayout, ExportSource
from sparse_adapt.plugins.engines.manifest import ExportFolder, ExportManifest, file_there
from sparse_adapt.plugins.engines.onnx import (
    BOUND,
    FORMS,
    PooledEncoder,
    check_bound,
    check_form,
    largest_difference,
    write_graph,
)
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

HOME = Path(".cache/pyserini/encoders")
MODEL_FILE, VOCABULARY_FILE = "splade-v3-optimized.onnx", "splade-v3-vocab.txt"
INPUTS = ("input_ids", "token_type_ids", "attention_mask")
OUTPUTS = ("output_idx", "output_weights")
LEFT_OUT = (0, 101, 102)
SCALE = 256 / 5  # by which Anserini makes whole numbers of weights
IR_VERSION = 9  # the newest that the ONNX Runtime of Anserini reads


class OneText(nn.Module):
    """The encoder as Anserini calls it: one text, whose tokens come with their weights."""

    def __init__(self, encoder: SparseEncoder) -> None:
        super().__init__()
        self.encoder = PooledEncoder(encoder)

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Token ids (n) that have a weight, and the weights; `token_type_ids` say nothing."""
        weights = self.encoder(input_ids, attention_mask)[0]
        active = weights.nonzero().squeeze(1)
        return active, weights[active]


# -- the files ------------------------------------------------------------------------------------


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export. Raises ModelError for a model whose texts Anserini's own tokenizer doesn't read."""
    assert source.encoder is not None, "the engine holds the encoder"
    name, tokens = source.vectors.model.name, source.vectors.tokens
    check_form(source.encoder, "Anserini", name, FORMS)
    state = json.loads(source.encoder.tokenizer.backend_tokenizer.to_str())
    if state["model"]["type"] != "WordPiece" or not (state["normalizer"] or {}).get("lowercase"):
        raise ModelError(
            f"{name}: Anserini's tokenizer is a WordPiece without capitals, this one isn't; export onnx"
        )
    if not set(LEFT_OUT) <= set(source.encoder.tokenizer.all_special_ids):
        raise ModelError(
            f"{name}: Anserini leaves out ids 0, 101 and 102, which aren't special tokens; export onnx"
        )
    if len(set(tokens)) < len(tokens) or any(token != token.strip() or not token for token in tokens):
        raise ModelError(f"{name}: has tokens that a line of Anserini's vocabulary can't hold; export onnx")
    return ExportLayout(documents=partial(_write_encoder, source.encoder, tokens))


def how_to_load(export: ExportFolder) -> str:
    """Shell commands that search an index with queries in words."""
    home = shlex.quote(str(export.path))
    return "\n".join(
        [
            "ANSERINI=anserini-fatjar.jar  # Pyserini has one among its resources",
            "INDEX=index                   # of an export for anserini",
            f'java -Duser.home={home} -cp "$ANSERINI" io.anserini.search.SearchCollection -index "$INDEX" \\',
            "  -impact -pretokenized -encoder SpladeV3 -topics queries.tsv -topicReader TsvString -output run.txt",
        ]
    )


def _write_encoder(
    encoder: SparseEncoder,
    tokens: Sequence[str],
    work: Path,
    manifest: ExportManifest,
    blocks: Iterable[EncodedBatch],
) -> ExportManifest:
    """Write graph and vocabulary. Raises ModelError where the graph's weights aren't those of torch."""
    (work / HOME).mkdir(parents=True)
    shape, graph = {1: torch.export.Dim("length", min=1, max=encoder.max_tokens)}, work / HOME / MODEL_FILE
    opset = write_graph(OneText(encoder), (1, 7), INPUTS, OUTPUTS, shape, graph, IR_VERSION)
    write_text(work / HOME / VOCABULARY_FILE, "".join(f"{token}\n" for token in tokens))
    weigh = partial(_weigh, graph, encoder.vocabulary_size)
    difference = largest_difference(encoder, weigh, torch.from_numpy(encoder.token_scales_of()))
    check_bound(difference, "ONNX Runtime", manifest.model.name)
    written = (file_there(work, str(HOME / name)) for name in (MODEL_FILE, VOCABULARY_FILE))
    cut = cut_tokens(encoder, tokens)
    return manifest.holding(*written, largest_difference=difference, bound=BOUND, opset=opset, cut_tokens=cut)


def cut_tokens(encoder: SparseEncoder, tokens: Sequence[str]) -> int:
    """How many tokens the model's tokenizer reads whole, and one that has the vocabulary alone cuts apart."""
    own = encoder.tokenizer.backend_tokenizer
    state = json.loads(own.to_str())
    special = set(encoder.tokenizer.all_special_tokens)
    state["added_tokens"] = [each for each in state["added_tokens"] if each["content"] in special]
    plain = Tokenizer.from_str(json.dumps(state))
    plain.no_truncation()
    whole, cut = (each.encode_batch(list(tokens), add_special_tokens=False) for each in (own, plain))
    pairs = zip(whole, cut, strict=True)
    return sum(each.ids == [token_id] != other.ids for token_id, (each, other) in enumerate(pairs))


def _weigh(path: Path, size: int, ids: Tensor, mask: Tensor) -> Tensor:
    """Weights (B, V) of ONNX Runtime, text by text, for ids and mask (B, L)."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    weights = torch.zeros(len(ids), size)
    for row, (text, length) in enumerate(zip(ids, mask.sum(dim=1).tolist(), strict=True)):
        text = text[None, :length].numpy()
        feed = dict(zip(INPUTS, (text, np.zeros_like(text), np.ones_like(text)), strict=True))
        active, values = session.run(list(OUTPUTS), feed)
        weights[row, active] = torch.from_numpy(values)
    return weights


# -- the engine -----------------------------------------------------------------------------------


@contextmanager
def open_export(
    export: ExportFolder, url: str, documents: EncodedBatch | None
) -> "Iterator[AnseriniEncoder]":
    """An export's encoder in Anserini, and the documents to search in: the export holds none."""
    size = export.manifest.model.vocabulary_size
    yield AnseriniEncoder(export, documents or EncodedBatch([], csr_matrix((0, size))))


class AnseriniEncoder(EncoderEngine):
    """Anserini's own encoder with an export's files."""

    def __init__(self, export: ExportFolder, documents: EncodedBatch) -> None:
        super().__init__(f"{anserini_jar().stem.removesuffix('-fatjar')}'s encoder", documents)
        self._numbers = {token: token_id for token_id, token in enumerate(export.tokens)}
        for name in (MODEL_FILE, VOCABULARY_FILE):
            place = Path(_home().name) / HOME / name
            place.unlink(missing_ok=True)
            place.symlink_to((export.path / HOME / name).resolve())
        self._encoder = java_class("io.anserini.encoder.sparse.SpladeV3Encoder")()

    def encode(self, texts: Sequence[str]) -> csr_matrix:
        """Texts as Anserini turns them into whole numbers (rows, V), in terms of weights."""
        rows, columns, weights = [], [], []
        for row, text in enumerate(texts):
            encoded = self._encoder.encode(text)
            for entry in encoded.entrySet().toArray():
                if entry.getValue():
                    rows.append(row)
                    columns.append(self._numbers[entry.getKey()])
                    weights.append(entry.getValue() / SCALE)
        shape = (len(texts), self._documents.vectors.shape[1])
        return csr_matrix((np.array(weights, np.float32), (rows, columns)), shape=shape)


@cache
def _home() -> "TemporaryDirectory[str]":
    """The home that Anserini's encoders look in, where each export in turn is linked: it ends with this process."""
    home = TemporaryDirectory(prefix="sparse-adapt-")
    (Path(home.name) / HOME).mkdir(parents=True)
    java_class("java.lang.System").setProperty("user.home", home.name)
    return home
