"""New terms that activate less, or more, than they were taught to: the biases of their output rows, and nothing else.

A term activates a text whose largest logit for it is above 0. Lowering its bias by an amount takes it from the texts
where that logit is smaller, those that mean it among them: fewer false activations cost semantic queries.

Dimensions: T new terms; amounts are (T,), in the order of the new tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from sparse_adapt.errors import ConfigError, ModelError, unknown
from sparse_adapt.files.folders import output_folder, write_json
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.before_after import Amounts, BeforeAfter
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.retrieve.activity import BACKGROUND_SEED, Activity, background_queries
from sparse_adapt.stages.card import making_of, write_card
from sparse_adapt.stages.record import read_stage_record, write_record

CALIBRATION_FILE = "calibration.json"
CHOOSING_SEED = BACKGROUND_SEED + 1  # of those that amounts are chosen by; others measure them
MARGIN = 1e-4  # of a logit, by which a text has to fall below 0 whatever the order of additions


def check_calibrates(model: SparseEncoder, source: str) -> None:
    """Raise ModelError for a model whose terms aren't active by a bias alone."""
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
    """The least amounts by which at most a share `target` of background queries activates a term.

    The texts with the largest logits may keep their terms; each term is lowered to where it activates none of the
    others, and no further. Background queries are made up, others than those that measure; `texts` replaces them.
    """
    logits = Activity.of(model, texts or background_queries(CHOOSING_SEED), "query").positive_logits
    above = int(target * len(logits) + 1e-9)
    order = np.argsort(-logits.max(axis=1), kind="stable")
    highest = logits[order[above:]].max(axis=0, initial=0.0)
    return np.where(highest > 0, highest + MARGIN, 0.0).astype(np.float32)


# -- tables and models ----------------------------------------------------------------------------


def tabulate_before_after(before_after: Sequence[BeforeAfter]) -> Table:
    """What amounts change, before and after, a row a figure; a share is a percentage, so cells are text."""
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
        for each in before_after
    ]
    return Table("What it buys and costs", columns, rows)


def tabulate_amounts(model: SparseEncoder, amounts: Amounts) -> Table:
    """The terms that are lowered or raised, most first."""
    lowered = [(token.term, float(amount)) for token, amount in zip(model.new_tokens, amounts, strict=True)]
    lowered.sort(key=lambda each: -abs(each[1]))
    rows: list[Row] = [{"term": term, "amount": amount} for term, amount in lowered if amount]
    return Table(
        "Terms",
        (Column("term", "term", "token"), Column("amount", "lowered by", decimals=2, signed=True)),
        rows,
    )


def save_calibrated(
    model: SparseEncoder,
    source: str,
    amounts: Amounts,
    before_after: Sequence[BeforeAfter],
    place: Place,
) -> dict[str, object]:
    """Write the model with its terms lowered, and its effect, before and after; the model in memory stays as it is.

    Raises OutputError for a place that is taken.
    """
    assert model.output_bias is not None, "checked before"
    ids = [token.token_id for token in model.new_tokens]
    terms = {
        token.term: round(float(each), 4)
        for token, each in zip(model.new_tokens, amounts, strict=True)
        if each
    }
    stored: dict[str, object] = {"lowered": terms, "figures": [each._asdict() for each in before_after]}
    with output_folder(replace(place, resumable=False, reads=[Path(source)])) as work:
        before = model.output_bias[ids].detach().clone()
        try:
            with torch.no_grad():
                model.output_bias[ids] -= torch.from_numpy(amounts).to(before)
            model.save(work)
        finally:
            with torch.no_grad():
                model.output_bias[ids] = before
        write_card(work, making_of(source))
        record = read_stage_record(source)
        if record is not None:
            write_record(work, {**record, "calibrated": terms})
        write_json(work / CALIBRATION_FILE, stored)
    return stored


def _shown(value: float, share: bool, sign: str) -> str:
    return f"{100 * value:{sign}.1f} %" if share else f"{value:{sign}.3f}"
