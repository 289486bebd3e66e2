"""The health of a head by general passages and questions, the same ones each time."""

from sparse_adapt.errors import ModelError
from sparse_adapt.model.health import Head, look_at, sickness
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.synthetic.general import pairs

PASSAGES = 32


def head_of(encoder: SparseEncoder) -> Head:
    """What an encoder makes of some of the general passages and questions that come with the package."""
    some = pairs("teaches")[:: len(pairs("teaches")) // PASSAGES][:PASSAGES]
    return look_at(
        encoder, [passage.full_text for passage, _ in some], [question.text for _, question in some]
    )


def check_head(encoder: SparseEncoder, source: str) -> None:
    """Raise ModelError, naming `source`, for a model whose head is sick, before anything is taught."""
    found = sickness(head_of(encoder))
    if found is not None:
        raise ModelError(f"{source}: {found}")
