"""Results on disk: whole or not at all, vouched for by checksums, resumable, shared between processes."""
