"""How queries are made of documents."""

from typing import Literal

from sparse_adapt.settings import Settings, setting


class QuerySettings(Settings):
    """Queries without users: how many, of which kinds, how many are set aside."""

    seed: int = setting(0, "Seed of every random draw.", ge=0)
    count: int = setting(2_400, "Most queries to learn from.", unit="queries", ge=1)
    held: int = setting(
        300,
        "Most queries that are set aside to choose and to measure with; at most one for every four documents.",
        unit="queries",
        ge=1,
    )
    per_document: int = setting(2, "Most queries of one document.", unit="queries", ge=1, le=3)
    titles: float = setting(1.0, "Share of queries that are titles, beside the other kinds.", ge=0)
    title_with: tuple[Literal["keywords", "journal"], ...] = setting(
        (),
        "What follows a title that becomes a query, of documents that have it.",
        source="Pavlova and Makhlouf, MOSAIC",
    )
    sentences: float = setting(2.0, "Share of queries that are sentences, beside the other kinds.", ge=0)
    phrases: float = setting(1.0, "Share of queries that are phrases, beside the other kinds.", ge=0)
    cut: bool = setting(
        True, "Whether a document loses what became a query, so that its other words have to find it."
    )
    generated: int = setting(
        1_000, "Queries that a generator writes, where one is named.", unit="queries", ge=0
    )
