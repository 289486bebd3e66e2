"""New terms that light less, or more, than they were taught to: the biases of their output rows, and nothing else.

A term lights a text whose largest logit for it is above 0. Lowering its bias by an amount takes it from the texts where
that logit is smaller, those that mean it among them: what is bought in strays is paid in hidden queries. Vectors change
in the terms' own columns alone, so they follow from the raw logits without encoding anything again.
Dimensions: T terms, V vocabulary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ConfigError, ModelError, unknown
from sparse_adapt.files.folders import output_folder, write_json
from sparse_adapt.made_up.everyday import LIKE_QUERIES, made_up
from sparse_adapt.model.batches import group_by_length, pad
from sparse_adapt.model.forms import Side
from sparse_adapt.model.said import says
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.windows import cut_up
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.report.watching import Heard, silent
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, evaluate_vectors
from sparse_adapt.retrieve.keeping import EVERYDAY_SEED, known_of
from sparse_adapt.stages.card import making_of, write_card
from sparse_adapt.stages.record import read_record, write_record

CALIBRATION_FILE = "calibration.json"
EVERYDAY = 4_000  # texts that mean anything, half of them like queries
CHOOSING_SEED = EVERYDAY_SEED + 1  # of those that amounts are chosen by; others measure them
MARGIN = 1e-4  # of a logit, by which a text has to fall below 0 whatever the order of additions
TOKENS_A_PASS = 8192
MEASURE, KNOWN = "ndcg@10", "mrr@10"

Logits = NDArray[np.float32]
Amounts = NDArray[np.float32]  # (T) what each new term is lowered by, in the order of the new tokens


class Bought(NamedTuple):
    """One figure before and after: `share` tells a share of texts from a measure or a weight."""

    name: str
    before: float
    after: float
    share: bool = False


@dataclass(frozen=True)
class Texts:
    """Texts of one side: their vectors (texts, V), and the raw logits of the new terms (texts, T)."""

    model: SparseEncoder
    vectors: csr_matrix
    logits: Logits

    @classmethod
    def of(cls, model: SparseEncoder, texts: Sequence[str], side: Side, heard: Heard = silent) -> "Texts":
        """Encode texts once for every amount."""
        vectors = encode(model, texts, side, progress=heard)
        return cls(model, vectors, raw_logits(model, texts, side))

    def lowered(self, amounts: Amounts) -> csr_matrix:
        """Their vectors with every term lowered by its amount."""
        ids = np.array([token.token_id for token in self.model.new_tokens], np.int64)
        block = self.model.form.activate(torch.from_numpy(self.logits - amounts)).numpy()
        block = block * self.model.factors_of(ids)
        others = self.vectors.copy()
        others.data[np.isin(others.indices, ids)] = 0.0
        rows, columns = np.nonzero(block)
        own = csr_matrix((block[rows, columns], (rows, ids[columns])), shape=others.shape, dtype=np.float32)
        whole = csr_matrix(others + own)
        whole.eliminate_zeros()
        whole.sort_indices()
        return whole

    def lit(self, amounts: Amounts) -> float:
        """The share of texts that light a term."""
        return float((self.logits > amounts).any(axis=1).mean()) if len(self.logits) else 0.0


@torch.inference_mode()
def raw_logits(model: SparseEncoder, texts: Sequence[str], side: Side) -> Logits:
    """The largest logit of each new term in each text: (texts, T), negative ones too."""
    if side == "document" and model.windows is not None:
        windows, owners = cut_up(texts, model.tokenizer, model.windows, model.form.prompt(side))
        with model.without_windows():
            of_windows = raw_logits(model, windows, side)
        whole = np.full((len(texts), len(model.new_tokens)), -np.inf, np.float32)
        np.maximum.at(whole, owners, of_windows)
        return whole
    ids = [token.token_id for token in model.new_tokens]
    rows = model.output_rows[ids].float()
    bias = torch.zeros(len(ids)) if model.output_bias is None else model.output_bias[ids].float()
    token_ids = model.tokenize(texts, side)
    found = np.zeros((len(texts), len(ids)), np.float32)
    for group in group_by_length([len(each) for each in token_ids], TOKENS_A_PASS):
        padded, mask = pad([token_ids[row] for row in group], model.tokenizer.pad_token_id or 0)
        states = model.hidden(padded.to(model.device), mask.to(model.device)).float()
        logits = (states @ rows.T + bias).masked_fill(mask.to(model.device)[..., None] == 0, -torch.inf)
        found[group] = logits.max(dim=1).values.cpu().numpy()
    return found


def check_calibrates(model: SparseEncoder, source: str) -> None:
    """Raise ModelError for a model whose terms aren't lit by a bias alone."""
    if not model.new_tokens:
        raise ModelError(f"{source}: has no new token to calibrate; adapt it first")
    if model.output_bias is None:
        raise ModelError(f"{source}: its output rows have no bias, so there is nothing to calibrate")
    if model.unusual & {"sum", "table", "entries", "encoders"}:
        raise ModelError(
            f"{source}: calibrate follows models that take the largest logit of a text, as most do"
        )


