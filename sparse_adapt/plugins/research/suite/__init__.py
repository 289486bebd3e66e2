"""Many rankers over many collections in one table, with intervals, tests, costs and the tokens that decided."""
