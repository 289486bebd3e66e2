"""Which model is good enough: what is measured of it beside the base model, and the rule that keeps or takes it."""
