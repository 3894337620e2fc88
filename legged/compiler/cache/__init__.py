"""The disk cache: machine code, keyed by the graph, and traced graphs of this project's own functions."""
