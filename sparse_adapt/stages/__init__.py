"""The stages: each reads a model folder and writes its own; each can run alone.

`table` lists them, a row each; a stage's file has its settings, its inputs and how its task is built of `parts`;
`runner` carries out any of them.
"""
