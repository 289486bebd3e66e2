"""The page of a run, measured anew from its models: verdict, stages, terms, queries, and where a weight comes from."""
