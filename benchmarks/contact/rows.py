"""Results of the tests of contact: a quantity in each program and its exact value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.contact.drake import drake, is_installed
from benchmarks.contact.pinocchio_solver import has_solver, pinocchio
from benchmarks.contact.scenes import Program, mujoco, ours

OURS, MUJOCO, DRAKE, PINOCCHIO = "ours", "MuJoCo", "Drake", "Pinocchio's ADMM"
MISSING = float("nan")
"""Value of a program that does not represent the test."""


@dataclass(frozen=True)
class Row:
    """A quantity of a test in each program.

    Attributes:
        test: Name of the test. quantity: What is measured, with its unit.
        values: Program -> value. exact: Exact value.
        negligible: Difference to the exact value that counts as none.
    """

    test: str
    quantity: str
    values: Mapping[str, float]
    exact: float = 0.0
    negligible: float = 0.0

    def error(self, program: str) -> float:
        """Return the absolute error of a program; infinite if it does not represent the test.

        Args:
            program: Name of the program.
        """
        value = self.values.get(program, MISSING)
        return float("inf") if np.isnan(value) else max(abs(value - self.exact) - self.negligible, 0.0)

    @property
    def verdict(self) -> str:
        """Which of the other programs have a smaller error than ours by more than 5 %."""
        worse = [name for name in self.values if name != OURS and 1.05 * self.error(name) < self.error(OURS)]
        return "worse than " + " and ".join(worse) if worse else ""


Case = Callable[[bool], list[Row]]
"""Function that measures a test; True for a short version that shows that it runs."""


def programs() -> dict[str, Program]:
    """Return the programs that simulate a `World`."""
    available: dict[str, Program] = {OURS: ours, MUJOCO: mujoco}
    available |= {DRAKE: drake} if is_installed() else {}
    return available | ({PINOCCHIO: pinocchio} if has_solver() else {})
