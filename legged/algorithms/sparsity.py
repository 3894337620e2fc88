"""Branch-induced sparsity: factors of the inertia matrix that keep the zeros which branches put there.

Row i of the inertia matrix has entries only for joints on the way from joint i to the base, and for joints outward of
it. Factors taken from the last joint to the first, M = L^T L or L^T D L, have no others; nor has the inverse of L. All
loops run along that way and nowhere else, which is what they cost.

Source: Featherstone, "Efficient factorization of the joint-space inertia matrix for branched kinematic trees",
International Journal of Robotics Research 24(6), 2005.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.algorithms.articulated import refuse_followers
from legged.algorithms.composite import inertia_matrix
from legged.algorithms.newton_euler import inverse_dynamics
from legged.compiler.ir.annotations import stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.robot.configuration import scatter
from legged.robot.robot import Robot
from legged.spatial import Array


@dataclass(frozen=True)
class Ways:
    """The tree of degrees of freedom: which comes next on the way to the base.

    Attributes:
        order: Entries of v, parent before child.
        parent: For each place in `order`, the place of its parent; -1 at the base.
    """

    order: tuple[int, ...]
    parent: tuple[int, ...]

    @classmethod
    def of(cls, robot: Robot) -> Ways:
        """Return the ways of a robot, whose joints of several degrees of freedom count one by one."""
        refuse_followers(robot, "a factorization along the branches")
        order: list[int] = []
        parent: list[int] = []
        last: dict[int, int] = {-1: -1}
        for body in robot.bodies:
            at = last[body.parent]
            for i in range(body.v.start, body.v.stop):
                order.append(i)
                parent.append(at)
                at = len(order) - 1
            last[body.index] = at
        return cls(tuple(order), tuple(parent))

    def inward(self, k: int) -> Iterator[int]:
        """Yield the places from the parent of k to the base."""
        while (k := self.parent[k]) >= 0:
            yield k

    @property
    def entries(self) -> int:
        """Entries below the diagonal that are not zero for want of a way."""
        return sum(len(list(self.inward(k))) for k in range(len(self.order)))

    def sorted(self, M: Array) -> Array:
        """Return a matrix over v, (nv, nv), with its rows and columns in this order."""
        return M[np.ix_(self.order, self.order)]

    def vector(self, b: Array) -> Array:
        """Return a vector over v, (nv,), in this order."""
        return b[list(self.order)]

    def back(self, x: Array) -> Array:
        """Return a vector in this order, (nv,), in the order of v."""
        return scatter(len(x), ((slice(i, i + 1), x[k : k + 1]) for k, i in enumerate(self.order)))


def factor_ltl(M: Array, ways: Ways) -> Array:
    """Return L, (n, n), lower triangular, with M = L^T L.

    Args:
        M: Symmetric positive definite, (n, n), in the order of the ways. ways: The tree.
    """
    L = M.copy()
    for k in reversed(range(len(M))):
        L[k, k] = np.sqrt(L[k, k])
        for i in ways.inward(k):
            L[k, i] = L[k, i] / L[k, k]
        _update(L, ways, k, {i: L[k, i] for i in ways.inward(k)})
    return _lower(L, ways, diagonal=True)


def factor_ltdl(M: Array, ways: Ways) -> tuple[Array, Array]:
    """Return (L, D), (n, n) and (n,), with M = L^T diag(D) L and a diagonal of ones in L; arguments as `factor_ltl`."""
    L = M.copy()
    for k in reversed(range(len(M))):
        reciprocal = 1.0 / L[k, k]
        a = {i: L[k, i] * reciprocal for i in ways.inward(k)}
        _update(L, ways, k, a)
        for i, share in a.items():
            L[k, i] = share
    return _lower(L, ways, diagonal=False) + np.eye(len(M)), np.array([L[k, k] for k in range(len(M))])


def _update(L: Array, ways: Ways, k: int, a: dict[int, Any]) -> None:
    """Take row k from the rows on its way: L_ij -= a_i L_kj."""
    for i, share in a.items():
        for j in (i, *ways.inward(i)):
            L[i, j] = L[i, j] - share * L[k, j]


def _lower(L: Array, ways: Ways, diagonal: bool) -> Array:
    kept = np.zeros_like(L)
    for k in range(len(L)):
        for i in (*((k,) if diagonal else ()), *ways.inward(k)):
            kept[k, i] = L[k, i]
    return kept


def solve_ltl(L: Array, ways: Ways, b: Array) -> Array:
    """Return x, (n,), with L^T L x = b."""
    x = list(b)
    for k in reversed(range(len(x))):
        x[k] = x[k] / L[k, k]
        for i in ways.inward(k):
            x[i] = x[i] - L[k, i] * x[k]
    for k in range(len(x)):
        for i in ways.inward(k):
            x[k] = x[k] - L[k, i] * x[i]
        x[k] = x[k] / L[k, k]
    return np.array(x)


def solve_ltdl(L: Array, D: Array, ways: Ways, b: Array) -> Array:
    """Return x, (n,), with L^T diag(D) L x = b."""
    x = list(b)
    for k in reversed(range(len(x))):
        for i in ways.inward(k):
            x[i] = x[i] - L[k, i] * x[k]
    x = [x[k] * (1.0 / D[k]) for k in range(len(x))]
    for k in range(len(x)):
        for i in ways.inward(k):
            x[k] = x[k] - L[k, i] * x[i]
    return np.array(x)


def inverse_factor(L: Array, ways: Ways) -> Array:
    """Return Y = L^-1, (n, n), which has the same zeros as L, so that M^-1 = Y Y^T, or Y D^-1 Y^T.

    Y is found row by row, outward: each from those on its way.

    Source: Featherstone, "Exploiting sparsity in operational-space dynamics", International Journal of Robotics
    Research 29(10), 2010, uses this pattern; the recursion is forward substitution on it.
    """
    Y = np.zeros_like(L)
    for k in range(len(L)):
        Y[k, k] = 1.0 / L[k, k]
        for j in ways.inward(k):
            total: Any = 0.0
            for i in ways.inward(k):
                if i == j or j in ways.inward(i):
                    total = total + L[k, i] * Y[i, j]
            Y[k, j] = -total * Y[k, k]
    return Y


def forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
    """Return the acceleration under given forces, (nv,), by the inertia matrix and its L^T D L factors.

    O(n^3) for a chain, less for a tree; for few joints less than O(n) recursions cost.

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for joints that follow others.

    Source: Featherstone, Orin 2000, section 3.2; Walker, Orin 1982; factors of Featherstone 2005.
    """
    ways = Ways.of(robot)
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    bias = inverse_dynamics(robot, q, v, np.zeros(robot.nv), wrenches)
    M = inertia_matrix(robot, q)
    with stage("3 factors and solution"):
        L, D = factor_ltdl(ways.sorted(M), ways)
        x = solve_ltdl(L, D, ways, ways.vector(tau - bias))
    return finite(robot, "the forward dynamics", ways.back(x))
