"""The constraint-force algorithm: forward dynamics of unbranched chains from a block-tridiagonal system.

    T^T I^-1 T beta = T^T a_0 - T^T I^-1 (f_a - v x I v)          (28)

The constraint force of a joint couples with those of its two neighbors alone. Odd-even reduction solves such a system
in a number of steps that grows with the logarithm of the number of bodies.

Source: Fijany, Sharf, D'Eleuterio 1995; in the form of Featherstone, Fijany, "A technique for analyzing constrained
rigid-body systems and its application to the constraint force algorithm", IEEE Transactions on Robotics and Automation
15(6), 1999, for joints of any kind and floating bases.
"""

from __future__ import annotations

from collections.abc import Sequence

from legged.algorithms.linear_algebra import solve_columns
from legged.algorithms.links import transform_forces
from legged.algorithms.sparse_system import JointConstraint, body_forces, joint_accelerations, joint_constraints
from legged.compiler.ir.annotations import item, stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored

ALGORITHM = "the constraint-force algorithm"


def forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
    """Return the acceleration of an unbranched chain under given generalized forces, (nv,), by equation (28).

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for branches, joints that follow others, armature and rotors, and
        massless bodies at the end.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    with stage("1 bodies and constraints"):
        joints, a_0 = joint_constraints(robot, q, v, tau, wrenches, ALGORITHM, in_parallel=True)
        _refuse_branches(robot, joints)
    with stage("2 system"):
        inertia = [factor_symmetric(joint.body.I) for joint in joints]
        a_free = [solve_factored(factors, r) for factors, r in zip(inertia, body_forces(joints), strict=True)]
        diagonal, lower, right = _system(joints, inertia, a_free, a_0)
    with stage("3 constraint forces"):
        beta = solve_tridiagonal(diagonal, lower, right)
    with stage("4 accelerations"):
        f = [joint.T @ b for joint, b in zip(joints, beta, strict=True)]
        total = [own - joints[k + 1].body.X.T @ f[k + 1] if k + 1 < len(f) else own for k, own in enumerate(f)]
        a = [own + solve_factored(factors, w) for own, factors, w in zip(a_free, inertia, total, strict=True)]
    return finite(robot, "the forward dynamics", joint_accelerations(robot, joints, a, a_0))


def _refuse_branches(robot: Robot, joints: Sequence[JointConstraint]) -> None:
    for k, joint in enumerate(joints):
        if joint.body.parent != k - 1:
            name = robot.bodies[joint.body.index].name
            raise DefinitionError(
                f"{ALGORITHM} requires a chain without branches, but {name!r} does not follow the body before it; use "
                f"sparse_system or divide_and_conquer for trees"
            )


def _system(
    joints: Sequence[JointConstraint], inertia: Sequence[tuple], a_free: Sequence[Array], a_0: Array
) -> tuple[list[Array], list[Array], list[Array]]:
    """Return the blocks of (28): on the diagonal, left of it (from the second joint on), and on the right side."""
    diagonal, lower, right = [], [], []
    for k, joint in enumerate(joints):
        with item(joint.body.index):
            T, X = joint.T, joint.body.X
            block = T.T @ solve_columns(inertia[k], T)
            a_parent = X @ (a_free[k - 1] if k else a_0) + joint.body.c
            if k:
                T_parent = transform_forces(X, T)
                inverse_T = solve_columns(inertia[k - 1], T_parent)
                block = block + T_parent.T @ inverse_T
                lower.append(-(inverse_T.T @ joints[k - 1].T))
            diagonal.append(mirror(block) if len(block) else block)
            right.append(T.T @ (a_parent - a_free[k]))
    return diagonal, lower, right


def solve_tridiagonal(diagonal: Sequence[Array], lower: Sequence[Array], right: Sequence[Array]) -> list[Array]:
    """Return x of a symmetric positive definite block-tridiagonal system, (n_k,) each, by odd-even reduction.

        L_k x_(k-1) + D_k x_k + L_(k+1)^T x_(k+1) = r_k

    The even-numbered unknowns do not couple with each other and are eliminated at once. The Schur complement is a
    system of the same form and half the size.

    Args:
        diagonal: D_k, (n_k, n_k), any unit.
        lower: L_k, (n_k, n_(k-1)), any unit, from the second on.
        right: r_k, (n_k,), any unit.
    """
    n = len(diagonal)
    if n == 0:
        return []
    factors = {k: factor_symmetric(diagonal[k]) for k in range(0, n, 2)}
    before = {k: solve_columns(factors[k], lower[k - 1]) for k in factors if k > 0}  # D^-1 L
    after = {k: solve_columns(factors[k], lower[k].T) for k in factors if k + 1 < n}
    own = {k: solve_factored(factors[k], right[k]) for k in factors}
    odd = range(1, n, 2)
    D, L, r = [], [], []
    for k in odd:
        block, side = diagonal[k] - lower[k - 1] @ after[k - 1], right[k] - lower[k - 1] @ own[k - 1]
        if k > 1:
            L.append(-(lower[k - 1] @ before[k - 1]))
        if k + 1 < n:
            block, side = block - lower[k].T @ before[k + 1], side - lower[k].T @ own[k + 1]
        D.append(mirror(block))
        r.append(side)
    x = dict(zip(odd, solve_tridiagonal(D, L, r), strict=True))
    for k in factors:
        even = own[k] - before[k] @ x[k - 1] if k > 0 else own[k]
        x[k] = even - after[k] @ x[k + 1] if k + 1 < n else even
    return [x[k] for k in range(n)]
