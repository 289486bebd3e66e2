"""The worth of a model: texts encoded, searched exactly, and measured by judgements and by what the model keeps."""
