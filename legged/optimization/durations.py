"""Durations of the nodes of a problem, and the factors of phases by which the solver may change them."""

from __future__ import annotations

import numpy as np

from legged.optimization.problem import Problem, Stage
from legged.spatial import Array


class Durations:
    """Times and durations of all nodes, h = nominal duration times the factor of the node's phase.

    Attributes:
        names: Names of the phases, P of them. lower, upper: Bounds of their factors, (P,), dimensionless.
        factors: (1, P), dimensionless. step: Their change by a full step, likewise.
        h, t: Durations and times of the nodes and of the end, (1, nodes + 1), [s].
        h_by_factor, t_by_factor: Derivatives by the factors, (nodes + 1, P), [s].
    """

    def __init__(self, problem: Problem):
        """Start with factors of one.

        Args:
            problem: The problem.
        """
        nodes = len(problem.nodes) + 1
        self.names, bounds = list(problem.phases), np.array(list(problem.phases.values())).reshape(-1, 2)
        self.lower, self.upper = bounds[:, 0], bounds[:, 1]
        self.factors, self.step = np.ones((1, len(self.names))), np.zeros((1, len(self.names)))
        self.h, self.t = np.empty((2, 1, nodes))
        self.refresh(problem)

    def refresh(self, problem: Problem) -> None:
        """Read the nominal durations and the phases of a problem, and keep the factors.

        Args:
            problem: The problem.
        """
        self._start = problem.times[0]
        self.h_by_factor = np.zeros((len(problem.durations), len(self.names)))
        for k, node in enumerate(problem.nodes):
            if isinstance(node, Stage) and node.phase:
                self.h_by_factor[k, self.names.index(node.phase)] = node.duration
        self.t_by_factor = np.zeros_like(self.h_by_factor)
        self.t_by_factor[1:] = self.h_by_factor[:-1].cumsum(axis=0)
        self._fixed = problem.durations - self.h_by_factor.sum(axis=1)
        self.update()

    def values(self, factors: Array) -> tuple[Array, Array]:
        """Return durations and times of the nodes, (..., nodes + 1), [s].

        Args:
            factors: Of the phases, (..., P), dimensionless.
        """
        h = self._fixed + factors @ self.h_by_factor.T
        ends = h[..., :-1].cumsum(axis=-1)
        return h, self._start + np.concatenate([np.zeros((*h.shape[:-1], 1)), ends], axis=-1)

    def update(self) -> None:
        """Compute durations and times of the present factors."""
        self.h[...], self.t[...] = self.values(self.factors)

    def trials(self, alphas: Array) -> tuple[Array, Array]:
        """Return durations and times for several step lengths, (nodes + 1, lengths), [s].

        Args:
            alphas: Step lengths, (n,), dimensionless.
        """
        h, t = self.values(self.factors + alphas[:, None] * self.step)
        return h.T, t.T
