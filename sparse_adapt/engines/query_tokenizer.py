"""What OpenSearch needs to weigh queries by a model's table: a tokenizer and the table, in the cluster or outside.

    FOLDER/query/tokenizer.json         for raw `tokenizers`: cuts at the longest query, pads nothing
    FOLDER/query/idf.json               {token: weight}, tokens by the names that documents have
    FOLDER/query/tokenizer.zip          both files, for ML Commons, which calls this a model of sparse tokens
    FOLDER/query/model_config.json      what registers the zip file

ML Commons counts a token that the table lacks as 1, and Lucene takes no weight of 0: a token that weighs nothing is in
the table with next to nothing. Dimensions: V vocabulary.
"""

import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from sparse_adapt.engines.layout import WriteDocuments
from sparse_adapt.engines.manifest import ExportFolder, ExportManifest, file_there
from sparse_adapt.engines.ml_commons import how_to_register, packed, registration
from sparse_adapt.files.folders import write_json
from sparse_adapt.model.saved import write_tokenizer
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

FOLDER = "query"
TOKENIZER, TABLE, ZIP_FILE, CONFIG_FILE = "tokenizer.json", "idf.json", "tokenizer.zip", "model_config.json"
NEXT_TO_NOTHING = 1e-6
ABOUT = "Queries by a table: each token of a text, once, at its weight."

Halving = Callable[[dict[str, float]], float]


def weighs_by_table(encoder: SparseEncoder | None) -> bool:
    """Whether a model's queries can be weighed by tokenizer and table alone: a prompt would have to be put before."""
    return encoder is not None and encoder.query_side is not None and not encoder.form.prompt("query")


def with_query_tokenizer(
    documents: WriteDocuments, encoder: SparseEncoder, names: Sequence[str], halving: Halving
) -> WriteDocuments:
    """Documents as they are written, and beside them what weighs queries.

    names: (V) what the engine calls each token. `halving`: the power of two by which weights that are too heavy for the
    engine are multiplied, all of them, so that no document moves.
    """

    def write(work: Path, manifest: ExportManifest, blocks: Iterable[EncodedBatch]) -> ExportManifest:
        manifest = documents(work, manifest, blocks)
        (work / FOLDER).mkdir()
        files = {TOKENIZER: _tokenizer(encoder), TABLE: _table(encoder, names, halving)}
        for name, content in files.items():
            (work / FOLDER / name).write_bytes(content)
        zip_file = work / FOLDER / ZIP_FILE
        zip_file.write_bytes(packed(files))
        bundle = file_there(work, f"{FOLDER}/{ZIP_FILE}")
        name = f"{Path(manifest.model.name).name or 'sparse-adapt'}-queries"
        told = registration(name, ABOUT, "SPARSE_TOKENIZE", zip_file, bundle.sha256)
        write_json(work / FOLDER / CONFIG_FILE, told)
        parts = [file_there(work, f"{FOLDER}/{name}") for name in (*files, CONFIG_FILE)]
        return manifest.holding(bundle, *parts)

    return write


def how_to_ask(export: ExportFolder) -> str:
    """Shell commands by which the cluster weighs queries, and lines of Python that do so outside of it."""
    folder = export.path / FOLDER
    if not (folder / ZIP_FILE).is_file():
        return ""
    shell = [
        "# queries by the table: in the cluster, once the zip file is where it can fetch it",
        "FROM=https://example.org/tokenizer.zip",
        *how_to_register(shlex.quote(str(folder / CONFIG_FILE))),
        '# {"query": {"neural_sparse": {"weights": {"query_text": "...", "model_id": "..."}}}}',
        "# or outside of it, by `tokenizers` and a dictionary",
    ]
    python = [
        "import json",
        "from tokenizers import Tokenizer",
        f"tokenizer = Tokenizer.from_file({json.dumps(str(folder / TOKENIZER))})",
        f"table = json.load(open({json.dumps(str(folder / TABLE))}, encoding='utf-8'))",
        'tokens = tokenizer.encode("a query", add_special_tokens=False).tokens',
        'search = {"query": {"neural_sparse": {"weights": {"query_tokens": {each: table[each] for each in tokens}}}}}',
    ]
    return "\n".join([*shell, *python])


def _tokenizer(encoder: SparseEncoder) -> bytes:
    """`tokenizer.json`, which cuts at the longest query. The encoder's own tokenizer stays as it is."""
    assert encoder.query_side is not None, "checked before"
    held = encoder.tokenizer.model_max_length
    with TemporaryDirectory() as scratch:
        write_tokenizer(Path(scratch), encoder.tokenizer, encoder.query_side.longest)
        encoder.tokenizer.model_max_length = held
        return (Path(scratch) / TOKENIZER).read_bytes()


def _table(encoder: SparseEncoder, names: Sequence[str], halving: Halving) -> bytes:
    """The weight of each token that the tokenizer has, under its name."""
    assert encoder.query_side is not None, "checked before"
    weights = np.maximum(encoder.query_side.weights, NEXT_TO_NOTHING).astype(np.float64)
    table = {
        names[token_id]: round(float(weights[token_id]), 6) for token_id in range(len(encoder.tokenizer))
    }
    factor = halving(table)
    put = {name: weight * factor for name, weight in table.items()}
    return json.dumps(put, ensure_ascii=False).encode()