# -- which amounts --------------------------------------------------------------------------------


def amounts_of(model: SparseEncoder, lower: Mapping[str, float]) -> Amounts:
    """The amounts that are named by term. Raises ConfigError for a term that the model wasn't given."""
    places = {token.term.casefold(): place for place, token in enumerate(model.new_tokens)}
    amounts = np.zeros(len(model.new_tokens), np.float32)
    for term, amount in lower.items():
        if term.casefold() not in places:
            raise ConfigError(unknown("term", term, [token.term for token in model.new_tokens]))
        amounts[places[term.casefold()]] = amount
    return amounts


def amounts_for(model: SparseEncoder, target: float, texts: Sequence[str] | None = None) -> Amounts:
    """The least amounts by which at most a share `target` of everyday queries lights a term.

    The texts with the largest logits may keep their terms; each term is lowered to where it lights none of the others,
    and no further. Everyday queries are made up, others than those that measure; `texts` replaces them.
    """
    logits = raw_logits(model, texts or everyday_queries(CHOOSING_SEED), "query")
    kept = int(target * len(logits) + 1e-9)
    order = np.argsort(-logits.max(axis=1), kind="stable")
    highest = logits[order[kept:]].max(axis=0, initial=0.0)
    return np.where(highest > 0, highest + MARGIN, 0.0).astype(np.float32)


def everyday_queries(seed: int = EVERYDAY_SEED) -> list[str]:
    """Texts like queries that mean anything."""
    return made_up(EVERYDAY, seed)[LIKE_QUERIES]


# -- what they buy and cost -----------------------------------------------------------------------


@dataclass(frozen=True)
class Scales:
    """What amounts are weighed by: everyday queries, the user's own, a corpus, and judged queries where there are."""

    everyday: Texts
    own: Texts | None = None
    documents: Texts | None = None
    said: NDArray[np.bool_] | None = None  # (documents, T) which documents say which term
    known: tuple[Collection, Texts] | None = None
    judged: tuple[Collection, Texts] | None = None

    @classmethod
    def of(
        cls,
        model: SparseEncoder,
        own: Sequence[str] = (),
        documents: Sequence[Document] = (),
        judged: Collection | None = None,
        heard: Heard = silent,
    ) -> "Scales":
        """Encode everything once."""
        everyday = Texts.of(model, everyday_queries(), "query")
        mine = Texts.of(model, own, "query") if own else None
        if not documents:
            return cls(everyday, mine)
        texts = [document.full_text for document in documents]
        said = says(model, texts)
        items = known_of(documents, np.asarray(said.any(axis=1)))
        known = None if items is None else (items, _asked(model, items))
        of_judges = None if judged is None else (judged, _asked(model, judged))
        return cls(everyday, mine, Texts.of(model, texts, "document", heard), said, known, of_judges)

    def bought(self, amounts: Amounts) -> list[Bought]:
        """Every figure without the amounts and with them."""
        nothing = np.zeros_like(amounts)
        shares = [
            ("everyday queries that light a term", self.everyday),
            ("your queries that light a term", self.own),
        ]
        found = [
            Bought(name, texts.lit(nothing), texts.lit(amounts), share=True)
            for name, texts in shares
            if texts is not None
        ]
        if self.documents is None or self.said is None:
            return found
        before, after = self._weights(nothing), self._weights(amounts)
        if self.said.any():
            found.append(_share("documents that say a term and light it", before, after, self.said))
            where = self.said
            means = float(before[where].mean()), float(after[where].mean())
            found.append(Bought("largest logit of a term where it is said", means[0], means[1]))
        found.append(_share("other documents that light a term", before, after, ~self.said))
        vectors = self.documents.lowered(nothing), self.documents.lowered(amounts)
        if self.known is not None:
            found += _measured("two words of a document, MRR@10", self.known, vectors, amounts, KNOWN)
        if self.judged is not None:
            found += _measured("judged queries, nDCG@10", self.judged, vectors, amounts, MEASURE)
        return found

    def _weights(self, amounts: Amounts) -> Logits:
        assert self.documents is not None, "asked before"
        return np.asarray(np.maximum(self.documents.logits - amounts, 0.0), np.float32)


