"""A Common Index File Format file, written token by token without holding the corpus in memory.

The file has a header, one postings list a token with its documents, and one record a document (Lin et al. 2020,
arXiv:2003.08276). An impact stands where the format has a term frequency. Each block is inverted on disk, and the
lists are joined token by token. Dimensions: V vocabulary.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from shutil import rmtree
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.engines.manifest import ExportManifest, file_there
from sparse_adapt.engines.names import breaks_words
from sparse_adapt.errors import InputError
from sparse_adapt.model.threads import compiled
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

CIFF_FILE = "index.ciff"
MOST_DOCUMENTS = 2**31 - 1  # CIFF numbers them with 32 bits
DESCRIPTION = "sparse-adapt: impacts of SPLADE weights"

Numbers = NDArray[Any]


class Inverted(NamedTuple):
    """One block by token, on disk: a token's documents and impacts lie between two of `starts` (V + 1)."""

    starts: Numbers
    documents: Numbers
    impacts: Numbers


def write_ciff(
    names: Sequence[str], work: Path, manifest: ExportManifest, blocks: Iterable[EncodedBatch]
) -> ExportManifest:
    """Write the documents of an export into one file. names: (V) what each token is called there.

    Raises InputError for document ids that a line can't hold, and for more documents than CIFF can number.
    """
    scratch = work / "inverted"
    scratch.mkdir()
    manifest, lengths = _invert(scratch, manifest, blocks)
    _write_index(work / CIFF_FILE, scratch, names, lengths)
    rmtree(scratch)
    return manifest.holding(file_there(work, CIFF_FILE, manifest.documents))


# -- by token -------------------------------------------------------------------------------------


def _invert(
    scratch: Path, manifest: ExportManifest, blocks: Iterable[EncodedBatch]
) -> tuple[ExportManifest, Numbers]:
    """Each block by token in files of its own; the counts, and the sum of each document's impacts."""
    lengths = []
    with (scratch / "ids.jsonl").open("w", encoding="utf-8") as ids:
        for number, block in enumerate(blocks):
            _check_ids(block.ids)
            entries = manifest.take(block)
            if manifest.documents + len(entries.ids) > MOST_DOCUMENTS:
                raise InputError("documents", f"CIFF numbers {MOST_DOCUMENTS:,} at most; export two halves")
            columns = entries.vectors.tocsc()
            columns.sort_indices()
            _store(scratch / f"{number}-starts", columns.indptr)
            _store(scratch / f"{number}-documents", columns.indices.astype(np.int64) + manifest.documents)
            _store(scratch / f"{number}-impacts", columns.data)
            ids.writelines(json.dumps(each) + "\n" for each in entries.ids)
            lengths.append(np.asarray(entries.vectors.sum(axis=1, dtype=np.int64)).ravel())
            manifest = manifest.counting(entries)
    return manifest, np.concatenate(lengths) if lengths else np.zeros(0, np.int64)


def _check_ids(ids: Sequence[str]) -> None:
    for document_id in ids:
        if not document_id or any(map(breaks_words, document_id)):
            raise InputError(
                repr(document_id), "readers of CIFF keep ids line by line; give it an id without white space"
            )


def _open(scratch: Path) -> list[Inverted]:
    count = len(list(scratch.glob("*-starts")))
    return [
        Inverted(*(_load(scratch / f"{number}-{name}") for name in Inverted._fields))
        for number in range(count)
    ]


def _store(path: Path, numbers: Numbers) -> None:
    """Whole numbers as they are in memory; a full disk is an OSError that says so, unlike with `numpy.save`."""
    path.write_bytes(numbers.astype(np.int64).tobytes())


def _load(path: Path) -> Numbers:
    return np.memmap(path, np.int64, "r") if path.stat().st_size else np.zeros(0, np.int64)


# -- the file -------------------------------------------------------------------------------------


def _write_index(path: Path, scratch: Path, names: Sequence[str], lengths: Numbers) -> None:
    """Header, postings lists in the order of their terms, document records; a length before each message."""
    from ciff_toolkit.ciff_pb2 import DocRecord, Header

    blocks = _open(scratch)
    totals = sum((np.diff(block.starts) for block in blocks), np.zeros(len(names), np.int64))
    order = sorted(np.flatnonzero(totals).tolist(), key=lambda token: names[token].encode())
    header = Header(
        version=1,
        num_postings_lists=len(order),
        num_docs=len(lengths),
        total_postings_lists=len(order),
        total_docs=len(lengths),
        total_terms_in_collection=int(lengths.sum()),
        average_doclength=float(lengths.mean()) if len(lengths) else 0.0,
        description=DESCRIPTION,
    )
    with path.open("wb") as file, (scratch / "ids.jsonl").open(encoding="utf-8") as ids:
        _write_message(file, header.SerializeToString())
        for token in order:
            _write_message(file, _postings_list(names[token], *_joined(blocks, token)))
        for number, (line, length) in enumerate(zip(ids, lengths.tolist(), strict=True)):
            record = DocRecord(docid=number, collection_docid=json.loads(line), doclength=length)
            _write_message(file, record.SerializeToString())


def _joined(blocks: Sequence[Inverted], token: int) -> tuple[Numbers, Numbers]:
    """All documents of a token in their order, and its impacts there."""
    parts = [(block, slice(block.starts[token], block.starts[token + 1])) for block in blocks]
    documents = np.concatenate([block.documents[inside] for block, inside in parts])
    return documents, np.concatenate([block.impacts[inside] for block, inside in parts])


def _postings_list(name: str, documents: Numbers, impacts: Numbers) -> bytes:
    """One message: the term, its counts, then a message of gap and impact for each document."""
    from ciff_toolkit.ciff_pb2 import PostingsList

    head: bytes = PostingsList(term=name, df=len(documents), cf=int(impacts.sum())).SerializeToString()
    gaps = np.diff(documents, prepend=0)
    return head + _postings(gaps, impacts.astype(np.int64)).tobytes()


@compiled
def _postings(gaps: Numbers, impacts: Numbers) -> Numbers:
    """`repeated Posting postings = 4` as protobuf writes it; fields of value zero are left out."""
    content = np.empty(len(gaps) * 24, np.uint8)
    place = 0
    for posting in range(len(gaps)):
        start = place + 2  # 22 and a length, which is below 128
        place = start
        if gaps[posting] != 0:
            content[place] = 0x08
            place = _put_number(content, place + 1, gaps[posting])
        if impacts[posting] != 0:
            content[place] = 0x10
            place = _put_number(content, place + 1, impacts[posting])
        content[start - 2] = 0x22
        content[start - 1] = place - start
    return content[:place]


@compiled
def _put_number(content: Numbers, place: int, number: int) -> int:
    """A varint: seven bits a byte, the lowest first; the place after it."""
    while number > 127:
        content[place] = (number & 127) | 128
        number >>= 7
        place += 1
    content[place] = number
    return place + 1


def _write_message(file: BinaryIO, message: bytes) -> None:
    size = np.empty(10, np.uint8)
    file.write(bytes(size[: _put_number(size, 0, len(message))]))
    file.write(message)
