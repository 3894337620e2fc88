"""Execution of solutions in simulation: the linear-quadratic regulator about one, and the controller that tracks it."""
