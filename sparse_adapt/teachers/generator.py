"""Queries written by a sequence-to-sequence model, as doc2query has them (Nogueira and Lin 2019)."""

from collections.abc import Sequence

from sparse_adapt.model.folder import ModelFolder
from sparse_adapt.model.weights import check_weights, loading
from sparse_adapt.synthetic.queries import Generate

TEXTS_AT_ONCE = 16
LONGEST_TEXT, LONGEST_QUERY = 384, 48  # tokens


def generator(source: str) -> Generate:
    """What writes a query for each text, always the same one (beam search). Safetensors only, no remote code.

    Raises ModelError for what can't be loaded as such a model.
    """
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    folder = ModelFolder.of(source).path
    check_weights(folder, source)
    with loading(source, "a query generator"):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        model = AutoModelForSeq2SeqLM.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True, use_safetensors=True
        ).eval()

    @torch.inference_mode()
    def generate(texts: Sequence[str]) -> list[str]:
        written: list[str] = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            part = list(texts[start : start + TEXTS_AT_ONCE])
            encoded = tokenizer(
                part, truncation=True, max_length=LONGEST_TEXT, padding=True, return_tensors="pt"
            )
            found = model.generate(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                max_new_tokens=LONGEST_QUERY,
                num_beams=2,
                do_sample=False,
            )
            written += tokenizer.batch_decode(found, skip_special_tokens=True)
        return written

    return generate
