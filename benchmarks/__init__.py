"""Measurements beside other implementations of the same work: run by hand, never as tests."""
