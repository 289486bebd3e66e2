"""Search engines: the files that they load, written from vectors, and the engines themselves, opened and compared.

`formats` has a row for each engine, and one module each knows its files and opens it (`layout` says what such a
module has). `writing` writes an export, `opening` opens one in its engine, `parity` holds the engine's rankings
against exact search.
"""
