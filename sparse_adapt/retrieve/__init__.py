"""What a model is worth: texts encoded, searched exactly, and measured against judgements."""
