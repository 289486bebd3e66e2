"""The command line: one thin command a step. Each parses, calls one plain function, and says what came of it.

A module stands for each panel of `sparse-adapt --help`:

| module | commands |
|---|---|
| `start` | demo, adapt, check |
| `prepare` | terms, queries, candidates, pairs |
| `stages` | every stage, and run |
| `understand` | diagnose, explain, evaluate |
| `search` | encode, index, search |
| `engines` | export, check-export, query-table |
| `research` | coin, recovery, contradict, groups, similarity, relevant-words |
| `app` | the panels, and where every command begins and ends |
| `options`, `devices` | what they share |
| `console`, `progress` | where their words go: data to standard output, the rest to standard error |

Nothing heavy is imported until a command runs, so that help is there at once. A user's mistake is one line
and exit status 2; a bug keeps its traceback.
"""

from sparse_adapt.cli.app import main

__all__ = ["main"]
