CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE IF NOT EXISTS documents (document_id text PRIMARY KEY, weights sparsevec(3) NOT NULL);
