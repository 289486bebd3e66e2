"""The SPLADE head: hidden states in, one number per text and vocabulary token out."""
