"""A plan, the run file that it is read from, and its stages carried out in their order."""
