"""Impulses of contacts: responses of robots, the contact law and its solvers."""
