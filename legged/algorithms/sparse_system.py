"""The bodies' accelerations and the joints' constraint forces as one sparse system, solved in O(n) along the tree.

    [ I   T ] [   a   ]   [ f_a - v x I v ]
    [ T^T 0 ] [ -beta ] = [ T^T a_0       ]          (27)

Every body is a block of unknowns, every joint another, between its two bodies. Taken from the tips inward, each body
before the joint that holds it, blocks meet one other block alone when their turn comes: the elimination fills no zero.

Source: Featherstone, Orin 2000, section 3.5; the order is that of Baraff, "Linear-time dynamics using Lagrange
multipliers", SIGGRAPH 1996.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from legged.algorithms.complement import complement
from legged.algorithms.jointed import Jointed, gathered, jointed, rates
from legged.algorithms.links import links_at
from legged.algorithms.prefix import motions
from legged.compiler.ir.annotations import item, stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored

WHAT = "the sparse system of bodies and constraints"


@dataclass(frozen=True, eq=False)
class Constraint:
    """A joint as a constraint, T^T (a_i - X a_p - c) = 0, and the force f = T beta + active that it transmits.

    Attributes:
        body: The body that it carries, with the joint.
        T: Complement of the motion subspace, (6, 6 - d), with T^T h = 0.
        G: What takes accelerations across the joint to its rates, qdd = G^T (a_i - X a_p - c), (6, d).
        active: Force with h^T active = tau, (6,): what the motor gives.
    """

    body: Jointed
    T: Array
    G: Array
    active: Array


def constraints(
    robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches, what: str, *, in_parallel: bool = False
) -> tuple[list[Constraint], Array]:
    """Return (bodies with their joints as constraints, parent before child, acceleration of the ground (6,)).

    Args:
        robot, q, v, tau, wrenches, what: As in `jointed`. in_parallel: Velocities by doubling.

    Raises:
        DefinitionError: as `jointed`, and for armature and rotors: their forces are those of accelerations that
            the system does not have among its unknowns.
    """
    twists = motions(links_at(robot, q), q, v).twist if in_parallel else None
    bodies, a_0 = jointed(robot, q, v, tau, wrenches, what, twists=twists)
    if any(np.any(body.reflected_inertia) for body in bodies):
        raise DefinitionError(f"{what} has no joint accelerations, and so no place for armature and rotors")
    found = []
    for body in bodies:
        with item(body.index):
            factors = factor_symmetric(mirror(body.h.T @ body.h))
            G = np.array([solve_factored(factors, row) for row in body.h]).reshape(body.h.shape)
            found.append(Constraint(body, complement(body.h), G, G @ body.tau))
    return found, a_0


def forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
    """Return the acceleration under given forces, (nv,), by elimination of the sparse system (27), in O(n).

        body:   a_i  = I_i^-1 (T_i beta_i + r_i)
        joint:  beta = (T^T I_i^-1 T)^-1 T^T (X a_p + c - I_i^-1 r_i)

    What a joint's elimination leaves at its parent, X^T T (T^T I^-1 T)^-1 T^T X, is what the articulated-body algorithm
    finds as I^A - I^A h (h^T I^A h)^-1 h^T I^A: here from the side of the constraints.

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for what `constraints` refuses.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    with stage("1 bodies and constraints"):
        joints, a_0 = constraints(robot, q, v, tau, wrenches, WHAT)
    with stage("2 elimination"):
        I, r = [joint.body.I for joint in joints], right_sides(joints)
        held = _eliminated(joints, I, r)
    with stage("3 accelerations"):
        a: list[Array] = []
        for k, joint in enumerate(joints):
            body = joint.body
            driven = body.X @ (a_0 if body.parent < 0 else a[body.parent]) + body.c
            gap = joint.T.T @ driven - held[k].offset
            beta = solve_factored(held[k].stiffness, gap)
            a.append(solve_factored(held[k].inertia, r[k] + joint.T @ beta))
    return finite(robot, "the forward dynamics", joint_rates(robot, joints, a, a_0))


