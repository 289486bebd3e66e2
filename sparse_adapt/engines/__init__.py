"""Engines that serve an exported index: built, searched, and held against the exact search."""
