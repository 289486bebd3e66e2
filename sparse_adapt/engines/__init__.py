"""Search engines: the files that an engine loads, and the engine itself, opened and compared with exact search.

`formats` has a row for each engine, and each engine has one module, which knows its files and opens it (`layout` says
what such a module holds). `writing` writes an export, `opening` opens an export in its engine, `parity` compares the
engine's rankings with exact search.
"""
