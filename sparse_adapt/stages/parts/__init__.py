"""Parts that stages share: texts, objectives and their loss terms."""
