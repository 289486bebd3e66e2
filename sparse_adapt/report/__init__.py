"""Results as a person reads them: tables, JSON, and word of how far a long piece of work is."""
