"""Documents, queries, judgements, glossaries and pairs, read from any layout, each error with its line."""
