"""Look inside a saved model: its weights for a term, the reasons of a match, the content and the cost of its vectors.

`token` reports on one term in five sections (`occurrences` finds it, `sections` holds the findings, `advice`
says what to do next); `matches` takes a query's scores apart; `usage`, `drift` and `cost` measure many texts,
`relevance` pairs of related texts; `groups` compares texts of a group with those of other groups, before and after
(`groups_report`). `report` and `tables` show the results; every result has `to_dict`.

The package reads models and vectors only. It imports no folder of sparse_adapt that teaches (made_up, training,
stages, pipeline).
"""
