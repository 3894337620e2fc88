"""The disk cache: machine code, keyed by the graph."""
