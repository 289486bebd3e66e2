"""The command line: one thin command a step. Each command parses, calls one plain function, and prints the result.

Each module holds commands of one panel of `sparse-adapt --help`:

| module | commands |
|---|---|
| `start` | demo, adapt, check |
| `prepare` | terms, queries, candidates, pairs |
| `stages` | every stage, and run |
| `understand` | diagnose, explain, evaluate, verify |
| `pages` | report, explore, calibrate |
| `search` | encode, index, search |
| `engines` | export, check-export |
| `research` | coin, recovery, contradict, groups, similarity, relevant-words (stages of the panel are in `stages`) |
| `app` | the panels, and where every command begins and ends |
| `options`, `devices` | what they share |
| `console`, `progress` | where their words go: data to standard output, the rest to standard error |

Nothing heavy is imported until a command runs, so that help appears at once. A user's mistake is one line
and exit status 2; a bug keeps its traceback.
"""

from sparse_adapt.cli.app import main

__all__ = ["main"]
