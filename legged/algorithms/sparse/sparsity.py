"""Branch-induced sparsity: factorization of the joint-space inertia matrix without fill-in.

Row i of the inertia matrix has nonzero entries only for joints on the path from joint i to the base, and for joints
outward of it. The factors M = L^T L and M = L^T D L, taken from the last joint to the first, have the same zeros, and
so has L^-1. All loops run over these paths alone, which sets their cost.

Source: Featherstone, "Efficient factorization of the joint-space inertia matrix for branched kinematic trees",
International Journal of Robotics Research 24(6), 2005.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.articulated import refuse_followers
from legged.algorithms.composite import inertia_matrix
from legged.algorithms.newton_euler import inverse_dynamics
from legged.compiler.ir import stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.elements import any_element
from legged.robot.configuration import scatter
from legged.robot.robot import Robot
from legged.spatial import Array


class Cost(NamedTuple):
    """Numbers of operations."""

    multiplications: int
    additions: int
    divisions: int
    square_roots: int = 0

    @property
    def total(self) -> int:
        """Their sum."""
        return sum(self)


@dataclass(frozen=True)
class DofTree:
    """The tree of degrees of freedom, Featherstone's expanded connectivity graph.

    Attributes:
        order: Entries of v, parent before child.
        parent: For each position in `order`, the position of its parent; -1 at the base.
    """

    order: tuple[int, ...]
    parent: tuple[int, ...]

    @classmethod
    def of(cls, robot: Robot) -> DofTree:
        """Return the tree of a robot; each degree of freedom of a joint is a node.

        Raises:
            DefinitionError: For joints that follow others.
        """
        refuse_followers(robot, "a factorization along the branches")
        order: list[int] = []
        parent: list[int] = []
        last: dict[int, int] = {-1: -1}
        for body in robot.bodies:
            node = last[body.parent]
            for i in range(body.v.start, body.v.stop):
                order.append(i)
                parent.append(node)
                node = len(order) - 1
            last[body.index] = node
        return cls(tuple(order), tuple(parent))

    @classmethod
    def chain(cls, n: int) -> DofTree:
        """Return the tree of n degrees of freedom in series, whose matrices are dense."""
        return cls(tuple(range(n)), tuple(range(-1, n - 1)))

    def ancestors(self, k: int) -> Iterator[int]:
        """Yield the positions from the parent of k to the base."""
        while (k := self.parent[k]) >= 0:
            yield k

    @property
    def nonzeros(self) -> int:
        """Number of structurally nonzero entries below the diagonal: D1, the sum of the numbers of ancestors."""
        return sum(len(list(self.ancestors(k))) for k in range(len(self.order)))

    def costs(self) -> dict[str, Cost]:
        """Return the operations of the functions of this module, exactly as they are traced, by their names.

        With a_k ancestors of the degree of freedom k, n the number of degrees of freedom, r those without ancestors,

            D1 = sum of a_k,    D2 = sum of a_k (a_k + 1) / 2,    D3 = sum of a_k (a_k - 1) / 2

        A chain has D1 = n (n - 1) / 2 and D2 = (n^3 - n) / 6, a tree of bounded depth multiples of n.

        Source: Featherstone 2005 has cost formulas in such sums, of which we know the abstract alone; these are ours.
        """
        ancestors = [len(list(self.ancestors(k))) for k in range(len(self.order))]
        n, inner = len(ancestors), sum(a > 0 for a in ancestors)
        D1, D2 = sum(ancestors), sum(a * (a + 1) // 2 for a in ancestors)
        D3 = D2 - D1
        return {
            "factor_ltl": Cost(D2, D2, D1, n),
            "factor_ltdl": Cost(D1 + D2, D2, inner),
            "solve_transposed": Cost(D1, D1, n),
            "solve_lower": Cost(D1, D1, n),
            "solve_ltl": Cost(2 * D1, 2 * D1, 2 * n),
            "solve_ltdl": Cost(2 * D1 + n, 2 * D1, n),
            "inverse_factor": Cost(2 * D1 + D3, D3, n),
        }

    def permute_matrix(self, M: Array) -> Array:
        """Return a matrix, (nv, nv), with its rows and columns in the order of the tree.

        Args:
            M: Matrix over v, (nv, nv), any unit.
        """
        return M[np.ix_(self.order, self.order)]

    def permute(self, b: Array) -> Array:
        """Return a vector, (nv,), in the order of the tree.

        Args:
            b: Vector over v, (nv,), any unit.
        """
        return b[list(self.order)]

    def unpermute(self, x: Array) -> Array:
        """Return a vector, (nv,), in the order of v.

        Args:
            x: Vector in the order of the tree, (nv,), any unit.
        """
        return scatter(len(x), ((slice(i, i + 1), x[k : k + 1]) for k, i in enumerate(self.order)))


@any_element
def factor_ltl(M: Array, tree: DofTree) -> Array:
    """Return L, (n, n), lower triangular, with M = L^T L.

    Args:
        M: Symmetric positive definite, (n, n), any unit, in the order of the tree. tree: The degrees of freedom.
    """
    L = M.copy()
    for k in reversed(range(len(M))):
        L[k, k] = np.sqrt(L[k, k])
        for i in tree.ancestors(k):
            L[k, i] = L[k, i] / L[k, k]
        _subtract_row(L, tree, k, {i: L[k, i] for i in tree.ancestors(k)})
    return _lower_part(L, tree, diagonal=True)


@any_element
def factor_ltdl(M: Array, tree: DofTree) -> tuple[Array, Array]:
    """Return (L, D), (n, n) and (n,), with M = L^T diag(D) L and a unit diagonal of L; arguments as in `factor_ltl`."""
    L = M.copy()
    for k in reversed(range(len(M))):
        reciprocal = 1.0 / L[k, k]
        a = {i: L[k, i] * reciprocal for i in tree.ancestors(k)}
        _subtract_row(L, tree, k, a)
        for i, ratio in a.items():
            L[k, i] = ratio
    return _lower_part(L, tree, diagonal=False) + np.eye(len(M)), np.array([L[k, k] for k in range(len(M))])


def _subtract_row(L: Array, tree: DofTree, k: int, a: dict[int, Any]) -> None:
    """Eliminate row k from the rows of its ancestors: L_ij -= a_i L_kj."""
    for i, ratio in a.items():
        for j in (i, *tree.ancestors(i)):
            L[i, j] = L[i, j] - ratio * L[k, j]


def _lower_part(L: Array, tree: DofTree, diagonal: bool) -> Array:
    """Return the structurally nonzero entries of the lower triangle, (n, n)."""
    lower = np.zeros_like(L)
    for k in range(len(L)):
        for i in (*((k,) if diagonal else ()), *tree.ancestors(k)):
            lower[k, i] = L[k, i]
    return lower


@any_element
def solve_transposed(L: Array, tree: DofTree, b: Array) -> Array:
    """Return x, (n,), with L^T x = b.

    Args:
        L: Factor of `factor_ltl`, (n, n), any unit. tree: The degrees of freedom. b: (n,), any unit, in their order.
    """
    x = list(b)
    for k in reversed(range(len(x))):
        x[k] = x[k] / L[k, k]
        for i in tree.ancestors(k):
            x[i] = x[i] - L[k, i] * x[k]
    return np.array(x)


@any_element
def solve_ltl(L: Array, tree: DofTree, b: Array) -> Array:
    """Return x, (n,), with L^T L x = b; arguments as in `solve_transposed`."""
    return solve_lower(L, tree, solve_transposed(L, tree, b))


@any_element
def solve_lower(L: Array, tree: DofTree, b: Array) -> Array:
    """Return x, (n,), with L x = b; arguments as in `solve_transposed`."""
    x = list(b)
    for k in range(len(x)):
        for i in tree.ancestors(k):
            x[k] = x[k] - L[k, i] * x[i]
        x[k] = x[k] / L[k, k]
    return np.array(x)


@any_element
def solve_ltdl(L: Array, D: Array, tree: DofTree, b: Array) -> Array:
    """Return x, (n,), with L^T diag(D) L x = b; D, (n,), and L are those of `factor_ltdl`, b as in `solve_ltl`."""
    x = list(b)
    for k in reversed(range(len(x))):
        for i in tree.ancestors(k):
            x[i] = x[i] - L[k, i] * x[k]
    x = [x[k] * (1.0 / D[k]) for k in range(len(x))]
    for k in range(len(x)):
        for i in tree.ancestors(k):
            x[k] = x[k] - L[k, i] * x[i]
    return np.array(x)


@any_element
def inverse_factor(L: Array, tree: DofTree) -> Array:
    """Return Y = L^-1, (n, n), which has the same zeros as L, so that M^-1 = Y Y^T or Y D^-1 Y^T.

    Each row of Y follows from the rows of its ancestors by forward substitution.

    Args:
        L: Factor of `factor_ltl` or `factor_ltdl`, (n, n), any unit. tree: The degrees of freedom.

    Source: Featherstone, "Exploiting sparsity in operational-space dynamics", International Journal of Robotics
    Research 29(10), 2010, uses this pattern.
    """
    Y = np.zeros_like(L)
    for k in range(len(L)):
        Y[k, k] = 1.0 / L[k, k]
        for j in tree.ancestors(k):
            total: Any = 0.0
            for i in tree.ancestors(k):
                if i == j or j in tree.ancestors(i):
                    total = total + L[k, i] * Y[i, j]
            Y[k, j] = -total * Y[k, k]
    return Y


@any_element
def composite_inertia(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
    """Return the acceleration under given generalized forces, (nv,), by the inertia matrix and its L^T D L factors.

    O(n^3) for a chain, less for a tree; cheaper than the O(n) recursions for robots with few joints.

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for joints that follow others.

    Source: Featherstone, Orin 2000, section 3.2; Walker, Orin 1982; factors of Featherstone 2005.
    """
    tree = DofTree.of(robot)
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    bias = inverse_dynamics(robot, q, v, np.zeros(robot.nv), wrenches)
    M = inertia_matrix(robot, q)
    with stage("3 factors and solution"):
        L, D = factor_ltdl(tree.permute_matrix(M), tree)
        x = solve_ltdl(L, D, tree, tree.permute(tau - bias))
    return finite(robot, "the forward dynamics", tree.unpermute(x))


forward_dynamics = composite_inertia
"""The name of the task, which is the same in the modules of all algorithms."""
