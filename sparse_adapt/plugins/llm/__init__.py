"""Texts that a language model writes, of any server that speaks OpenAI's chat protocol: queries and definitions."""

from sparse_adapt.registry import Plugin

HERE = "sparse_adapt.plugins.llm"

PLUGIN = Plugin(
    writers={
        "address": f"{HERE}.server:server_of",
        "queries": f"{HERE}.written_queries:query_writer",
        "definitions": f"{HERE}.written_definitions:define_into",
    }
)
