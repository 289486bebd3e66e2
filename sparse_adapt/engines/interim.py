"""A corpus's vectors on disk while they are exported: what a killed export goes on from.

Encoding is what takes long, and every format is written from the same shards, so these are what is kept: shard
by shard, beside the export, until it is whole. The export itself is then written in one go, anew after a kill.
"""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sparse_adapt.collection.readers import Document
from sparse_adapt.files.folders import check_free, discard_unfinished
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.watching import Heard, silent
from sparse_adapt.retrieve.vectors.folder import Vectors, open_vectors
from sparse_adapt.retrieve.vectors.manifest import stamp
from sparse_adapt.retrieve.vectors.shards import DOCUMENTS_A_SHARD, check_encoded, encode_corpus


def interim_folder(out: Path) -> Path:
    """Where the vectors of an export lie while it isn't whole."""
    return out.with_name(f"{out.name}.vectors")


@contextmanager
def interim_vectors(
    encoder: SparseEncoder,
    documents: Iterable[Document],
    out: Path,
    *,
    model_name: str = "",
    documents_a_shard: int = DOCUMENTS_A_SHARD,
    overwrite: bool = False,
    resume: bool = False,
    progress: Heard = silent,
) -> Iterator[Vectors]:
    """The vectors of a corpus, from shards beside `out` that go once the block, which writes `out`, ends well.

    With `resume` the shards of a killed export are used again. Raises OutputError for a place that is taken and
    InputError for shards of another model or corpus, before anything is encoded.
    """
    folder = interim_folder(out)
    if resume:
        discard_unfinished(out)
    check_free(out, overwrite=overwrite)
    if resume and folder.is_dir():
        check_encoded(folder, stamp(encoder, model_name), documents, progress=progress)
    else:
        encode_corpus(
            encoder,
            documents,
            folder,
            model_name=model_name,
            documents_a_shard=documents_a_shard,
            progress=progress,
            resume=resume,
            overwrite=overwrite,
        )
    yield open_vectors(folder)
    shutil.rmtree(folder)
