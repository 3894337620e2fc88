"""Equations of motion with given contacts, time steps, and the compiled functions of a node."""
