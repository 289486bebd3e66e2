"""What a model makes of one term, in five sections: vocabulary, logits, weight, ranking, and what to do next.

Dimensions: L positions, T tokens of the term (one, or its pieces), V vocabulary.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean, median_low

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from diagnostics.advice import Places, TermFigures, advise, judge, logit_verdict
from diagnostics.token_report import Found, TokenReport
from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import InputError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import normalise
from sparse_adapt.report.printable import is_unicode
from sparse_adapt.retrieve.activity import position_logits, weights_of
from sparse_adapt.retrieve.encode import encode

HEAVIEST = 10
EXAMINED = 100  # documents with the term, and as many without, that the summary encodes
AGREEMENT = 1e-5
NO_RANK = sys.maxsize
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Spelling:
    """A term as token ids, and whether it is a vocabulary entry that no text spells, such as `##ing`.

    `beside`: whether the one id is that of a term which texts say by its pieces.
    """

    token_ids: tuple[int, ...]
    entry: bool = False
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Sighting:
    """A document's text as token ids (L), and the positions at which the term starts, if it is there.

    `lengths`: how many pieces say it each time, of a term that stands beside them.
    """

    document: Document
    token_ids: list[int]
    starts: tuple[int, ...]
    lengths: tuple[int, ...] = ()

    def positions_of(self, column: int) -> list[list[int]]:
        """Where the term's token number `column` stands each time: at one position, or at all of its pieces."""
        if self.lengths:
            said = zip(self.starts, self.lengths, strict=True)
            return [list(range(start, start + length)) for start, length in said]
        return [[start + column] for start in self.starts]


def diagnose(
    term: str,
    model: SparseEncoder,
    documents: Sequence[Document],
    *,
    document_id: str | None = None,
    places: Places | None = None,
    listed: bool | None = None,
    category: str = "",
) -> TokenReport:
    """Report on a term in the document that says it most, or in the one that is asked for.

    `places` fills the commands of section 5; `listed` says whether a file of terms holds the term, `category`
    under which one: that of a new token is the model's own. Raises InputError for a term that the tokenizer reduces to
    nothing and for a document that the corpus doesn't hold.
    """
    with model.without_windows():  # a logit has a position in one pass
        spelling, sightings = sight(model, term, documents)
        chosen = _choose(model, term, spelling, sightings, document_id)
        vocabulary = _vocabulary(model, spelling, listed, category)
        vector = encode(model, [chosen.document.full_text], "document")
        logits, weights = _logits_and_weights(model, spelling, chosen, vector)
        ranking = _ranking(model, spelling, vector)
        corpus = _summarise_corpus(model, spelling, sightings)
    evidence = _evidence(term, vocabulary, corpus)
    state = judge(evidence)
    return TokenReport(
        term=term,
        state=state,
        vocabulary=vocabulary,
        document_id=chosen.document.document_id or None,
        text=chosen.document.full_text,
        logits=logits,
        weights=weights,
        ranking=ranking,
        corpus=corpus,
        next_steps=advise(state, evidence, places or Places()),
        exact_words=_exact_words(term, model, chosen.document),
    )


def _exact_words(term: str, model: SparseEncoder, document: Document) -> list[Found]:
    """The exact words of a term, whole and in parts, each once; none of a model without them."""
    words = model.words
    if words is None:
        return []
    asked, there = words.queries([term], model.tokenizer), words.documents([document])
    known = words.settings
    return [
        {
            "word": stem,
            "idf": known.idf.get(stem, known.unknown),
            "query_weight": float(asked[0, words.column(stem)]),
            "document_weight": float(there[0, words.column(stem)]),
        }
        for stem in dict.fromkeys(word.stem for word in words.analyzer.words(term))
    ]


# -- sections 1 to 4 --------------------------------------------------------------------------


def _choose(
    model: SparseEncoder,
    term: str,
    spelling: Spelling,
    sightings: Sequence[Sighting],
    document_id: str | None,
) -> Sighting:
    if document_id is not None:
        for sighting in sightings:
            if sighting.document.document_id == document_id:
                return sighting
        raise InputError(
            f"document {document_id!r}", "the corpus doesn't hold it; leave it out to take the best"
        )
    best = max(sightings, key=lambda sighting: len(sighting.starts), default=None)
    return best if best and best.starts else sight_one(model, spelling, Document("", term))


