"""Motions planned by optimal control: problems of Go2 and G1, and their execution."""
