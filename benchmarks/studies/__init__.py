"""Measurements with a page or table of their own; most are commands, such as `python -m benchmarks.studies.stability`.

`growth` is a kind of `python -m benchmarks`, and `any_element` lists functions for the other measurements.
"""
