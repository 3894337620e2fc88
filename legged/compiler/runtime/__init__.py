"""Compiled functions: kernels for one state and for batches, threads, the time loop of simulations."""
