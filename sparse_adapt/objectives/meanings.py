"""Which terms a text is about, even where it doesn't say them, and what synthetic texts teach of them.

A definition is about the term that it defines, a query about what its answers say. Synthetic texts are made from such
sources. Dimensions: S sources, B texts, D new tokens, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparse_adapt.collection.glossary import Definition, sentence
from sparse_adapt.errors import ConfigError
from sparse_adapt.model.dense import DenseEncoder
from sparse_adapt.model.head.pooling import splade_pool
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds, read_by_length
from sparse_adapt.objectives.targets import Targets
from sparse_adapt.objectives.texts import Texts, general_passages
from sparse_adapt.synthetic.labelled import LabelledMeanings
from sparse_adapt.synthetic.windows import Meanings, Samples, SyntheticTexts
from sparse_adapt.training import losses
from sparse_adapt.training.sharing import shared_out

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Sources:
    """Texts as token ids, and which terms each is about (S, D)."""

    token_ids: Sequence[TokenIds]
    about: NDArray[np.bool_]

    def __add__(self, other: "Sources") -> "Sources":
        return Sources([*self.token_ids, *other.token_ids], np.concatenate([self.about, other.about]))

    def of_terms(self, terms: NDArray[np.int64]) -> "Sources":
        """The same of some of the terms, by their places: (terms,)."""
        return Sources(self.token_ids, self.about[:, terms])


@dataclass(frozen=True, slots=True)
class DefinedTexts:
    """What definitions say, and documents behind that; about: (S, D). The first `sayings` texts are of definitions."""

    texts: Texts
    about: NDArray[np.bool_]
    sayings: int

    @property
    def documents(self) -> range:
        """The rows of the documents."""
        return range(self.sayings, len(self.texts))

    @property
    def defined(self) -> NDArray[np.int64]:
        """The places of the terms that are defined, among the new tokens: (terms,)."""
        return np.flatnonzero(self.about[: self.sayings].any(axis=0))


@dataclass(frozen=True, slots=True)
class AnsweredQuery:
    """A query, and the texts that answer it."""

    query: str
    answers: Sequence[str]


def defined_texts(
    encoder: SparseEncoder,
    definitions: Sequence[Definition],
    documents: Sequence[str],
    *,
    whole: bool = False,
) -> DefinedTexts:
    """The texts of a stage that teaches definitions; `whole`: one of each. Raises ConfigError where none is of a new
    term.
    """
    of_each = [sayings(definition)[: 1 if whole else None] for definition in definitions]
    sentences = list(chain.from_iterable(of_each))
    texts = Texts(encoder, [*sentences, *documents])
    about = texts.says.copy()
    about[: len(sentences)] = defined(of_each, texts.says[: len(sentences)])
    about[len(sentences) :] |= _word_for_word(definitions, about[_firsts(of_each)], documents)
    if not about[: len(sentences)].any():
        raise ConfigError(
            f"none of the {len(definitions):,} definitions is of a new term; extend the model with these terms first"
        )
    return DefinedTexts(texts, about, len(sentences))


def _word_for_word(
    definitions: Sequence[Definition], about: NDArray[np.bool_], documents: Sequence[str]
) -> NDArray[np.bool_]:
    """Which documents (B) mean a term (D) by what it is short for: `about` is a row for each definition."""
    marks = np.zeros((len(documents), about.shape[1]), dtype=np.bool_)
    folded = [document.casefold() for document in documents]
    for definition, terms in zip(definitions, about, strict=True):
        text = definition.definition.casefold()
        if 2 <= len(text.split()) <= SHORT_FOR:
            marks[[text in document for document in folded]] |= terms
    return marks


def sayings(definition: Definition) -> list[str]:
    """The rendered sentence of a definition, the definition alone, and each example."""
    return [sentence(definition), definition.definition, *definition.examples]


def defined(of_each: Sequence[Sequence[str]], says: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What each saying is about: all that the first of its definition, which holds the term, says. Both (S, D)."""
    return says | np.repeat(says[_firsts(of_each)], [len(group) for group in of_each], axis=0)


