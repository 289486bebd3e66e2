CREATE INDEX IF NOT EXISTS documents_weights ON documents USING hnsw (weights sparsevec_ip_ops);
