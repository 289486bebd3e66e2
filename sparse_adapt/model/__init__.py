"""The model: token ids in, one weight for each token of the vocabulary out."""
