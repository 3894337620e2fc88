"""A robot in Pinocchio, and Pinocchio's ways to its dynamics."""

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

import legged
from benchmarks.subjects import FORWARD, INERTIA, INVERSE
from benchmarks.timing import Way, calls

DERIVATIVES = "derivatives"
LOOP = 64
"""States in a Python loop: enough, since they are done one after the other."""


@cache
def pinocchio() -> Any:
    """Return the module, None if it is not installed."""
    try:
        return importlib.import_module("pinocchio")
    except ImportError:
        return None


class Pinocchio:
    """A robot in Pinocchio, made of the same definition by the tests' oracle, and states in its order.

    Attributes:
        model, data: Pinocchio's.
    """

    def __init__(self, robot: legged.Robot, states: Sequence[np.ndarray]):
        """Build the model.

        Args:
            robot: The robot.
            states: q, v and whatever drives it, a row for each state.
        """
        pin = pinocchio()
        self._twin: Any = importlib.import_module("tests.oracles.pinocchio_model").pinocchio_twin(robot)
        self.model, self.data = self._twin.model, self._twin.data
        self._rows = [np.stack([self._twin.q(q) for q in states[0]])]
        self._rows += [np.stack([self._twin.v(x) for x in a]) for a in states[1:]]
        self._functions = {
            FORWARD: pin.aba,
            INVERSE: pin.rnea,
            INERTIA: pin.crba,
            DERIVATIVES: pin.computeABADerivatives,
        }
        self._parallel = {FORWARD: pin.abaInParallel, INVERSE: pin.rneaInParallel}

    def results(self, function: str, count: int) -> np.ndarray:
        """Return the results for the first states, one after the other, in our order."""
        if function == INERTIA:
            signs, order = (
                np.outer(self._twin.v_sign, self._twin.v_sign),
                np.ix_(self._twin.v_index, self._twin.v_index),
            )
            upper = [np.triu(self._one(function, k)) for k in range(count)]
            return np.stack([(u + np.triu(u, 1).T)[order] * signs for u in upper])
        return np.stack([self._twin.ours(self._one(function, k)) for k in range(count)])

    def _arguments(self, function: str, k: int) -> list[np.ndarray]:
        return [rows[k] for rows in self._rows[: 1 if function == INERTIA else 3]]

    def _one(self, function: str, k: int) -> np.ndarray:
        return self._functions[function](self.model, self.data, *self._arguments(function, k))

    def one(self, function: str) -> Way:
        """Return the way of calling it from Python with one state."""
        return Way(calls(self._functions[function], self.model, self.data, *self._arguments(function, 0)))

    def loop(self, function: str) -> Way:
        """Return the way of a Python loop over states."""
        algorithm, model, data = self._functions[function], self.model, self.data
        few = [self._arguments(function, k) for k in range(min(LOOP, len(self._rows[0])))]

        def over_all() -> None:
            for q, v, x in few:
                algorithm(model, data, q, v, x)

        return Way(calls(over_all), len(few))

    def derivatives(self) -> tuple[Way, list[np.ndarray]]:
        """Return (the way of a Python loop that keeps derivatives by q, v and tau, its results in our order)."""
        model, data, derive = self.model, self.data, self._functions[DERIVATIVES]
        few = [self._arguments(DERIVATIVES, k) for k in range(min(LOOP, len(self._rows[0])))]
        out = [np.empty((len(few), model.nv, model.nv)) for _ in range(3)]

        def over_all() -> None:
            for k, (q, v, x) in enumerate(few):
                out[0][k], out[1][k], out[2][k] = derive(model, data, q, v, x)

        over_all()
        upper = np.triu(out[2])
        whole = [out[0], out[1], upper + np.triu(upper, 1).swapaxes(1, 2)]
        signs, (rows, columns) = np.outer(self._twin.v_sign, self._twin.v_sign), np.ix_(*2 * [self._twin.v_index])
        return Way(calls(over_all), len(few)), [d[:, rows, columns] * signs for d in whole]

    def batch(self, function: str, threads: int = 1) -> tuple[Way, np.ndarray]:
        """Return (the way by Pinocchio's own function for batches, its results in our order)."""
        pool = pinocchio().ModelPool(self.model, threads)
        columns = [np.asfortranarray(rows.T) for rows in self._rows]
        out = np.empty((self.model.nv, len(self._rows[0])), order="F")
        run = calls(self._parallel[function], threads, pool, *columns, out)
        run(1)
        return Way(run, len(self._rows[0]), threads > 1), self._twin.ours(out.T)
