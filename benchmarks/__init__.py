"""Accuracy and speed of `legged`, measured beside Pinocchio and MuJoCo: `python -m benchmarks`."""
