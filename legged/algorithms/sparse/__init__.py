"""Sparsity of the inertia matrix of trees, and dynamics as sparse linear systems."""
