"""All stages on a corpus of new terms, with fine-tuning alone beside them, and every model measured."""
