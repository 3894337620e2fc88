"""The constraint-force algorithm: forward dynamics of unbranched chains from a block-tridiagonal system.

    T^T I^-1 T beta = T^T a_0 - T^T I^-1 (f_a - v x I v)          (28)

A joint's constraint force meets those of the joints before and behind it alone. Odd-even reduction solves such a system
in a number of steps that grows with the logarithm of the bodies.

Source: Fijany, Sharf, D'Eleuterio 1995; in the form of Featherstone, Fijany, "A technique for analyzing constrained
rigid-body systems and its application to the constraint force algorithm", IEEE Transactions on Robotics and Automation
15(6), 1999, for joints of any kind and floating bases.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.algorithms.sparse_system import Constraint, constraints, joint_rates, right_sides
from legged.compiler.ir.annotations import item, stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored

WHAT = "the constraint-force algorithm"


def forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
    """Return the acceleration under given forces, (nv,), of an unbranched chain, by the constraint forces (28).

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for branches, joints that follow others, armature and rotors, and
        massless bodies at the end.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    with stage("1 bodies and constraints"):
        joints, a_0 = constraints(robot, q, v, tau, wrenches, WHAT, in_parallel=True)
        _refuse_branches(robot, joints)
    with stage("2 system"):
        inertia = [factor_symmetric(joint.body.I) for joint in joints]
        free = [solve_factored(factors, r) for factors, r in zip(inertia, right_sides(joints), strict=True)]
        diagonal, lower, right = _system(joints, inertia, free, a_0)
    with stage("3 constraint forces"):
        beta = solve_tridiagonal(diagonal, lower, right)
    with stage("4 accelerations"):
        f = [joint.T @ b for joint, b in zip(joints, beta, strict=True)]
        total = [own - joints[k + 1].body.X.T @ f[k + 1] if k + 1 < len(f) else own for k, own in enumerate(f)]
        a = [own + solve_factored(factors, w) for own, factors, w in zip(free, inertia, total, strict=True)]
    return finite(robot, "the forward dynamics", joint_rates(robot, joints, a, a_0))


def _refuse_branches(robot: Robot, joints: Sequence[Constraint]) -> None:
    for k, joint in enumerate(joints):
        if joint.body.parent != k - 1:
            name = robot.bodies[joint.body.index].name
            raise DefinitionError(
                f"{WHAT} is for chains without branches: {name!r} is not on the end of what comes before it; "
                f"sparse_system and divide_and_conquer take trees"
            )


def _system(
    joints: Sequence[Constraint], inertia: Sequence[tuple], free: Sequence[Array], a_0: Array
) -> tuple[list[Array], list[Array], list[Array]]:
    """Return the blocks of (28): on the diagonal, left of it (from the second joint on), and on the right side."""
    diagonal, lower, right = [], [], []
    for k, joint in enumerate(joints):
        with item(joint.body.index):
            T, X = joint.T, joint.body.X
            block = T.T @ _solved(inertia[k], T)
            driven = X @ (free[k - 1] if k else a_0) + joint.body.c
            if k:
                T_p = np.array([X.T @ column for column in T.T]).reshape(T.T.shape).T
                moved = _solved(inertia[k - 1], T_p)
                block = block + T_p.T @ moved
                lower.append(-(moved.T @ joints[k - 1].T))
            diagonal.append(mirror(block) if len(block) else block)
            right.append(T.T @ (driven - free[k]))
    return diagonal, lower, right


def _solved(factors: tuple, B: Array) -> Array:
    return np.array([solve_factored(factors, column) for column in B.T]).reshape(B.T.shape).T


def solve_tridiagonal(diagonal: Sequence[Array], lower: Sequence[Array], right: Sequence[Array]) -> list[Array]:
    """Return x of a symmetric positive definite block-tridiagonal system, by odd-even reduction.

        L_k x_(k-1) + D_k x_k + L_(k+1)^T x_(k+1) = r_k

    Every second unknown is eliminated at once, from equations that have no other of these; what is left is a system
    of the same form of half the size.

    Args:
        diagonal: D_k, (n_k, n_k). lower: L_k, (n_k, n_(k-1)), from the second on. right: r_k, (n_k,).
    """
    n = len(diagonal)
    if n == 0:
        return []
    factors = {k: factor_symmetric(diagonal[k]) for k in range(0, n, 2)}
    before = {k: _solved(factors[k], lower[k - 1]) for k in factors if k > 0}  # D^-1 L
    behind = {k: _solved(factors[k], lower[k].T) for k in factors if k + 1 < n}
    own = {k: solve_factored(factors[k], right[k]) for k in factors}
    kept = range(1, n, 2)
    D, L, r = [], [], []
    for k in kept:
        block, side = diagonal[k] - lower[k - 1] @ behind[k - 1], right[k] - lower[k - 1] @ own[k - 1]
        if k > 1:
            L.append(-(lower[k - 1] @ before[k - 1]))
        if k + 1 < n:
            block, side = block - lower[k].T @ before[k + 1], side - lower[k].T @ own[k + 1]
        D.append(mirror(block))
        r.append(side)
    found = dict(zip(kept, solve_tridiagonal(D, L, r), strict=True))
    for k in factors:
        x = own[k]
        x = x - before[k] @ found[k - 1] if k > 0 else x
        found[k] = x - behind[k] @ found[k + 1] if k + 1 < n else x
    return [found[k] for k in range(n)]
