"""Many rankers over many collections: one table, with intervals, tests, costs and what decided."""
