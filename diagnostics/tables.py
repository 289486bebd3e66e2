"""Usage, drift and cost as tables: for a terminal, JSON or Markdown by `sparse_adapt.report.tables`."""

from diagnostics.cost import Cost
from diagnostics.drift import Drift
from diagnostics.usage import Usage
from sparse_adapt.model.health import HEALTHY_DOCUMENT, HEALTHY_QUERY, Head
from sparse_adapt.report.tables import Column, Row, Table


def tabulate_usage(usage: Usage) -> Table:
    """A row for each new token; the shares over all of them stand below."""
    columns = (
        Column("token", "token", "token"),
        Column("category", "category", "text"),
        Column("documents_with", "said by"),
        Column("fires_with", "lit"),
        Column("documents_without", "not said by"),
        Column("fires_without", "lit"),
        Column("mean_weight_with", "mean weight", decimals=3, bar=True),
    )
    shares = (
        ("without weight", usage.dead_share),
        ("lit where said", usage.fires_with_share),
        ("lit where not said", usage.fires_without_share),
    )
    note = "; ".join(f"{name} {share:.1%}" for name, share in shares if share is not None)
    return Table("New tokens", columns, usage.to_dict()["tokens"], note)


def tabulate_drift(drift: Drift) -> Table:
    """One row of figures a measure."""
    rows: list[Row] = [
        {"figure": "cosine of old dimensions, mean", "value": drift.mean_cosine},
        {
            "figure": f"cosine of old dimensions, least (text {drift.furthest_text})",
            "value": drift.least_cosine,
        },
        {"figure": f"overlap of the {drift.top} heaviest tokens, mean", "value": drift.mean_overlap},
        {"figure": "non-zeros a text before", "value": drift.nonzero_before},
        {"figure": "non-zeros a text after", "value": drift.nonzero_after},
    ]
    columns = (Column("figure", "figure", "text"), Column("value", "value", decimals=3))
    return Table("Drift", columns, rows, f"over {len(drift.texts):,} texts")


def tabulate_head(head: Head) -> Table:
    """What a head makes of general passages, beside what is usual for trained models."""
    usual = [f"{first} to {last}" for first, last in (HEALTHY_DOCUMENT, HEALTHY_QUERY)]
    rows: list[Row] = [
        {"figure": "non-zeros a passage", "value": head.nonzero_document, "usual": usual[0]},
        {"figure": "non-zeros a question", "value": head.nonzero_query, "usual": usual[1]},
        {"figure": "passages without a non-zero (%)", "value": 100 * head.dark, "usual": "0"},
        {"figure": "vocabulary that some passage lights (%)", "value": 100 * head.lit, "usual": ""},
        {"figure": "tokens that passages say", "value": head.said, "usual": ""},
        {"figure": "of these never lit where said", "value": head.silent, "usual": ""},
    ]
    columns = (
        Column("figure", "figure", "text"),
        Column("value", "value", decimals=1),
        Column("usual", "usual", "text"),
    )
    return Table("Head, on general passages", columns, rows)


def tabulate_cost(cost: Cost) -> tuple[Table, Table]:
    """The figures, and the longest posting lists."""
    rows: list[Row] = [
        {"figure": "non-zeros a document", "value": cost.nonzero_document},
        {"figure": "non-zeros of the largest document", "value": cost.largest_document},
        {"figure": "documents without a non-zero", "value": cost.empty_documents},
        {"figure": "tokens that some document uses", "value": cost.tokens_used},
        {"figure": "index, estimated (MiB)", "value": cost.index_bytes / 2**20},
        {"figure": "non-zeros a query", "value": cost.nonzero_query},
        {"figure": "shared tokens of a query and a document (FLOPS)", "value": cost.flops},
        {"figure": "posting list entries read a query", "value": cost.postings_a_query},
    ]
    figures = (Column("figure", "figure", "text"), Column("value", "value", decimals=2))
    lists = (
        Column("token", "token", "token"),
        Column("documents", "documents"),
        Column("share", "of all", "share", decimals=1, bar=True),
    )
    longest: list[Row] = [
        {column.key: getattr(posting, column.key) for column in lists} for posting in cost.longest
    ]
    return Table("Cost", figures, rows), Table("Longest posting lists", lists, longest)
