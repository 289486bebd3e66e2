"""The parts that the folder of a SPLADE model names, each read by itself: a model with its tokenizer, a table, factors.

Dimensions: V vocabulary.
"""

import json
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from sparse_adapt.errors import ModelError
from sparse_adapt.files.folders import write_json
from sparse_adapt.model.folder import ModelSource
from sparse_adapt.model.idf import Factors
from sparse_adapt.model.modules import Modules
from sparse_adapt.model.query_side import QuerySide, check_same, read_query_side
from sparse_adapt.model.saved import lowers_case, read_masked_lm, read_tokenizer

FACTORS_FILE = "factors.json"


def read_model(modules: Modules, source: ModelSource) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The masked language model and the tokenizer that some modules name."""
    masked_lm = read_masked_lm(modules.place, source)
    tokenizer = read_tokenizer(modules.place, source)
    if modules.lowers and not lowers_case(tokenizer):
        raise ModelError(
            f"{source}: do_lower_case is set, but its tokenizer keeps case; choose another model"
        )
    return masked_lm, tokenizer


def read_table(
    modules: Modules,
    tokenizer: PreTrainedTokenizerFast,
    masked_lm: PreTrainedModel,
    max_tokens: int,
    source: ModelSource,
) -> QuerySide | None:
    """The table that a folder's modules name, for the tokens of its model; its tokenizer cuts as the model's does."""
    if modules.table is None:
        return None
    longest = max_tokens
    if modules.table.is_dir():
        other = read_tokenizer(modules.table, source)
        check_same(tokenizer, other, source)
        longest = min(int(other.model_max_length), 10**9)
    size = int(masked_lm.get_input_embeddings().weight.shape[0])  # type: ignore[index]
    return read_query_side(modules.table, tokenizer, size, longest)


def read_factors(folder: Path, size: int) -> Factors | None:
    """The factor of each token, where a model's folder has them: never negative, at most `size`."""
    path = folder / FACTORS_FILE
    if not path.is_file():
        return None
    try:
        factors = np.array(json.loads(path.read_text(encoding="utf-8"))["factors"], np.float32)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise ModelError(f"{path}: damaged ({error}); delete it to do without idf") from error
    if factors.ndim != 1 or not 0 < len(factors) <= size or not (np.isfinite(factors) & (factors >= 0)).all():
        raise ModelError(f"{path}: not the factors of {size:,} tokens; delete it to do without idf")
    return factors


def write_factors(folder: Path, factors: Factors) -> None:
    """Write the factor of each token (V) beside a model."""
    write_json(folder / FACTORS_FILE, {"factors": [round(float(each), 5) for each in factors]})
