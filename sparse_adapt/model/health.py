"""Whether a head is healthy: what it makes of general passages, which every language model for search should weigh.

A head that was never trained as SPLADE gives weight to most of the vocabulary; one that training has killed gives none.
Neither can be taught by examples on single terms. Dimensions: B passages, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers.models import BPE, WordPiece

from sparse_adapt.model.sparse import SparseEncoder

LONGEST = 64  # tokens of a passage that are read
HEALTHY_DOCUMENT, HEALTHY_QUERY = (150, 250), (30, 50)  # entries of trained models
FLOODED = 2_000  # entries of a passage, of which a trained head gives some hundred
WORD_MARKS = ("\u0120", "\u2581")  # of byte-level tokens and of SentencePiece's
DARK = 0.5  # share of passages without an entry


@dataclass(frozen=True, slots=True)
class Head:
    """What a head gives general passages and questions: mean entries, and the share of passages without any.

    active: share of the vocabulary that some passage activates. mentioned: tokens that passages say; inactive: those of
    them that no passage activates that says them.
    """

    nonzero_document: float
    nonzero_query: float
    dark: float
    active: float
    mentioned: int
    never_active: int


@torch.no_grad()
def measure_head(encoder: SparseEncoder, passages: Sequence[str], questions: Sequence[str]) -> Head:
    """What an encoder makes of some general passages and questions."""
    read = [ids[:LONGEST] for ids in encoder.tokenize(passages)]
    token_ids = encoder.tokenize(questions, "query")
    active = (encoder.weights(read) > 0).cpu().numpy()
    if encoder.query_side is None:
        queries = float((encoder.for_side("query").weights(token_ids) > 0).sum(dim=1).float().mean())
    else:
        queries = encoder.query_side.vectors(token_ids).nnz / len(token_ids)
    says = np.zeros_like(active)
    for row, ids in enumerate(read):
        says[row, list(ids)] = True
    says[:, list(encoder.tokenizer.all_special_ids)] = False
    active_somewhere = says.any(axis=0)
    return Head(
        nonzero_document=float(active.sum(axis=1).mean()),
        nonzero_query=queries,
        dark=float((~active.any(axis=1)).mean()),
        active=float(active.any(axis=0).mean()),
        mentioned=int(active_somewhere.sum()),
        never_active=int((active_somewhere & ~(says & active).any(axis=0)).sum()),
    )


def unreachable(encoder: SparseEncoder) -> list[int]:
    """The tokens, by their ids, that begin a word and that their own text isn't cut into: nobody can say them.

    Of a piece inside a word (`##ing`) its text alone tells nothing, and special tokens aren't said: both are left out.
    """
    raw, new = (
        encoder.tokenizer.backend_tokenizer,
        {token.token_id: token.term for token in encoder.new_tokens},
    )
    beside = {token.token_id for token in encoder.new_tokens if token.beside}  # said by their pieces
    inside = raw.model.continuing_subword_prefix if isinstance(raw.model, BPE | WordPiece) else None
    special = set(encoder.tokenizer.all_special_ids)
    spellings = {
        token_id: new.get(token_id) or raw.decode([token_id])
        for token_id, name in enumerate(encoder.tokens)
        if name and token_id not in special and token_id not in beside and _begins_word(name, inside)
    }
    read = raw.encode_batch(list(spellings.values()), add_special_tokens=False)
    return [
        token_id for token_id, encoding in zip(spellings, read, strict=True) if token_id not in encoding.ids
    ]


def _begins_word(name: str, inside: str | None) -> bool:
    """Whether a token's name says that it begins a word: a mark of words, or, in WordPiece, none of pieces inside."""
    return not name.startswith(inside) if inside else len(name) > 1 and name.startswith(WORD_MARKS)


def sickness(head: Head, *, taught: bool = False) -> str | None:
    """What is wrong with a head, and what helps; None for one that can be taught, or was well `taught` by a stage."""
    first, last = HEALTHY_DOCUMENT
    if head.nonzero_document > FLOODED:
        fault = f"its head gives weight to {head.nonzero_document:,.0f} tokens of a general passage, where {first} to "
        fault += f"{last} are usual: "
        helps = "it was never trained to be sparse; train it as SPLADE first (SpladeLoss of sentence-transformers)"
    elif head.dark > DARK:
        fault = f"its head gives no weight at all to {head.dark:.0%} of general passages: "
        helps = "it is dead; go back to a checkpoint from before, and train that with a weaker sparsity loss"
    else:
        return None
    if taught:
        return (
            f"{fault}the steps were too large; teach it at a tenth of the learning rates, or in fewer steps"
        )
    return f"{fault}{helps}, or choose another model"
