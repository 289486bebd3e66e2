"""The stages: each reads a model folder and writes its own; each can run alone.

`table` lists the stages, a row each. The file of a stage holds its settings and its inputs, and builds its task out of
`parts`. `runner` carries out any stage.
"""
