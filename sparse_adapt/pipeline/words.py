"""Exact words put into a model: the language and the statistics of a corpus, and how much words count in a score.

A match on a token then counts by the root of its idf as well, with a quarter of general language. The scale makes both
parts of a score equal: the mean best score of the model's weights, and that of words, over pieces of sentences of a
sample of documents. No judgement is read for it, and nothing is trained.

Dimensions: N documents, V vocabulary.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import default_rng
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document
from sparse_adapt.collection.sentences import sentences
from sparse_adapt.collection.streams import evenly, sample
from sparse_adapt.errors import InputError
from sparse_adapt.model.exact.analysis import Analyzer
from sparse_adapt.model.exact.defaults import HEAVIEST, ONLY_DOMAIN, PIECES, SHARE, TITLE
from sparse_adapt.model.exact.language import Language, language_of
from sparse_adapt.model.exact.statistics import GENERAL, Statistics
from sparse_adapt.model.exact.words import ExactWords, WordSettings
from sparse_adapt.model.idf import DECIMALS, DOCUMENTS, TokenScales, fourth_root, scaled, shares_of
from sparse_adapt.model.query_side import QuerySide
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import tokenize
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.columns import products
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.synthetic.background import background_pairs
from sparse_adapt.terms.words import find_words

SAMPLE = 300  # documents, and passages of general language
GENERAL_LANGUAGE = "en"  # of these passages
FRAGMENT = (4, 12)  # words of a piece of a sentence, least and most
SEED = 0

Read = Callable[[], Iterable[Document]]


@dataclass(frozen=True, kw_only=True, slots=True)
class WordOptions:
    """What is chosen of exact words; a language of None is told by the corpus.

    `only_domain`: the index holds nothing but this corpus, so general language counts for nothing, and words as much
    as weights where no `share` is named.
    """

    share: float | None = None
    title: float = TITLE
    heaviest: int | None = HEAVIEST
    language: str | None = None
    only_domain: bool = False

    @property
    def part(self) -> float:
        """The share of words in a score."""
        return (ONLY_DOMAIN if self.only_domain else SHARE) if self.share is None else self.share


def add_exact_words(
    encoder: SparseEncoder, read: Read, options: WordOptions, progress: Progress = no_progress
) -> ExactWords:
    """Put exact words into a model, and token scales where it has none; the words by the statistics of a corpus.

    The corpus is read twice; `progress` hears how many documents are counted. Raises InputError for a corpus of stop
    words alone, or of none, and ConfigError for a language without stems; the model then stays as it was.
    """
    some = sample(read(), SAMPLE, SEED)
    if not some:
        raise InputError("the corpus", "has no documents; words are counted in them")
    code = options.language or language_of(
        word.lower() for document in some for word in find_words(document.full_text)
    )
    statistics = Statistics.of(read(), Analyzer(Language(code)), progress)
    if not statistics.frequencies:
        raise InputError("the corpus", "holds no word besides stop words; name another language, or none")
    settings = WordSettings(
        language=code,
        mean_words=round(statistics.mean_words, 4),
        mean_title_words=round(statistics.mean_title_words, 4),
        title=options.title,
        heaviest=options.heaviest,
        share=1.0,
        scale=1.0,
        pieces=1.0,
        documents=1,
        general=0.0,
        unknown=0.0,
        idf={},
    )
    words = ExactWords(settings).with_settings(**_of_statistics(statistics, code, options.only_domain))
    weights = encode(encoder, [document.full_text for document in some], "document")
    if _may_scale(encoder):
        general = code == GENERAL_LANGUAGE and not options.only_domain
        encoder.token_scales = token_scales_by_idf(encoder, weights, general=general)
        weights = scaled(weights, encoder.token_scales)
    scale = scale_of(encoder, words, some, weights)
    encoder.words = words.with_settings(share=options.part, scale=round(scale, 4), pieces=PIECES)
    return encoder.words


def _may_scale(encoder: SparseEncoder) -> bool:
    """Whether nothing weighs tokens yet: no scales of its own, no table, and no second model, which has none."""
    return encoder.token_scales is None and encoder.query_side is None and encoder.query_encoder is None


def token_scales_by_idf(encoder: SparseEncoder, weights: csr_matrix, *, general: bool) -> TokenScales:
    """The fourth root of each token's idf (V) in documents (N, V), for both sides: a match counts by its square.

    general: whether the package's general passages count as well, which are English. As precise as its file has it.
    """
    passages = [passage.full_text for passage, _ in evenly(background_pairs(), SAMPLE)] if general else []
    shares = shares_of(encode(encoder, passages, "document")) if general else None
    return fourth_root(weights, shares).round(DECIMALS)


def updated(
    words: ExactWords, read: Read, options: WordOptions, progress: Progress = no_progress
) -> ExactWords:
    """The same with the statistics of other documents, and another share where one is named or comes with the options.

    Vectors of documents stay as they are, so what decides them does. Raises InputError for a corpus of stop words
    alone, or of none.
    """
    statistics = Statistics.of(read(), words.analyzer, progress)
    if not statistics.frequencies:
        raise InputError("the corpus", "holds no word besides stop words; give more documents")
    new = _of_statistics(statistics, words.settings.language, options.only_domain)
    stays = options.share is None and not options.only_domain
    return words.with_settings(**new, share=words.settings.share if stays else options.part)


def _of_statistics(statistics: Statistics, code: str, only_domain: bool) -> dict[str, object]:
    general = 0.0 if only_domain else GENERAL
    idf = {word: round(value, 4) for word, value in sorted(statistics.idf(code, general).items())}
    return {
        "documents": statistics.documents,
        "general": general,
        "unknown": round(statistics.idf_of(0.0), 4),
        "idf": idf,
    }


# -- queries without a model ------------------------------------------------------------------------


def idf_table(encoder: SparseEncoder, read: Read, progress: Progress = no_progress) -> QuerySide:
    """A table for queries, with nothing trained: each token by its inverse document frequency in document vectors.

    The vectors are those of some documents. The scale makes mean best scores those of the model's own queries, over
    pieces of sentences. After Geng, Wang, Ru and Yang 2024, arXiv:2411.04403, who count tokens of texts.
    """
    documents = sample(read(), DOCUMENTS, SEED)
    vectors = encode(encoder, [each.full_text for each in documents], "document", progress=progress)
    present = np.bincount(vectors.indices, minlength=encoder.vocabulary_size)
    idf = np.log((len(documents) + 1) / (present + 1)).astype(np.float32)
    idf[encoder.tokenizer.all_special_ids] = 0.0
    table, queries = QuerySide(idf, encoder.max_tokens), fragments(documents)
    asked = tokenize(encoder.tokenizer, queries, encoder.max_tokens, special=False)
    of_table = mean_best(table.vectors(asked), vectors)
    of_model = mean_best(encode(encoder, queries, "query"), vectors)
    scale = of_model / of_table if of_table else 1.0
    return table.times(np.full(len(idf), scale, np.float32))


# -- how much words count ---------------------------------------------------------------------------


def scale_of(
    encoder: SparseEncoder, words: ExactWords, documents: Sequence[Document], weights: csr_matrix
) -> float:
    """The factor that makes the mean best score of words that of the model's weights; 1 where either is 0.

    weights: of the documents (N, V).
    """
    queries = fragments(documents)
    of_tokens = mean_best(encode(encoder, queries, "query"), weights)
    of_words = mean_best(words.queries(queries, encoder.tokenizer), words.documents(documents))
    return of_tokens / of_words if of_tokens and of_words else 1.0


def mean_best(queries: csr_matrix, documents: csr_matrix) -> float:
    """The mean over queries (Q, W) of the best product with a document (N, W)."""
    return float(products(queries, documents).max(axis=1).mean()) if queries.shape[0] else 0.0


def fragments(documents: Sequence[Document]) -> list[str]:
    """A piece of a sentence of each document, as long as a question; the beginning of one that has no sentence."""
    random, pieces = default_rng(SEED), []
    for document in documents:
        whole = document.text or document.title
        enough = [each for each in sentences(whole) if len(each.split()) >= FRAGMENT[0]] or [whole]
        words = enough[int(random.integers(len(enough)))].split()
        length = int(random.integers(FRAGMENT[0], FRAGMENT[1] + 1))
        first = int(random.integers(max(1, len(words) - length + 1)))
        pieces.append(" ".join(words[first : first + length]))
    return pieces
