"""Stages in a row: plans, run files, whole runs, and the adaptation of a model to documents alone."""
