"""Body accelerations and joint constraint forces as one sparse linear system, solved in O(n) along the tree.

    [ I   T ] [   a   ]   [ f_a - v x I v ]
    [ T^T 0 ] [ -beta ] = [ T^T a_0       ]          (27)

Each body is a block of unknowns, and each joint is another, between its two bodies. In the elimination order from the
tips inward, each body before the joint that carries it, every block couples with one later block only, so that no
fill-in arises.

Source: Featherstone, Orin 2000, section 3.5; the order is that of Baraff, "Linear-time dynamics using Lagrange
multipliers", SIGGRAPH 1996.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.algorithms.linear_algebra import solve_rows
from legged.algorithms.links import links_at, transform_forces
from legged.algorithms.massive_bodies import (
    MassiveBody,
    generalized_accelerations,
    massive_bodies,
    parallel_prefix_motion,
)
from legged.compiler.ir import item, stage, where
from legged.dynamics.arguments import Wrenches, finite, read
from legged.elements import any_element
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored

ALGORITHM = "the sparse system of bodies and constraints"


@dataclass(frozen=True, eq=False)
class JointConstraint:
    """A joint as a constraint T^T (a_i - X a_p - c) = 0 with the transmitted force f = T beta + active.

    Attributes:
        body: The body outward of the joint.
        T: Constraint-force subspace, (6, 6 - d), orthonormal, with T^T h = 0.
        G: Matrix with qdd = G^T (a_i - X a_p - c), (6, d).
        active: Active joint force, (6,), in body coordinates, with h^T active = tau.
    """

    body: MassiveBody
    T: Array
    G: Array
    active: Array


@any_element
def joint_constraints(
    robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches, algorithm: str, *, in_parallel: bool = False
) -> tuple[list[JointConstraint], Array]:
    """Return (joints as constraints, parent before child; acceleration of the ground, (6,), in base coordinates).

    Args:
        robot, q, v, tau, wrenches, algorithm: As in `massive_bodies`.
        in_parallel: Compute velocities by recursive doubling instead of a sweep.

    Raises:
        DefinitionError: As `massive_bodies`; also for armature and rotors, whose forces depend on joint accelerations,
            which are not unknowns of the system.
    """
    twists = parallel_prefix_motion(links_at(robot, q), q, v).twist if in_parallel else None
    bodies, a_0 = massive_bodies(robot, q, v, tau, wrenches, algorithm, twists=twists)
    if any(body.reflected_inertia.dtype == object or body.reflected_inertia.any() for body in bodies):
        raise DefinitionError(
            f"{algorithm} does not support armature and rotors: joint accelerations are not among its unknowns"
        )
    joints = []
    for body in bodies:
        with item(body.index):
            G = solve_rows(factor_symmetric(mirror(body.h.T @ body.h)), body.h)
            joints.append(JointConstraint(body, orthogonal_complement(body.h), G, G @ body.tau))
    return joints, a_0


@any_element
def sparse_elimination(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
    """Return the acceleration under given generalized forces, (nv,), by elimination of the system (27), in O(n).

        body:   a_i  = I_i^-1 (T_i beta_i + r_i)
        joint:  beta = (T^T I_i^-1 T)^-1 T^T (X a_p + c - I_i^-1 r_i)

    The elimination of a joint adds X^T T (T^T I^-1 T)^-1 T^T X to the inertia of its parent. This equals the term
    I^A - I^A h (h^T I^A h)^-1 h^T I^A of the articulated-body algorithm, obtained from the constraints.

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for joints that follow others, armature and rotors, and massless
        bodies where the robot branches or ends.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    with stage("1 bodies and constraints"):
        joints, a_0 = joint_constraints(robot, q, v, tau, wrenches, ALGORITHM)
    with stage("2 elimination"):
        I, r = [joint.body.I for joint in joints], body_forces(joints)
        factors = _eliminate(joints, I, r)
    with stage("3 accelerations"):
        a: list[Array] = []
        for k, joint in enumerate(joints):
            body = joint.body
            a_parent = body.X @ (a_0 if body.parent < 0 else a[body.parent]) + body.c
            beta = solve_factored(factors[k].constraint, joint.T.T @ a_parent - factors[k].offset)
            a.append(solve_factored(factors[k].inertia, r[k] + joint.T @ beta))
    return finite(robot, "the forward dynamics", joint_accelerations(robot, joints, a, a_0))


forward_dynamics = sparse_elimination
"""The name of the task, which is the same in the modules of all algorithms."""


def body_forces(joints: Sequence[JointConstraint]) -> list[Array]:
    """Return the force on each body without constraint forces, (6,), body axes: -p and the active joint forces."""
    r = [joint.active - joint.body.p for joint in joints]
    for joint in joints:
        if joint.body.parent >= 0:
            r[joint.body.parent] = r[joint.body.parent] - joint.body.X.T @ joint.active
    return r


@dataclass(frozen=True, eq=False)
class _BlockFactors:
    """The factors of a body and its joint.

    Attributes:
        inertia: Inertia of the body after elimination of all descendants, factored.
        constraint: T^T I^-1 T, factored. offset: T^T I^-1 r, (6 - d,).
    """

    inertia: tuple
    constraint: tuple
    offset: Array


