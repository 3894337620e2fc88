"""Measurements with a page or table of their own; each is a command, such as `python -m benchmarks.studies.growth`."""