def _asked(model: SparseEncoder, collection: Collection) -> Texts:
    return Texts.of(model, [query.text for query in collection.queries], "query")


def _share(name: str, before: Logits, after: Logits, where: NDArray[np.bool_]) -> Bought:
    """The share of marked pairs of a document and a term in which the term is lit."""
    shares = [float((weights[where] > 0).mean()) if where.any() else 0.0 for weights in (before, after)]
    return Bought(name, shares[0], shares[1], share=True)


def _measured(
    name: str,
    asked: tuple[Collection, Texts],
    documents: tuple[csr_matrix, csr_matrix],
    amounts: Amounts,
    measure: str,
) -> list[Bought]:
    """A measure before and after, of all queries and of each kind where there are several."""
    collection, texts = asked
    queries = texts.lowered(np.zeros_like(amounts)), texts.lowered(amounts)
    before, after = (
        evaluate_vectors(rows, columns, collection, 100)
        for rows, columns in zip(queries, documents, strict=True)
    )
    kinds = before.kinds if len(before.kinds) > 1 else ()
    return [
        Bought(
            name if kind is None else f"  {kind}",
            float(before.select(kind)[measure].mean()),
            float(after.select(kind)[measure].mean()),
        )
        for kind in (None, *kinds)
    ]


# -- tables and models ----------------------------------------------------------------------------


def tabulate(bought: Sequence[Bought]) -> Table:
    """What amounts buy and cost, a row a figure; a share is a percentage, so cells are text."""
    columns = (
        Column("name", "", "text"),
        Column("before", "before"),
        Column("after", "after"),
        Column("change", "change"),
    )
    rows: list[Row] = [
        {
            "name": each.name,
            "before": _shown(each.before, each.share, ""),
            "after": _shown(each.after, each.share, ""),
            "change": _shown(each.after - each.before, each.share, "+"),
        }
        for each in bought
    ]
    return Table("What it buys and costs", columns, rows)


def tabulate_amounts(model: SparseEncoder, amounts: Amounts) -> Table:
    """The terms that are lowered or raised, most first."""
    rows: list[Row] = [
        {"term": token.term, "amount": float(amount)}
        for token, amount in zip(model.new_tokens, amounts, strict=True)
        if amount
    ]
    rows.sort(key=lambda row: -abs(float(row["amount"] or 0.0)))
    return Table(
        "Terms",
        (Column("term", "term", "token"), Column("amount", "lowered by", decimals=2, signed=True)),
        rows,
    )


def save_calibrated(
    model: SparseEncoder,
    source: str,
    amounts: Amounts,
    bought: Sequence[Bought],
    out: Path,
    *,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write the model with its terms lowered, and what that buys and costs; the model in memory stays as it is.

    Raises OutputError for a place that is taken.
    """
    assert model.output_bias is not None, "checked before"
    ids = [token.token_id for token in model.new_tokens]
    terms = {
        token.term: round(float(each), 4)
        for token, each in zip(model.new_tokens, amounts, strict=True)
        if each
    }
    told = {"lowered": terms, "figures": [each._asdict() for each in bought]}
    with output_folder(out, overwrite=overwrite, resumable=False, reads=[Path(source)]) as work:
        before = model.output_bias[ids].detach().clone()
        try:
            with torch.no_grad():
                model.output_bias[ids] -= torch.from_numpy(amounts).to(before)
            model.save(work)
        finally:
            with torch.no_grad():
                model.output_bias[ids] = before
        write_card(work, making_of(source))
        record = read_record(source)
        if record is not None:
            write_record(work, {**record, "calibrated": terms})
        write_json(work / CALIBRATION_FILE, told)
    return told


def _shown(value: float, share: bool, sign: str) -> str:
    return f"{100 * value:{sign}.1f} %" if share else f"{value:{sign}.3f}"