def _eliminate(joints: Sequence[JointConstraint], I: list[Array], r: list[Array]) -> list[_BlockFactors]:
    """Eliminate bodies and joints from the tips inward; adds their Schur complements to the entries of `I` and `r`."""
    factors: dict[int, _BlockFactors] = {}
    for k in reversed(range(len(joints))):
        T, body = joints[k].T, joints[k].body
        with item(body.index):
            inertia = factor_symmetric(I[k])
            inverse_T = solve_rows(inertia, T.T)
            constraint, offset = factor_symmetric(mirror(inverse_T @ T)), inverse_T @ r[k]
            factors[k] = _BlockFactors(inertia, constraint, offset)
            if body.parent < 0:
                continue
            force = T @ solve_factored(constraint, T.T @ body.c - offset)
            transmitted = mirror(T @ solve_rows(constraint, T).T)
            I[body.parent] = I[body.parent] + body.X.transform_inertia(transmitted)
            r[body.parent] = r[body.parent] - body.X.T @ force
    return [factors[k] for k in range(len(joints))]


@any_element
def joint_accelerations(robot: Robot, joints: Sequence[JointConstraint], a: Sequence[Array], a_0: Array) -> Array:
    """Return vdot, (nv,), from the accelerations of the bodies.

    Args:
        robot: The robot. joints: Its joints as constraints.
        a: Spatial acceleration of each body, (6,), mixed units, in body axes.
        a_0: Acceleration of the ground, (6,), mixed units, in base axes.
    """
    qdd = []
    for k, joint in enumerate(joints):
        body = joint.body
        qdd.append(joint.G.T @ (a[k] - body.X @ (a_0 if body.parent < 0 else a[body.parent]) - body.c))
    return generalized_accelerations(robot, [joint.body for joint in joints], qdd)


@dataclass(frozen=True, eq=False)
class SparseSystem:
    """The system (27) as a dense matrix.

    Attributes:
        matrix: (m, m), symmetric. right_side: (m,).
        blocks: Row numbers of each unknown in the order of elimination: each body, then its joint, from the tips
            inward.
    """

    matrix: Array
    right_side: Array
    blocks: tuple[tuple[int, ...], ...]


@any_element
def sparse_system(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> SparseSystem:
    """Return the system (27) as a dense matrix; its unknowns are the bodies' accelerations, then -beta, body by body.

    Args:
        robot, q, v, tau, wrenches: As in `sparse_elimination`, with the same errors.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    joints, a_0 = joint_constraints(robot, q, v, tau, wrenches, ALGORITHM)
    n, sizes = len(joints), [joint.T.shape[1] for joint in joints]
    starts = 6 * n + np.cumsum([0, *sizes])
    A, b = np.zeros((starts[-1], starts[-1])), np.zeros(starts[-1])
    b[: 6 * n] = np.concatenate(body_forces(joints)) if joints else 0.0
    for k, joint in enumerate(joints):
        own, rows, body = slice(6 * k, 6 * k + 6), slice(starts[k], starts[k + 1]), joint.body
        A[own, own], A[own, rows], A[rows, own] = body.I, joint.T, joint.T.T
        b[rows] = joint.T.T @ (body.c if body.parent >= 0 else body.c + body.X @ a_0)
        if body.parent >= 0:
            parent = slice(6 * body.parent, 6 * body.parent + 6)
            A[parent, rows] = -transform_forces(body.X, joint.T)
            A[rows, parent] = A[parent, rows].T
    pairs = [(range(6 * k, 6 * k + 6), range(starts[k], starts[k + 1])) for k in reversed(range(n))]
    return SparseSystem(A, b, tuple(tuple(block) for pair in pairs for block in pair))


@any_element
def orthogonal_complement(h: Array) -> Array:
    """Return T, (n, n - d), with orthonormal columns and T^T h = 0.

    T consists of the last columns of Q in the Householder factorization h = Q R. `where` chooses the signs of the
    reflections, so that there is neither cancellation nor a branch.

    Args:
        h: Matrix of full column rank, (n, d), any unit.
    """
    n, d = h.shape
    columns, Q = [list(column) for column in h.T], np.eye(n)
    for k in range(d):
        w = _householder_vector(_vector(columns[k][k:], h.dtype))
        if w is None:
            continue
        for m in range(k + 1, d):
            lower = _vector(columns[m][k:], h.dtype)
            columns[m][k:] = list(lower - w * (w @ lower))
        Q = np.concatenate([Q[:, :k], Q[:, k:] - np.outer(Q[:, k:] @ w, w)], axis=1)
    return Q[:, d:]


def _vector(entries: list[Any], dtype: Any) -> Array:
    return np.stack(entries) if np.dtype(dtype).hasobject else np.array(entries)


def _householder_vector(x: Array) -> Any:
    """Return w such that the reflection 1 - w w^T maps x to the first axis; None if x already lies on it."""
    if all(isinstance(entry, (int, float)) and entry == 0 for entry in x[1:]):
        return None
    length = np.sqrt(x @ x)
    first = x[0] + where(x[0] < 0, -length, length)
    u = np.concatenate([[first], x[1:]])
    return u * np.sqrt(2.0 / (u @ u))
