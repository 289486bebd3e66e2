"""The functions behind `import sparse_adapt as sa`: one for each thing that a person or a command asks for.

| module | names |
|---|---|
| `models` | `load`, `Model` |
| `adapting`, `training` | `adapt`, `train` |
| `terms` | `mine_terms` |
| `insight` | `explain`, `diagnose` |
| `measuring` | `evaluate` |
| `searching`, `exporting` | `search`, `export` |
| `progress` | when bars are shown |

Each takes paths and things in memory alike (`collection.arguments`), raises the project's own errors, never ends the
process, and shows bars where a terminal or a notebook is (`progress=` says otherwise). Results show themselves
(`report.results`).
"""
