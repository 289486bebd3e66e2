"""The transformer and the tokenizer in a model folder: read, refused, compared, and written for three loaders.

transformers reads config.json, model.safetensors, tokenizer.json and tokenizer_config.json; raw `tokenizers`
reads tokenizer.json alone; sentence-transformers adds modules.json, its two settings files and the folders of its
other modules (`model.layout`). Weights are safetensors only, and no code is ever taken from a folder.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import nn
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging as transformers_logging

from sparse_adapt.errors import ModelError
from sparse_adapt.files.marker import MODEL_MARK
from sparse_adapt.files.records import JsonObject
from sparse_adapt.model.folder import ModelFolder, ModelSource
from sparse_adapt.model.normalizers import check_growth
from sparse_adapt.model.weights import check_finite, check_head, check_weights, loading

transformers_logging.disable_progress_bar()
transformers_logging.set_verbosity_error()

TOKENIZERS = ("tokenizer.json", "vocab.*", "*.model")
BEFORE_PIECES = ("normalizer", "pre_tokenizer")  # what is done to a text before its words are looked up
FOLDS: list[JsonObject] = [
    {"type": "Replace", "pattern": {"Regex": r"\s{2,}|[^\S ]"}, "content": " "},
    {"type": "Replace", "pattern": {"String": "\u2011"}, "content": "-"},
]  # so that a phrase is its token over a line's end, and a compound over a hyphen that doesn't break
SAME_TOKENS = (*BEFORE_PIECES, "model", "added_tokens")  # of two tokenizers that give the same tokens
AS_WE_ASK = {
    "return_dict": True,
    "chunk_size_feed_forward": 0,
}  # the same numbers, in the form that is read here
LAYER = re.compile(r"\.\d+\.")  # in the name of a weight
LOADING_NOTES = ("is_local", "local_files_only", "max_length", "stride", "truncation_strategy")


# -- transformers ----------------------------------------------------------------------------------


def read_masked_lm(folder: Path, source: ModelSource) -> PreTrainedModel:
    """The masked language model in a folder, as float32. Raises ModelError, naming `source`, without one."""
    check_weights(folder, source)
    check_head(folder, source)
    masked_lm, report = _read(AutoModelForMaskedLM, folder, source, "a masked language model")
    _refuse_missing(masked_lm, set(report["missing_keys"]) - _restored_biases(masked_lm, report), source)
    return masked_lm


def read_body(folder: Path, source: ModelSource) -> PreTrainedModel:
    """The transformer in a folder without any head, as float32. Raises ModelError, naming `source`, without one."""
    check_weights(folder, source)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # of a pooler that the folder may lack, and that nothing here asks
        body, report = _read(AutoModel, folder, source, "a transformer")
    for name in sorted(report["missing_keys"]):
        if not name.startswith("pooler."):
            raise ModelError(f"{source}: its weights lack {name}; fetch the model again")
    return body


def _read(
    kind: type[AutoModel] | type[AutoModelForMaskedLM], folder: Path, source: ModelSource, what: str
) -> tuple[PreTrainedModel, dict[str, set[str]]]:
    """A model by one of transformers' auto classes, and what its weights lack or hold too much of."""
    check_weights(folder, source)
    with loading(source, what):
        model, report = kind.from_pretrained(
            folder,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            ignore_mismatched_sizes=True,  # reported below, in words
            output_loading_info=True,
            dtype=torch.float32,
        )
    for name, shape, wanted in sorted(report["mismatched_keys"]):
        raise ModelError(
            f"{source}: {name} has shape {tuple(shape)}, but config.json says {tuple(wanted)}; "
            "take config.json and weights from the same model"
        )
    model.eval()
    assert isinstance(model, PreTrainedModel), type(model)
    for holder in (model.config, *model.modules()):
        for key in AS_WE_ASK.keys() & vars(holder).keys():
            setattr(holder, key, AS_WE_ASK[key])
    _refuse_unread(model, report["unexpected_keys"], source)
    check_finite(model, source)
    return model, report


def bias_twins(masked_lm: PreTrainedModel) -> Iterator[tuple[str, str]]:
    """Names of a decoder's bias and of the copy that its family keeps beside the decoder, where it does.

    transformers ties the two only where it ties the rows; where rows are untied both are in the weights file,
    and only the first counts.
    """
    for name, twin in (masked_lm._tied_weights_keys or {}).items():
        if name.endswith("decoder.bias") and isinstance(twin, str):
            yield name, twin


@torch.no_grad()
def _restored_biases(masked_lm: PreTrainedModel, report: dict[str, set[str]]) -> set[str]:
    """Decoder biases that the file holds under their twin's name alone, as older transformers saved them."""
    parameters, restored = dict(masked_lm.named_parameters(remove_duplicate=False)), set()
    for name, twin in bias_twins(masked_lm):
        if name in report["missing_keys"] and twin not in report["missing_keys"]:
            parameters[name].copy_(parameters[twin])
            restored.add(name)
    return restored


def _refuse_missing(masked_lm: PreTrainedModel, missing: set[str], source: ModelSource) -> None:
    body = f"{masked_lm.base_model_prefix}."
    for name in sorted(missing):
        if name.startswith(body):
            raise ModelError(f"{source}: its weights lack {name}; fetch the model again")
        raise ModelError(
            f"{source}: no masked-language-model head ({name} is missing); "
            "choose a model saved with its head, such as splade-tiny"
        )


