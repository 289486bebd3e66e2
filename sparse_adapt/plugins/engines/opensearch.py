r"""OpenSearch: `rank_features`, searched by `neural_sparse` with raw tokens; the files are those of `features`.

OpenSearch takes any token as the name of a feature, dots included, so tokens keep the names that a model of ML
Commons gives them. A query's weight may be 64 at most: where one is heavier, the whole query is halved until it
isn't, which moves no document.

Where a table weighs the model's queries, the export holds what weighs them by `query_text`, in the cluster or outside:

    FOLDER/query/tokenizer.json         for raw `tokenizers`: cuts at the longest query, pads nothing
    FOLDER/query/idf.json               {token: weight}, tokens by the names that documents have
    FOLDER/query/tokenizer.zip          both files, for ML Commons, which calls this a model of sparse tokens
    FOLDER/query/model_config.json      what registers the zip file

ML Commons counts a token that the table lacks as 1, and Lucene takes no weight of 0: a token that weighs nothing is in
the table with next to nothing. Dimensions: V vocabulary.
"""

import json
import shlex
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np

from sparse_adapt.files.folders import write_json
from sparse_adapt.files.marker import checksum_of_file
from sparse_adapt.files.records import JsonObject
from sparse_adapt.model.query_side import QuerySide
from sparse_adapt.model.saved import write_tokenizer
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines.features import BUSY, SECONDS, FeatureFields, SearchServer
from sparse_adapt.plugins.engines.layout import ExportLayout, ExportSource, WriteDocuments
from sparse_adapt.plugins.engines.lucene_features import FIELD, halving
from sparse_adapt.plugins.engines.manifest import ExportFolder, ExportManifest, file_there
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

NEXT_TO_NOTHING = 1e-6
QUERY_FOLDER = "query"
TOKENIZER, TABLE, ZIP_FILE, CONFIG_FILE = "tokenizer.json", "idf.json", "tokenizer.zip", "model_config.json"
ABOUT = "Queries by a table: each token of a text, once, at its weight."
EPOCH = (1980, 1, 1, 0, 0, 0)  # of the files in a zip file: the same files give the same zip file


def search_body(weights: Mapping[str, float], k: int) -> tuple[JsonObject, float]:
    """What `_search` takes: the k documents with the largest dot products, their ids and scores only."""
    factor = halving(weights)
    tokens = {name: weight * factor for name, weight in weights.items()}
    query = {"neural_sparse": {FIELD: {"query_tokens": tokens}}}
    return {"size": k, "_source": False, "query": query}, factor


def connect(url: str) -> SearchServer:
    """OpenSearch at a URL, by its own client."""
    from opensearchpy import OpenSearch, OpenSearchException, helpers

    client = OpenSearch(url, timeout=SECONDS, retry_on_status=BUSY)
    return SearchServer(client, helpers.streaming_bulk, (OpenSearchException,))


OPENSEARCH = FeatureFields("opensearch", "OpenSearch", {"type": "rank_features"}, search_body, str, connect)


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export; beside them tokenizer and table, where the model weighs queries by one.

    A prompt before queries would have to be put before their texts, so that such a model has no table here.
    """
    made, encoder = OPENSEARCH.layout(source), source.encoder
    if encoder is None or encoder.query_side is None or encoder.form.prompt("query"):
        return made
    names = OPENSEARCH.names(source.vectors.tokens)
    return replace(made, documents=_with_query_tokenizer(made.documents, encoder, encoder.query_side, names))


def how_to_load(export: ExportFolder) -> str:
    """How an export is loaded, and how its queries are weighed where a table weighs them."""
    return "\n\n".join(filter(None, (OPENSEARCH.how_to_load(export), _how_to_ask(export))))


open_export, load = OPENSEARCH.open_export, OPENSEARCH.load


# -- queries by a table ---------------------------------------------------------------------------


def _with_query_tokenizer(
    documents: WriteDocuments, encoder: SparseEncoder, side: QuerySide, names: Sequence[str]
) -> WriteDocuments:
    """Documents as they are written, and beside them what weighs queries. names: (V) what tokens are called."""

    def write(work: Path, manifest: ExportManifest, blocks: Iterable[EncodedBatch]) -> ExportManifest:
        manifest = documents(work, manifest, blocks)
        folder = work / QUERY_FOLDER
        folder.mkdir()
        files = {TOKENIZER: _tokenizer(encoder, side), TABLE: _table(encoder, side, names)}
        for name, content in files.items():
            (folder / name).write_bytes(content)
        name = f"{Path(manifest.model.name).name or 'sparse-adapt'}-queries"
        write_bundle(folder / ZIP_FILE, files, folder / CONFIG_FILE, name, ABOUT, "SPARSE_TOKENIZE")
        written = (ZIP_FILE, *files, CONFIG_FILE)
        return manifest.holding(*(file_there(work, f"{QUERY_FOLDER}/{each}") for each in written))

    return write


def _how_to_ask(export: ExportFolder) -> str:
    """Shell commands by which the cluster weighs queries, and lines of Python that do so outside of it."""
    folder = export.path / QUERY_FOLDER
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


def _tokenizer(encoder: SparseEncoder, side: QuerySide) -> bytes:
    """`tokenizer.json`, which cuts at the longest query. The encoder's own tokenizer stays as it is."""
    longest = encoder.tokenizer.model_max_length
    with TemporaryDirectory() as scratch:
        write_tokenizer(Path(scratch), encoder.tokenizer, side.longest)
        encoder.tokenizer.model_max_length = longest
        return (Path(scratch) / TOKENIZER).read_bytes()


def _table(encoder: SparseEncoder, side: QuerySide, names: Sequence[str]) -> bytes:
    """The weight of each token that the tokenizer has, under its name; all of them halved until none is too heavy."""
    weights = np.maximum(side.weights, NEXT_TO_NOTHING).astype(np.float64)
    table = {
        names[token_id]: round(float(weights[token_id]), 6) for token_id in range(len(encoder.tokenizer))
    }
    factor = halving(table)
    return json.dumps({name: weight * factor for name, weight in table.items()}, ensure_ascii=False).encode()


# -- ML Commons -----------------------------------------------------------------------------------


def write_bundle(
    zip_file: Path,
    files: Mapping[str, bytes],
    config: Path,
    name: str,
    description: str,
    function: Literal["SPARSE_ENCODING", "SPARSE_TOKENIZE"],
) -> None:
    """Write what ML Commons takes: some files by their names in a zip file, and what registers it beside its URL."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path, EPOCH), content, zipfile.ZIP_DEFLATED)
    zip_file.write_bytes(buffer.getvalue())
    registration = {
        "name": name,
        "version": "1.0.0",
        "description": description,
        "model_format": "TORCH_SCRIPT",
        "function_name": function,
        "model_content_size_in_bytes": zip_file.stat().st_size,
        "model_content_hash_value": checksum_of_file(zip_file),
    }
    write_json(config, registration)


def how_to_register(config: str) -> list[str]:
    """Shell commands that register a model, its configuration in the file `config`, for FROM and URL that are set."""
    return [
        f'sed "1s|{{|{{\\"url\\": \\"$FROM\\",|" {config} |',
        "  curl -fsS \"$URL/_plugins/_ml/models/_register?deploy=true\" -H 'Content-Type: application/json' -d @-",
    ]
