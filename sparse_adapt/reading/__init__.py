"""Files of other layouts than our own, read into the same records: lines, columns, topics, named sources."""
