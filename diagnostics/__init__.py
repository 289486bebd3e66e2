"""Look inside a saved model: what it makes of a term, why a query matched, what its vectors hold and cost.

`token` reports on one term in five sections (`occurrences` finds it, `sections` holds the findings, `advice`
says what to do next); `matches` takes a query's scores apart; `usage`, `drift` and `cost` put figures on many
texts, `relevance` on pairs of related ones; `groups` holds texts of a group against those of others, before and
after (`groups_report`). `report` and `tables` show the rest; every result has `to_dict`.

Reads models and vectors only: imports no room of sparse_adapt that teaches (made_up, training, stages, pipeline).
"""