def right_sides(joints: Sequence[Constraint]) -> list[Array]:
    """Return what acts on each body without its constraints, (6,): -p, its own motor and those that it carries."""
    r = [joint.active - joint.body.p for joint in joints]
    for joint in joints:
        if joint.body.parent >= 0:
            r[joint.body.parent] = r[joint.body.parent] - joint.body.X.T @ joint.active
    return r


@dataclass(frozen=True, eq=False)
class _Eliminated:
    """A body and its joint after elimination.

    Attributes:
        inertia: Of the body and all outward of it, factored. stiffness: T^T I^-1 T, factored.
        offset: T^T I^-1 r, (6 - d,).
    """

    inertia: tuple
    stiffness: tuple
    offset: Array


def _eliminated(joints: Sequence[Constraint], I: list[Array], r: list[Array]) -> list[_Eliminated]:
    """Eliminate bodies and joints from the tips inward; `I` and `r` become those with all that they carry."""
    held: dict[int, _Eliminated] = {}
    for k in reversed(range(len(joints))):
        T, body = joints[k].T, joints[k].body
        with item(body.index):
            inertia = factor_symmetric(I[k])
            moved = np.array([solve_factored(inertia, column) for column in T.T]).reshape(T.T.shape)
            stiffness, offset = factor_symmetric(mirror(moved @ T)), moved @ r[k]
            held[k] = _Eliminated(inertia, stiffness, offset)
            if body.parent < 0:
                continue
            force = T @ solve_factored(stiffness, T.T @ body.c - offset)
            remaining = mirror(T @ np.array([solve_factored(stiffness, row) for row in T]).reshape(T.shape).T)
            I[body.parent] = I[body.parent] + body.X.transform_inertia(remaining)
            r[body.parent] = r[body.parent] - body.X.T @ force
    return [held[k] for k in range(len(joints))]


def joint_rates(robot: Robot, joints: Sequence[Constraint], a: Sequence[Array], a_0: Array) -> Array:
    """Return the joint accelerations, (nv,), from those of the bodies, (6,) each."""
    found = []
    for k, joint in enumerate(joints):
        body = joint.body
        found.append(joint.G.T @ (a[k] - body.X @ (a_0 if body.parent < 0 else a[body.parent]) - body.c))
    return rates(robot, [joint.body for joint in joints], found)


@dataclass(frozen=True, eq=False)
class System:
    """The system (27) as a matrix.

    Attributes:
        matrix: (m, m), symmetric. right: (m,).
        blocks: Of each unknown's rows, in the order of elimination: each body, then its joint, from the tips inward.
    """

    matrix: Array
    right: Array
    blocks: tuple[tuple[int, ...], ...]


def system(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> System:
    """Return the system (27), dense, its unknowns the bodies' accelerations and -beta, body by body.

    Args:
        robot, q, v, tau, wrenches: As in `forward_dynamics`, which refuses the same.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    joints, a_0 = constraints(robot, q, v, tau, wrenches, WHAT)
    n, sizes = len(joints), [joint.T.shape[1] for joint in joints]
    ends = 6 * n + np.cumsum([0, *sizes])
    A, b = np.zeros((ends[-1], ends[-1])), np.zeros(ends[-1])
    b[: 6 * n] = np.concatenate(right_sides(joints)) if joints else 0.0
    for k, joint in enumerate(joints):
        own, held, body = slice(6 * k, 6 * k + 6), slice(ends[k], ends[k + 1]), joint.body
        A[own, own], A[own, held], A[held, own] = body.I, joint.T, joint.T.T
        drive = body.c if body.parent >= 0 else body.c + body.X @ a_0
        b[held] = joint.T.T @ drive
        if body.parent >= 0:
            parent = slice(6 * body.parent, 6 * body.parent + 6)
            A[parent, held] = -gathered(body.X, joint.T)
            A[held, parent] = A[parent, held].T
    rows = [(range(6 * k, 6 * k + 6), range(ends[k], ends[k + 1])) for k in reversed(range(n))]
    return System(A, b, tuple(tuple(part) for pair in rows for part in pair))
