"""Measurements of sweeps: `python -m benchmarks.sweeps`."""