def _vocabulary(model: SparseEncoder, spelling: Spelling, listed: bool | None, category: str) -> Found:
    """Section 1. `replaced`: the pieces that a new token stands for; `unspelled`: no text is cut into it as a word."""
    new = {token.token_id: token for token in model.new_tokens}.get(spelling.token_ids[0])
    single = len(spelling.token_ids) == 1 and spelling.token_ids[0] != model.tokenizer.unk_token_id
    return {
        "token_ids": spelling.token_ids,
        "tokens": _names(model, spelling.token_ids),
        "single": single,
        "unspelled": spelling.entry,
        "new": single and new is not None,
        "category": new.category if single and new else category,
        "replaced": _names(model, new.pieces) if single and new else (),
        "listed": listed,
        **({"beside": True} if spelling.beside else {}),
    }


def _evidence(term: str, vocabulary: Found, corpus: Found) -> TermFigures:
    """The term over all documents that hold it, not the chosen one alone."""
    averages = [
        min(average for average in summary["average_logits"] if average is not None)
        for summary in corpus["summaries"]
    ]
    ranks = [max(rank or NO_RANK for rank in summary["ranks"]) for summary in corpus["summaries"]]
    middle = median_low(ranks) if ranks else NO_RANK
    return TermFigures(
        term=term,
        single=vocabulary["single"],
        new=vocabulary["new"],
        occurs=corpus["holding"] > 0,
        average_logit=fmean(averages) if averages else None,
        rank=None if middle == NO_RANK else middle,
        false_activation_share=corpus["others_firing"] / max(1, corpus["others_examined"]),
    )


def _logits_and_weights(
    model: SparseEncoder, spelling: Spelling, sighting: Sighting, vector: csr_matrix
) -> tuple[list[Found], list[Found]]:
    """Sections 2 and 3: the head's hidden states multiplied here, which must agree with `encode`: vector (1, V)."""
    logits = position_logits(model, sighting.token_ids, spelling.token_ids)
    names = _names(model, sighting.token_ids)
    sections, weights = [], []
    for column, (token_id, token) in enumerate(
        zip(spelling.token_ids, _names(model, spelling.token_ids), strict=True)
    ):
        occurs = {position for each in sighting.positions_of(column) for position in each}
        positions: list[Found] = [
            {
                "position": position,
                "token": name,
                "logit": float(logits[position, column]),
                "occurrence": position in occurs,
            }
            for position, name in enumerate(names)
        ]
        everywhere = _range(positions)
        assert everywhere is not None, "a text has positions"
        sections.append(
            {
                "token_id": token_id,
                "token": token,
                "positions": positions,
                "everywhere": everywhere,
                "where_it_stands": _range([each for each in positions if each["occurrence"]]),
                "verdict": logit_verdict(_average(logits, sighting, column)),
            }
        )
        largest, after_log1p = everywhere["largest"]["logit"], _as_weight(model, logits[:, column])
        weights.append(
            {
                "token_id": token_id,
                "token": token,
                "maximum_logit": largest,
                "after_relu": max(0.0, largest),
                "after_log1p": after_log1p,
                "encoder_weight": _agreed(model, token_id, after_log1p, vector),
            }
        )
    return sections, weights


def _range(positions: Sequence[Found]) -> Found | None:
    """Least, average and largest of the logits at some positions; None of none."""
    if not positions:
        return None
    by_logit = itemgetter("logit")
    return {
        "least": min(positions, key=by_logit),
        "average": fmean(map(by_logit, positions)),
        "largest": max(positions, key=by_logit),
    }


def _as_weight(model: SparseEncoder, logits: NDArray[np.floating]) -> float:
    """The weight that logits at all positions (L) make by the model's form."""
    at_positions = [float(np.log1p(max(0.0, float(logit)))) for logit in logits]
    if model.form.activation == "log1p_relu":
        at_positions = [float(np.log1p(weight)) for weight in at_positions]
    return sum(at_positions) if model.form.pooling == "sum" else max(at_positions)


