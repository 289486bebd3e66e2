"""A corpus as sparse vectors on disk: shards, and the manifest that vouches for them."""
