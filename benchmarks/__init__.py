"""Accuracy and speed of `legged`, measured beside Pinocchio and MuJoCo: `python -m benchmarks`."""

import os

os.environ.setdefault("LEGGED_WITHOUT", "two stages")  # code that is measured is optimized from the first call on
