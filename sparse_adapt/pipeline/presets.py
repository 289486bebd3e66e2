"""What the presets hold: settings of every stage under one name.

The defaults themselves stand in `config`.
"""

from typing import Any

from sparse_adapt import config

PLAIN_LESSON: dict[str, Any] = {
    "train": "all",
    "learning_rate": 5e-5,
    "new_learning_rate": 1e-2,
    "steps": 200,
    "batch_size": 16,
    "softmax": "full",
    "judge": "none",
    "weights": {"mlm": 1.0, "anchor": 0.0, "domain": 0.0, "recall": 0.0},
}
PLAIN_DICTIONARY = PLAIN_LESSON | {"weights": {**PLAIN_LESSON["weights"], "listwise": 0.0}}
PLAIN_DISTILL = {
    "learning_rate": 5e-5,
    "steps": 200,
    "batch_size": 8,
    "kd": "mse",
    "calibrate": False,
    "raw_logits": False,
    "targets": {"said": 1.0, "meant": 0.0},
    "silence": 0.0,
    "penalised": "none",
    "weights": {"kd": 1.0, "rank": 1.0, "sparsity": 1.0, "domain": 1.0, "contrast": 1.0, "expand": 1.0}
    | {"anchor": 0.0, "recall": 0.0, "listwise": 0.0},
}


CORPUS_DISTILL = {
    "steps": 600,
    "batch_size": 8,
    "learning_rate": 6e-5,
    "new_learning_rate": 3e-4,
    "kd": "kl",
    "temperature": 2.0,
    "factors": "learnt",
    "factor_rate": 6e-3,
    "anchored": "everyday",
    "penalised": "frequent",
    "common": 1.0,
    "balanced": True,
    "weights": {"kd": 1.0, "rank": 0.0, "sparsity": 0.05, "domain": 0.0, "contrast": 0.0, "expand": 0.0}
    | {"anchor": 10.0, "recall": 0.0, "listwise": 0.0},
}


def preset(name: str) -> dict[str, config.Training]:
    """Settings of every stage: `default`, `plain` for the six terms as published, or `corpus`.

    Plain: masked language modelling of all weights over the whole vocabulary; teacher scores as they come;
    hinges on pooled weights; no regard for how common a token is; nothing that keeps the base model.
    Corpus: for queries that nobody asked, the teacher's ranking alone, gently, at no more weights a text.
    """
    published: dict[str, config.Training] = {
        "dynamic": config.Dynamic(),
        "joint": config.Joint(),
        "contrast": config.Contrast(),
    }
    published |= {"triplets": config.Triplets(), "labelled": config.Triplets()}  # so in every preset
    if name == "plain":
        return {
            "behaviour": config.Behaviour(),
            "warmup": config.Warmup.model_validate(PLAIN_LESSON),
            "dictionary": config.Dictionary.model_validate(PLAIN_DICTIONARY),
            "distill": config.Distill.model_validate(PLAIN_DISTILL),
            **published,
        }
    distill = config.Distill.model_validate(CORPUS_DISTILL) if name == "corpus" else config.Distill()
    return {
        "behaviour": config.Behaviour(),
        "warmup": config.Warmup(),
        "dictionary": config.Dictionary(),
        "distill": distill,
        **published,
    }