def _refuse_unread(model: PreTrainedModel, unread: set[str], source: ModelSource) -> None:
    """Refuse weights of layers that config.json doesn't count: without them a model weighs otherwise.

    Heads that nothing here asks, such as a pooler or a classifier, may be left over.
    """
    body = f"{model.base_model_prefix}."
    built = {LAYER.sub(".", name.removeprefix(body)) for name in model.state_dict()}
    for name in sorted(unread):
        numbered = LAYER.search(name) is not None
        if numbered and (name.startswith(body) or LAYER.sub(".", name) in built):
            raise ModelError(
                f"{source}: {name} in the weights is read by nothing, for {MODEL_MARK} has fewer layers; take both "
                "from the same model"
            )


def longest_text(masked_lm: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> int:
    """How many tokens a text may have at most, special ones included, by tokenizer and positions."""
    return int(min(most_positions(masked_lm), tokenizer.model_max_length))


def most_positions(masked_lm: PreTrainedModel) -> int:
    """How many tokens a model can read at once; a billion where nothing limits them."""
    positions = getattr(masked_lm.config, "max_position_embeddings", None) or 10**9
    for name, module in masked_lm.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            first = 0 if module.padding_idx is None else module.padding_idx + 1  # RoBERTa counts from there
            positions = min(positions, module.num_embeddings - first)
    return int(positions)


def write_masked_lm(folder: Path, masked_lm: PreTrainedModel) -> None:
    """Write config and weights, an untied decoder's bias under both of its names.

    Extension leaves them one tensor, which transformers saves once and then misses, or leaves one short.
    """
    for name, twin in bias_twins(masked_lm) if not masked_lm.config.tie_word_embeddings else ():
        module, _, attribute = twin.rpartition(".")
        own = nn.Parameter(masked_lm.get_parameter(name).detach().clone())
        setattr(masked_lm.get_submodule(module), attribute, own)
    masked_lm.save_pretrained(folder)


# -- tokenizers ------------------------------------------------------------------------------------


def tokenizer_of(source: ModelSource) -> PreTrainedTokenizerFast:
    """The tokenizer of a model by its name. Raises ModelError where there is none, or it isn't fast."""
    model = ModelFolder.of(source)
    return read_tokenizer(model.path, model)


def read_tokenizer(folder: Path, source: ModelSource) -> PreTrainedTokenizerFast:
    """The tokenizer in a folder. Raises ModelError, naming `source`, if none is there or it isn't fast."""
    if not any(path for pattern in TOKENIZERS for path in folder.glob(pattern)):  # transformers makes one up
        raise ModelError(f"{source}: holds no tokenizer.json; save the model together with its tokenizer")
    check_growth(folder, source)
    with loading(source, "a tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ModelError(
            f"{source}: needs a fast tokenizer (a tokenizer.json); found {type(tokenizer).__name__}"
        )
    longest: object = tokenizer.model_max_length
    if not isinstance(longest, int | float) or not longest >= 1:
        raise ModelError(f"{source}: its tokenizer's model_max_length is {longest!r}; fetch the model again")
    return tokenizer


def lowers_case(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether a tokenizer reads capital letters as small ones."""
    normalizer = tokenizer.backend_tokenizer.normalizer
    return normalizer is not None and "a" in str(normalizer.normalize_str("A"))


def write_tokenizer(folder: Path, tokenizer: PreTrainedTokenizerFast, max_tokens: int) -> None:
    """Write a tokenizer that cuts at `max_tokens` and pads nothing, whatever it was last used for."""
    tokenizer.model_max_length = max_tokens
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.backend_tokenizer.enable_truncation(max_tokens, direction=tokenizer.truncation_side)
    for note in LOADING_NOTES:
        tokenizer.init_kwargs.pop(note, None)
    tokenizer.save_pretrained(folder)


def differing_part(
    one: PreTrainedTokenizerFast, other: PreTrainedTokenizerFast, parts: Sequence[str] = BEFORE_PIECES
) -> str | None:
    """The first of some parts, by their names in `tokenizer.json`, that two tokenizers have differently.

    What phrases ask of a normalizer counts for nothing: it tells an extension, not another way to read.
    """
    states = [json.loads(each.backend_tokenizer.to_str()) for each in (one, other)]
    for state in states:
        state["normalizer"] = unfolded(state["normalizer"])
    return next((part for part in parts if states[0][part] != states[1][part]), None)


def folded(normalizer: JsonObject | None) -> JsonObject:
    """A normalizer, as `tokenizer.json` has it, that folds white space and hyphens before its own work."""
    own = unfolded(normalizer)
    return {"type": "Sequence", "normalizers": [*FOLDS, *([] if own is None else [own])]}


def unfolded(normalizer: JsonObject | None) -> JsonObject | None:
    """A normalizer without `FOLDS`."""
    parts = [] if normalizer is None else normalizer.get("normalizers", [])
    if parts[: len(FOLDS)] != FOLDS:
        return normalizer
    return parts[len(FOLDS)] if len(parts) > len(FOLDS) else None


def check_same_tokens(
    one: PreTrainedTokenizerFast, other: PreTrainedTokenizerFast, source: ModelSource
) -> None:
    """Raise ModelError, naming `source`, where queries and documents would be cut into other tokens."""
    if one.get_vocab() != other.get_vocab() or differing_part(one, other, SAME_TOKENS) is not None:
        raise ModelError(f"{source}: its queries and its documents have different tokenizers; fetch it again")
