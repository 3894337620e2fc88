"""Measurements with a page or table of their own, each a command: `python -m benchmarks.studies.NAME`."""
