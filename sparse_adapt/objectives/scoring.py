"""Settings of stages that learn from a teacher's scores: how scores are compared, and what tokens cost."""

from typing import Literal

from sparse_adapt.settings import setting
from sparse_adapt.training.settings import Training

Penalised = Literal["none", "frequent", "function"]


class Scoring(Training):
    """Learn from candidates that a teacher has scored, at a cost for each weight of a text."""

    kd: Literal["mse", "margin_mse", "kl"] = setting(
        "kl",
        "How scores are held to the teacher's: each by itself, by gaps to the best, or by their softmax.",
        source="kl: Hinton et al. 2015, arXiv:1503.02531; margin_mse: Hofstätter et al. 2020, arXiv:2010.02666",
    )
    temperature: float = setting(1.0, "What scores are divided by in both softmaxes of `kl`.", gt=0)
    calibrate: bool = setting(
        True,
        "Whether the teacher's scores are brought to the mean and spread of the model's own at the start.",
    )
    longest: int | None = setting(
        None, "Tokens of a text that teach; by default as many as the model reads.", unit="tokens", ge=8
    )
    flops_query: float = setting(
        0.01, "What the work of all tokens of queries counts within `sparsity`.", ge=0
    )
    flops_document: float = setting(
        0.01, "What the work of all tokens of documents counts within `sparsity`.", ge=0
    )
    penalised: Penalised = setting(
        "function",
        "Tokens that cost more than others: none, frequent ones, or words that say nothing of a topic.",
        source="Porco et al. 2025, arXiv:2505.15070",
    )
    common: float = setting(1.0, "What penalised tokens cost within `sparsity`.", ge=0)
