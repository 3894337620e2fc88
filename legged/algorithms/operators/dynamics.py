"""What the operators are for: dynamics with forces at tips, closed chains, held bodies, and the inertia at a tip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legged.algorithms.links import base_bias, cross_force, cross_motion, links_at
from legged.algorithms.operators.spatial_operators import Points, SpatialOperators
from legged.dynamics.arguments import Wrenches, body_wrenches, finite, read
from legged.dynamics.kinematics import point_positions, point_twist_rates
from legged.dynamics.passive import friction_forces, spring_forces
from legged.dynamics.sweeps import outward
from legged.robot.configuration import scatter_add
from legged.robot.inertia import Inertia
from legged.robot.robot import Robot
from legged.spatial import Array, cross, factor_symmetric, join, mass_matrix, mirror, skew, solve_factored


def bias_forces(operators: SpatialOperators, v: Array, wrenches: Wrenches = None) -> Array:
    """Return C = H phi (M phi* a + b), (nv,): equation (4), gravity, friction and springs included.

    Args:
        operators: Of a robot at q. v: Velocity, (nv,). wrenches: As in `legged.bias_forces`.
    """
    robot, S = operators.robot, operators
    a, b = _quadratic(S, v, wrenches)
    own = [friction_forces(body, v) + spring_forces(body, S.q) for body in robot.bodies]
    return S.H @ (S.phi @ (S.M @ (S.phi.T @ a) + b)) + scatter_add(robot, own)


def _quadratic(S: SpatialOperators, v: Array, wrenches: Wrenches) -> tuple[Array, Array]:
    """Return (a, b), composite vectors: the links' accelerations and forces that are quadratic in their velocities."""
    robot, outside = S.robot, body_wrenches(S.robot, wrenches)
    t = (S.phi.T @ (S.H.T @ v)).reshape(-1, 6)
    a = [base_bias(links_at(robot, S.q), S.q, v)]
    for body in outward(robot):
        if body.parent >= 0:
            a.append(cross_motion(t[body.index], S.axes(body) @ v[body.v]))
    b = [cross_force(t_k, body.M @ t_k) for body, t_k in zip(robot.bodies, t, strict=True)]
    for k, w in outside.items():
        b[k] = b[k] - w
    return np.concatenate(a), np.concatenate(b)


