"""What a teacher is called: two names, a file of scores, or a model. Known before anything heavy loads."""

ENSEMBLE = "ensemble"
QUICK = "bm25"  # the ensemble without its slowest member
SCORE_FILES = (".jsonl", ".jsonl.gz", ".tsv", ".trec", ".run", ".txt")
