"""What stages learn by: loss terms, and the texts, scores and targets that loss terms read."""
