"""Published experiments and comparisons, repeated and extended: `python -m examples.studies --help`."""
