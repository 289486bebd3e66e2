"""Warm-up: the new rows learn from the corpus, and nothing else moves.

Masked language modelling alone teaches a row what stands beside its word, and, when it trains every weight,
costs the model its sparsity. Here it is one of four terms, over the domain's vocabulary, for the new rows.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sparse_adapt.config import Warmup
from sparse_adapt.errors import ConfigError
from sparse_adapt.stages.inputs import CORPUS, Inputs
from sparse_adapt.stages.stage import Stage

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.stages.parts.term_lessons import Lesson


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Warmup) -> "Lesson":
    """The task over the documents of a corpus."""
    from sparse_adapt.model.sparse import SparseEncoder

    assert isinstance(encoder, SparseEncoder)
    return warmup(encoder, [document.full_text for document in inputs[CORPUS]], settings)


def warmup(encoder: "SparseEncoder", documents: Sequence[str], settings: Warmup) -> "Lesson":
    """The task over document texts. Raises ConfigError where no document says a new term."""
    from sparse_adapt.stages.parts.term_lessons import Lesson
    from sparse_adapt.stages.parts.texts import Texts
    from sparse_adapt.training.loop import epochs_to_steps

    texts = Texts(encoder, documents)
    if encoder.new_tokens and not len(texts.saying):
        raise ConfigError(
            f"none of the {len(documents):,} documents holds any of the {len(encoder.new_tokens):,} new terms; "
            "warm up on a corpus that uses them"
        )
    return Lesson("warmup", encoder, texts, texts.says, settings, epochs_to_steps(settings, len(documents)))


WARMUP = Stage("warmup", Warmup, (CORPUS,), build, dense=False)