def _agreed(model: SparseEncoder, token_id: int, after_log1p: float, vector: csr_matrix) -> float:
    """The weight of the encoder's vector (1, V), which has to be the one worked out here, times the token's scale.

    A model that keeps as many entries as it may has perhaps dropped it.
    """
    factor, weight = float(model.token_scales_of(np.array([token_id]))[0]), float(vector[0, token_id])
    dropped = model.form.entries is not None and vector.nnz >= model.form.entries
    agrees = abs(factor * after_log1p - weight) <= AGREEMENT * max(1.0, factor, after_log1p)
    assert agrees or (dropped and weight == 0.0), (token_id, weight)
    return weight


def _ranking(model: SparseEncoder, spelling: Spelling, vector: csr_matrix) -> Found:
    """Section 4: where the term stands among the tokens of a text's vector (1, V); no rank means weight 0."""
    ranks = _token_ranks(vector)
    new = {token.token_id for token in model.new_tokens}
    heaviest = list(ranks)[:HEAVIEST]
    return {
        "nonzero": vector.nnz,
        "ranks": tuple(ranks.get(token_id) for token_id in spelling.token_ids),
        "heaviest": [
            {
                "rank": ranks[token_id],
                "token_id": token_id,
                "token": name,
                "weight": float(vector[0, token_id]),
                "of_term": token_id in spelling.token_ids,
                "new": token_id in new,
            }
            for token_id, name in zip(heaviest, _names(model, heaviest), strict=True)
        ],
    }


# -- all documents ----------------------------------------------------------------------------


