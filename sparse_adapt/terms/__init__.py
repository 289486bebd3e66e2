"""Which words deserve a token of their own, and what a corpus says about them."""
