"""A small random dense sentence encoder in the layout of sentence-transformers: the same each time."""

from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, BertForMaskedLM

from sparse_adapt.files.writing import write_json


def tiny_dense(masked_lm: Path, folder: Path, **pooling: Any) -> Path:
    """The tiny model without its head, as a folder that sentence-transformers of some years ago would have written."""
    BertForMaskedLM.from_pretrained(masked_lm).bert.save_pretrained(folder)
    AutoTokenizer.from_pretrained(masked_lm).save_pretrained(folder)
    kinds = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
    modules = [
        {"idx": idx, "name": str(idx), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for idx, (path, kind) in enumerate(kinds)
    ]
    write_json(folder / "modules.json", modules)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 48, "do_lower_case": False})
    modes = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, **pooling}
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 16, **modes})
    (folder / "2_Normalize").mkdir()
    return folder
