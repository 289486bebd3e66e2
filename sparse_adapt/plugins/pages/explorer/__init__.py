"""A local web page on which people ask a model why: queries, terms, documents, and a slider for each term."""