def forward_dynamics(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
    """Return the acceleration under given forces, (nv,), by algorithm FD, in O(n).

        T'  = T - H phi (M phi* a + b)                              (14)
        qdd = (I - H psi K)* D^-1 (I - H psi K) T'                  (15)

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`; forces at tips are among the wrenches.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for joints that follow others and for gyroscopic rotors.

    Source: Rodriguez, Jain, Kreutz-Delgado 1991, equations (14), (15).
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    S = SpatialOperators(robot, q)
    return finite(robot, "the forward dynamics", S.mass_inverse @ (tau - bias_forces(S, v, wrenches)))


def tip_correction(operators: SpatialOperators, points: Points, forces: Array) -> Array:
    """Return what the joints accelerate by when tips push on the world, (nv,): equation (18), by lemma 4.

        - (I - H psi K)* D^-1 H psi B f

    Args:
        operators: Of a robot at q. points: The tips, (link, position (3,) [m] in link axes).
        forces: On the world, (6 tips,) or (tips, 6), [n; f] about each tip, world axes.
    """
    S = operators
    return -(S.whitening.T @ S.D_inverse @ S.H @ S.psi @ S.B(points)).apply(np.reshape(forces, -1))


def tip_mobility(operators: SpatialOperators, points: Points) -> Array:
    """Return Omega(0) = J M^-1 J*, (6 tips, 6 tips): the inverse of the inertia at the tips, by a recursion outward.

        Omega(k)    = psi*(p, k) Omega(p) psi(p, k) + H*(k) D^-1(k) H(k)             (20)
        Omega(i, j) = psi*(c, i) Omega(c) psi(c, j), where the ways to i and j part at c

    Args:
        operators: Of a robot at q. points: The tips, (link, position (3,) [m] in link axes); blocks in world axes.

    Source: Rodriguez, Jain, Kreutz-Delgado 1991, section 5.2; several tips of a tree after Kreutz-Delgado, Jain,
    Rodriguez, "Recursive formulation of operational space control", 1992.
    """
    S = operators
    B = S.B(points).matrix()
    bodies = [_body(S.robot, link) for link, _ in points]
    at = {k: B[6 * k : 6 * k + 6] for k in bodies}
    A, Omega = _mobilities(S, bodies)
    blocks = [
        [
            at[i].T[6 * m : 6 * m + 6] @ _between(S, A, Omega, i, j) @ at[j][:, 6 * n : 6 * n + 6]
            for n, j in enumerate(bodies)
        ]
        for m, i in enumerate(bodies)
    ]
    return mirror(np.block(blocks))


def _body(robot: Robot, link: str | int) -> int:
    return (robot.link(link) if isinstance(link, str) else robot.links[link]).body


def _mobilities(S: SpatialOperators, ends: list[int]) -> tuple[dict[int, Array], dict[int, Array]]:
    """Return psi*(p, k), (6, 6), and Omega(k), (6, 6), of all bodies on the ways to some."""
    needed = {k for end in ends for k in S.robot.ancestors(end)}
    A: dict[int, Array] = {}
    Omega: dict[int, Array] = {}
    for body in outward(S.robot):
        k = body.index
        if k not in needed:
            continue
        own = S.joint_mobility(body)
        if body.parent < 0:
            Omega[k] = own
            continue
        A[k] = np.array([S.received(body, S.X[k] @ column) for column in np.eye(6)]).T
        Omega[k] = mirror(A[k] @ Omega[body.parent] @ A[k].T + own)
    return A, Omega


def _between(S: SpatialOperators, A: dict[int, Array], Omega: dict[int, Array], i: int, j: int) -> Array:
    """Return Omega(i, j), (6, 6)."""
    way = S.robot.ancestors(j)
    parting = next(k for k in S.robot.ancestors(i) if k in way)
    block = Omega[parting]
    for k in reversed(S.robot.ancestors(i)[: S.robot.ancestors(i).index(parting)]):
        block = A[k] @ block
    for k in reversed(way[: way.index(parting)]):
        block = block @ A[k].T
    return block


def closed_chain(
    robot: Robot, q: Array, v: Array, tau: Array, first: tuple[str | int, Array], second: tuple[str | int, Array]
) -> tuple[Array, Array]:
    """Return (accelerations (nv,), force (6,)) of a robot whose two tips are one: cut there, and held by a force.

        f   = Lambda_c (alpha_2f - alpha_1f)                        (26)
        qdd = qdd_f + M^-1 (J_1 - J_2)* f                           (21), (23), (24)

    Lambda_c is the inverse of Omega_11 + Omega_22 - Omega_12 - Omega_21; for two arms on a base that cannot move the
    last two vanish, as in the paper.

    Args:
        robot: The spanning tree. q, v, tau: Its state and joint forces, where the two tips meet and move alike.
        first, second: The tips, (link, position (3,) [m] in link axes).

    Returns:
        The accelerations, and the force on the first tip, [n; f], world axes; the second bears the opposite.

    Raises:
        SingularError: where the loop is singular. Others as in `forward_dynamics`.

    Source: Rodriguez, Jain, Kreutz-Delgado 1991, section 5.3.
    """
    tips = [first, second]
    S, free, alpha, Omega = _freed(robot, q, v, tau, tips)
    gap = np.array([np.eye(6), -np.eye(6)]).reshape(12, 6)
    f = _solved(gap.T @ Omega @ gap, -(gap.T @ alpha))
    vdot = free - tip_correction(S, tips, gap @ f)
    return finite(robot, "the closed chain", vdot), finite(robot, "the closed chain", f)


@dataclass(frozen=True, eq=False)
class HeldBody:
    """A rigid body that several tips hold.

    Attributes:
        inertia: In axes that are the world's at this instant, about `position`.
        position: Where its frame is, (3,), [m], world axes.
        omega: Its angular velocity, (3,), [rad/s], world axes.
    """

    inertia: Inertia
    position: Array
    omega: Array


def holding(robot: Robot, q: Array, v: Array, tau: Array, tips: Points, held: HeldBody) -> tuple[Array, Array, Array]:
    """Return (accelerations (nv,), forces (tips, 6), the body's acceleration (6,)) of arms that hold a body rigidly.

        (M_o + A* Omega^-1 A) alpha_o = A* Omega^-1 (alpha_f - gamma) - b_o

    The arms' tips accelerate by A alpha_o + gamma; what they meet is the effective inertia of body and arms.

    Args:
        robot: The arms as one tree. q, v, tau: Its state and joint forces. tips: (link, position (3,) [m] link axes).
        held: The body; gravity acts on it as on the robot.

    Returns:
        Accelerations; forces on the tips, [n; f] about each, world axes; [omega dot; acceleration] of the body's frame.

    Raises:
        SingularError: where an arm is singular and cannot hold all six ways.

    Source: Rodriguez, Jain, Kreutz-Delgado 1991, sections 5.3 and 6; Rodriguez 1989.
    """
    S, free, alpha, Omega = _freed(robot, q, v, tau, tips)
    arms = point_positions(robot, q, list(tips)) - held.position
    A = np.concatenate([np.block([[np.eye(3), np.zeros((3, 3))], [-skew(r), np.eye(3)]]) for r in arms])
    gamma = np.concatenate([join(np.zeros(3), cross(held.omega, cross(held.omega, r))) for r in arms])
    body = held.inertia
    M_o = mass_matrix(body.mass, body.mass * np.asarray(body.center), body.about_origin)
    spin = join(held.omega, np.zeros(3))
    b_o = cross_force(spin, M_o @ spin) - M_o @ join(np.zeros(3), robot.gravity)
    factors = factor_symmetric(Omega)
    stiff = np.array([solve_factored(factors, column) for column in A.T]).T
    alpha_o = _solved(M_o + A.T @ stiff, stiff.T @ (alpha - gamma) - b_o)
    forces = solve_factored(factors, A @ alpha_o + gamma - alpha)
    vdot = finite(robot, "the arms that hold a body", free - tip_correction(S, tips, forces))
    return vdot, forces.reshape(-1, 6), alpha_o


def standing(robot: Robot, q: Array, v: Array, tau: Array, feet: Points) -> tuple[Array, Array]:
    """Return (accelerations (nv,), forces (feet, 3) [N] world) of a robot whose feet are points that stay in place.

    The ground is a held body of infinite inertia, and a point foot bears no moment:

        f = - Omega^-1 alpha_f, of the feet's three directions

    Args:
        robot: The robot. q, v, tau: Its state and joint forces. feet: (link, position (3,) [m] in link axes).

    Raises:
        SingularError: where the feet's forces are not determined, as those of stretched legs.
    """
    S, free, alpha, Omega = _freed(robot, q, v, tau, feet)
    linear = [6 * k + i for k in range(len(feet)) for i in (3, 4, 5)]
    f = _solved(Omega[np.ix_(linear, linear)], -alpha[linear])
    wrenches = np.concatenate([join(np.zeros(3), part) for part in f.reshape(-1, 3)])
    vdot = finite(robot, "the standing robot", free - tip_correction(S, feet, wrenches))
    return vdot, f.reshape(-1, 3)


def _freed(robot: Robot, q: Array, v: Array, tau: Array, tips: Points) -> tuple[SpatialOperators, Array, Array, Array]:
    """Return (operators, free accelerations (nv,), those of the tips (6 tips,), Omega (6 tips, 6 tips))."""
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    S = SpatialOperators(robot, q)
    free = S.mass_inverse @ (tau - bias_forces(S, v))
    alpha = point_twist_rates(robot, q, v, free, list(tips)).reshape(-1)
    return S, free, alpha, tip_mobility(S, tips)


def _solved(A: Array, b: Array) -> Array:
    return solve_factored(factor_symmetric(mirror(A)), b)
