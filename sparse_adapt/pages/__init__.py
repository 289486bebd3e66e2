"""What the page of a run shows, measured anew from its models: verdict, stages, terms, queries, provenance."""
