"""Texts read on the machines of a Ray cluster."""

from sparse_adapt.registry import Plugin

HERE = "sparse_adapt.plugins.ray"

PLUGIN = Plugin(clusters={"ray": f"{HERE}.cluster:connected"})
