"""General passages and questions: what a model for web search knew before it met a domain.

`data/general.jsonl.xz` holds some 5,000 passages of 12 to 90 words, each with one question that it answers: paragraphs
of Wikipedia, the World Factbook on countries, and WordNet on common words. `data/README.md` names their sources and
licences. One half teaches (it anchors a model while it learns), the other half judges; no subject stands in both.
"""

import json
import lzma
from functools import cache
from importlib.resources import files
from typing import Literal

from sparse_adapt.collection.readers import Document, Query

Half = Literal["teaches", "judges"]

DATA = files("sparse_adapt.synthetic") / "data" / "general.jsonl.xz"


@cache
def pairs(half: Half) -> tuple[tuple[Document, Query], ...]:
    """The half's passages, each beside the question that it answers; both carry one id.

    Read once a process. Sources: Wikipedia; Central Intelligence Agency, The World Factbook; Miller 1995, WordNet.
    """
    with DATA.open("rb") as packed, lzma.LZMAFile(packed) as lines:
        rows = [(f"general-{number}", json.loads(line)) for number, line in enumerate(lines)]
    return tuple(
        (Document(name, row["text"], row.get("title", "")), Query(name, row["question"], "general"))
        for name, row in rows
        if row["half"] == half
    )
