"""Warm-up: the new rows learn from the corpus, and nothing else moves.

Masked language modelling alone teaches a row what stands beside its word, and, when it trains every weight,
costs the model its sparsity. Here it is one of four terms, over the domain's vocabulary, for the new rows.
"""

from collections.abc import Sequence

from sparse_adapt import config
from sparse_adapt.errors import ConfigError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.stages.parts.term_lessons import Lesson
from sparse_adapt.stages.parts.texts import Texts
from sparse_adapt.training.loop import epochs_to_steps


def warmup(encoder: SparseEncoder, documents: Sequence[str], settings: config.Warmup) -> Lesson:
    """The stage over a corpus of document texts. Raises ConfigError where no document says a new term."""
    texts = Texts(encoder, documents)
    if encoder.new_tokens and not len(texts.saying):
        raise ConfigError(
            f"none of the {len(documents):,} documents holds any of the {len(encoder.new_tokens):,} new terms; "
            "warm up on a corpus that uses them"
        )
    return Lesson("warmup", encoder, texts, texts.says, settings, epochs_to_steps(settings, len(documents)))
