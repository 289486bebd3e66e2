"""Term packs: new terms that a model learnt while its body stood still, each pack a small file for the same base."""
