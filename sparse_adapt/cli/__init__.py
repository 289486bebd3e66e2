"""The command line: a table of commands, each made of a function by its signature (`commands`).

| module | what it holds |
|---|---|
| `app` | the table of commands by panel, and where every command begins and ends |
| `commands` | the maker: options, help and words of a command from its function |
| `stages` | a command for every stage, from its row and its settings |
| `page` | the first page of help |
| `console` | where words go: data to standard output, the rest to standard error |

Nothing heavy is imported until a command runs, so that help appears at once. A user's mistake is one line
and exit status 2; a bug keeps its traceback.
"""

from sparse_adapt.cli.app import main

__all__ = ["main"]
