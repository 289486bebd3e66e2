"""What follows what: plans, run files, whole runs, and the adaptation of a model to a bare corpus."""
