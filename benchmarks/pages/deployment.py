"""Computed part of `docs/howto/deploy.md`: differences between the C file of estimator and law, and Python."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.deployment.c_step import RESULTS, walk_in_c
from benchmarks.locomotion.walkers import walkers
from benchmarks.pages.parts import Part, table

_SECONDS = 60.0


def c_file() -> str:
    """Return the table of the differences along a walk, in the order of the results."""
    (walker,) = walkers(["Go2"])
    with tempfile.TemporaryDirectory() as folder:
        walk = walk_in_c(walker, _SECONDS, Path(folder), ["gcc"])
    if not walk["upright"]:
        raise ArithmeticError("the robot fell")
    rows = [
        [name, f"{values.max():.0e}", f"{np.quantile(values, 0.99):.0e}"]
        for name, values in zip(RESULTS, walk["differences"]["Python"].T, strict=True)
    ]
    rows.append(["memory, of a chain of steps in Python", f"{walk['accumulated']:.0e}", ""])
    return table(["result", "largest difference", "99 %"], rows)


# Rounding errors: orders of magnitude are stated, and those of coordinates are near the last digit.
PARTS = {"c-file": Part("howto/deploy.md", c_file, relative=0.97, absolute=1e-13, slow=True)}
