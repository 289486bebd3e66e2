"""All stages on a corpus of new terms, and every model measured, with fine-tuning alone beside them where asked."""
