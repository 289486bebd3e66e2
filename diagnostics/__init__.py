"""Look inside a saved model: its weights for a term, the reasons of a match, the content and the cost of its vectors.

`token` measures one term, and `token_report` is its report in five sections, of which `advice` gives the last: what to
do next. `matches` takes a query's scores apart. `figures` measure many texts, and `health` sums up a whole model. Every
result has `sections`, which a terminal, a page and a notebook show, and `to_dict`.

The package reads models and vectors only. It imports no folder of sparse_adapt that teaches (synthetic, training,
stages, pipeline).
"""