def _summarise_corpus(model: SparseEncoder, spelling: Spelling, sightings: Sequence[Sighting]) -> Found:
    """The term over the corpus: documents that hold it, and on how many of the others it fires all the same.

    It fires where each of its tokens has a weight, and is as heavy as the lightest of them.
    """
    holding = [sighting for sighting in sightings if sighting.starts]
    others = [sighting.document for sighting in sightings if not sighting.starts]
    step = max(1, -(-len(others) // EXAMINED))  # evenly over the corpus
    examined, sampled = holding[:EXAMINED], others[::step]
    vectors = encode(model, [sighting.document.full_text for sighting in examined], "document")
    others_vectors = encode(model, [document.full_text for document in sampled], "document")
    false_activation = weights_of(others_vectors, [spelling.token_ids])[:, 0]
    heaviest = int(false_activation.argmax()) if false_activation.any() else None
    return {
        "documents": len(sightings),
        "holding": len(holding),
        "summaries": [
            _summarise_document(model, spelling, sighting, vectors[row])
            for row, sighting in enumerate(examined)
        ],
        "others_examined": len(sampled),
        "others_firing": int((false_activation > 0).sum()),
        "heaviest_other": None if heaviest is None else sampled[heaviest].document_id,
        "heaviest_other_weight": 0.0 if heaviest is None else float(false_activation[heaviest]),
    }


def _summarise_document(
    model: SparseEncoder, spelling: Spelling, sighting: Sighting, vector: csr_matrix
) -> Found:
    """The term in one document, whose vector is (1, V): one figure for each of its tokens."""
    logits = position_logits(model, sighting.token_ids, spelling.token_ids)
    ranks = _token_ranks(vector)
    columns = range(len(spelling.token_ids))
    return {
        "document_id": sighting.document.document_id,
        "occurrences": len(sighting.starts),
        "average_logits": tuple(_average(logits, sighting, column) for column in columns),
        "weights": tuple(float(vector[0, token_id]) for token_id in spelling.token_ids),
        "ranks": tuple(ranks.get(token_id) for token_id in spelling.token_ids),
    }


# -- the head, read by hand -------------------------------------------------------------------


def _average(logits: NDArray[np.float32], sighting: Sighting, column: int) -> float | None:
    """Mean of the logits (L, T) of the term's token number `column`, where that token stands: at its best piece."""
    best = [logits[positions, column].max() for positions in sighting.positions_of(column)]
    return float(np.array(best).mean()) if best else None


def _token_ranks(vector: csr_matrix) -> dict[int, int]:
    """Token id -> rank from 1 in a vector (1, V), heaviest first; of equal weights the lower id comes first."""
    order = np.lexsort((vector.indices, -vector.data))
    return {int(vector.indices[index]): rank for rank, index in enumerate(order, start=1)}


def _names(model: SparseEncoder, token_ids: Sequence[int]) -> tuple[str, ...]:
    return model.names_of(token_ids)


# -- where the term stands --------------------------------------------------------------------
# By token ids, whatever the case or accents. A sequence of pieces that goes on as a longer word is no occurrence.


def spellings(model: SparseEncoder, term: str) -> tuple[Spelling, ...]:
    """The ways in which a text can spell a term: one as a rule, two where a leading space makes a difference.

    Raises InputError for a term that the tokenizer reduces to nothing.
    """
    if not is_unicode(term):
        raise InputError(f"term {term!r}", "isn't Unicode; give it as UTF-8")
    name = normalise(model.tokenizer, term)
    beside = next((each.token_id for each in model.new_tokens if each.beside and each.token == name), None)
    if beside is not None:
        return (Spelling((beside,), beside=True),)
    texts = (f" {term}", term)
    ways = [tuple(ids) for ids in model.tokenizer(texts, add_special_tokens=False)["input_ids"]]
    if not all(ways):
        raise InputError(f"term {term!r}", "the tokenizer reduces it to nothing; give a word or a token")
    entry = model.tokenizer.get_vocab().get(term)
    if entry is not None and all(len(way) > 1 for way in ways):
        return (Spelling((entry,), entry=True),)
    return tuple(Spelling(way) for way in dict.fromkeys(ways))


def sight(model: SparseEncoder, term: str, documents: Sequence[Document]) -> tuple[Spelling, list[Sighting]]:
    """The spelling that most documents use, and every document with where it stands in it."""
    tokenized = model.tokenize([document.full_text for document in documents])
    best: tuple[int, Spelling, list[Sighting]] | None = None
    for spelling in spellings(model, term):
        sightings = [
            sight_one(model, spelling, document, token_ids)
            for document, token_ids in zip(documents, tokenized, strict=True)
        ]
        holding = sum(1 for sighting in sightings if sighting.starts)
        if best is None or holding > best[0]:
            best = holding, spelling, sightings
    assert best is not None, term
    return best[1:]


def sight_one(
    model: SparseEncoder, spelling: Spelling, document: Document, token_ids: list[int] | None = None
) -> Sighting:
    """Where one spelling stands in one document; `token_ids` are the document's, if they are known."""
    if token_ids is None:
        token_ids = model.tokenize([document.full_text])[0]
    if spelling.beside:
        said = model.places_of(spelling.token_ids[0], token_ids)
        return Sighting(document, token_ids, tuple(each.start for each in said), tuple(map(len, said)))
    return Sighting(document, token_ids, _starts(model, spelling, document.full_text, token_ids))


def _starts(model: SparseEncoder, spelling: Spelling, text: str, token_ids: list[int]) -> tuple[int, ...]:
    wanted = list(spelling.token_ids)
    starts = [
        start
        for start, token_id in enumerate(token_ids)
        if token_id == wanted[0] and token_ids[start : start + len(wanted)] == wanted
    ]
    if not starts or spelling.entry:
        return tuple(starts)
    offsets = model.tokenizer(
        text, truncation=True, max_length=model.max_tokens, return_offsets_mapping=True
    )["offset_mapping"]
    spans = [(offsets[start][0], offsets[start + len(wanted) - 1][1]) for start in starts]
    return tuple(
        start
        for start, (first, last) in zip(starts, spans, strict=True)
        if not (_inside_word(text, first) or _inside_word(text, last))
    )


def _inside_word(text: str, at: int) -> bool:
    """Whether the characters before and at a place belong to one word, in scripts that put spaces between."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    return before.isalnum() and after.isalnum() and not UNSPACED.search(before + after)
