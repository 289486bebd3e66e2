"""What stages are made of: texts, objectives and their loss terms, shared between stages."""