def _firsts(of_each: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """The row of the first saying of each definition: (definitions,)."""
    return np.cumsum([0, *(len(group) for group in of_each)])[:-1]


def queries_about(encoder: SparseEncoder, queries: Sequence[AnsweredQuery]) -> Sources:
    """Queries, about what they say and what the texts say that answer them."""
    texts = Texts(encoder, [each.query for each in queries])
    answers = list(dict.fromkeys(answer for each in queries for answer in each.answers))
    place = {answer: row for row, answer in enumerate(answers)}
    answered = Texts(encoder, answers).says
    about = texts.says.copy()
    for row, each in enumerate(queries):
        about[row] |= answered[[place[answer] for answer in each.answers]].any(axis=0)
    return Sources(texts.sources, about)


SHORT_FOR = 8  # words that an acronym stands for, at the most
SHORT_TOKENS_A_PASS = 768  # of synthetic texts, which are short: as many of like length


def new_logits(
    encoder: SparseEncoder, token_ids: Sequence[Sequence[int]], texts: Texts, body_learns: bool = True
) -> Tensor:
    """Largest raw logits of the new tokens in some texts: (B, D).

    `body_learns`: whether gradients go further than to the rows. Texts that say no new token have no others where
    nothing else learns.
    """
    new = slice(texts.first, texts.first + texts.new)
    rows = encoder.output_rows[new]
    bias = None if encoder.output_bias is None else encoder.output_bias[new]
    if not token_ids:
        return rows.new_zeros(0, texts.new)

    def largest(ids: Tensor, mask: Tensor, _: list[int]) -> Tensor:  # (B, L), (B, L) -> (B, D)
        with torch.set_grad_enabled(body_learns and torch.is_grad_enabled()):
            states = encoder.hidden(ids, mask)
        return splade_pool(states, rows, bias, mask)[0]

    def logits(share: Sequence[Sequence[int]]) -> Tensor:  # (texts, D)
        pad_id = encoder.tokenizer.pad_token_id or 0
        with encoder.looked_up(share):
            return read_by_length(share, SHORT_TOKENS_A_PASS, pad_id, encoder.device, largest)

    return shared_out(logits, token_ids)


def meanings(
    reference: SparseEncoder,
    sources: Sources,
    labeller: str,
    seed: int,
    documents: Sequence[int] = (),
    share: float = 1.0,
) -> SyntheticTexts:
    """Synthetic texts from a stage's sources, labelled by the dense encoder of that name; by nobody where it is "none".

    The labeller compares them with general passages, too, and others are made of these: what people write who mean no
    term. `documents`: the rows of the sources that a search is to find. `share`: of the texts, where less is learnt.
    """
    if labeller == "none" or not sources.about.shape[1]:
        return Meanings(reference, sources.token_ids, sources.about)
    passages = general_passages(reference)
    sources += Sources(passages.sources, passages.says)
    random = np.random.default_rng(seed)
    return LabelledMeanings(
        reference, sources.token_ids, sources.about, labeller_named(labeller), random, documents, share=share
    )


@lru_cache(maxsize=1)
def labeller_named(name: str) -> DenseEncoder:
    """The semantic labeller of that name: one for every stage of a run, which then needn't encode the ordinary words
    again.
    """
    return DenseEncoder(name, rough=True)


def recall(target: Tensor, samples: Samples, targets: Targets, inactive_weight: float) -> Tensor:
    """How far synthetic texts are from activating what they mean; `meant` (B, D) as the hinges take it.

    Labelled by degrees, a term's logit follows the similarity margin; else it is active above or inactive below a
    bound.
    """
    if samples.similarity_margin is not None:
        wanted = targets.threshold + targets.slope * samples.similarity_margin.to(target.device)
        wanted = wanted.clamp(targets.unrelated, targets.meaning)
        return losses.graded(target, wanted, targets.unrelated, targets.meaning, inactive_weight)
    active = losses.hinge_above(target, samples.meaning.to(target.device), targets.meaning)
    return active + inactive_weight * losses.hinge_below(
        target, samples.inactive.to(target.device), targets.none
    )
