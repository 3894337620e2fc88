"""Dynamics by spatial operators: tip forces, closed chains, fixed feet, tip inertia, diagonalized equations."""

from __future__ import annotations

import numpy as np

from legged import taylor
from legged.algorithms.links import base_bias, links_at
from legged.algorithms.operators.operator import LinearOperator
from legged.algorithms.operators.spatial_operators import Points, SpatialOperators
from legged.dynamics.arguments import Wrenches, body_wrenches, finite, read
from legged.dynamics.kinematics import on_bodies, point_twist_rates
from legged.dynamics.modules import outward
from legged.dynamics.passive import spring_forces, velocity_forces
from legged.elements import any_element
from legged.moving_coordinates import cross_force, cross_motion
from legged.robot.configuration import configuration_rate, scatter, scatter_add
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, join, mirror, solve_factored


@any_element
def bias_forces(operators: SpatialOperators, v: Array, wrenches: Wrenches = None) -> Array:
    """Return C = H phi (M phi* a + b), (nv,): equation (4), including gravity, friction and springs.

    Args:
        operators: The robot's, at q. v: Velocity, (nv,). wrenches: As in `legged.bias_forces`.
    """
    robot, S = operators.robot, operators
    a, b = _quadratic(S, v, wrenches)
    passive = [velocity_forces(body, v) + spring_forces(body, S.q) for body in robot.bodies]
    return S.H @ (S.phi @ (S.M @ (S.phi.T @ a) + b)) + scatter_add(robot, passive)


def _quadratic(S: SpatialOperators, v: Array, wrenches: Wrenches) -> tuple[Array, Array]:
    """Return (a, b), composite vectors: accelerations and forces of the bodies at vdot = 0, quadratic in velocity."""
    robot, external = S.robot, body_wrenches(S.robot, wrenches)
    t = (S.phi.T @ (S.H.T @ v)).reshape(-1, 6)
    a = [base_bias(links_at(robot, S.q), S.q, v)]
    for body in outward(robot):
        if body.parent >= 0:
            a.append(cross_motion(t[body.index], S.axes(body) @ v[body.v]))
    b = [cross_force(t_k, body.M @ t_k) for body, t_k in zip(robot.bodies, t, strict=True)]
    for k, w in external.items():
        b[k] = b[k] - w
    return np.concatenate(a), np.concatenate(b)


@any_element
def filter_and_smoother(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
    """Return the acceleration under given generalized forces, (nv,), by algorithm FD, in O(n).

        T'  = T - H phi (M phi* a + b)                              (14)
        qdd = (I - H psi K)* D^-1 (I - H psi K) T'                  (15)

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`; `wrenches` includes forces at the tips.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for joints that follow others and for gyroscopic rotors.

    Source: Rodriguez, Jain, Kreutz-Delgado 1991, equations (14), (15).
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    S = SpatialOperators(robot, q)
    return finite(robot, "the forward dynamics", S.mass_inverse @ (tau - bias_forces(S, v, wrenches)))


forward_dynamics = filter_and_smoother
"""The name of the task, which is the same in the modules of all algorithms."""


@any_element
def tip_correction(operators: SpatialOperators, points: Points, forces: Array) -> Array:
    """Return the correction of vdot by forces of the tips on the world, (nv,): equation (18), by lemma 4.

        - (I - H psi K)* D^-1 H psi B f

    Args:
        operators: The robot's, at q. points: The tips, (link, position (3,) [m] in link axes).
        forces: On the world, (6 tips,) or (tips, 6), [n; f] about each tip, [N m] and [N], world axes.
    """
    S = operators
    return -(S.whitening.T @ S.D_inverse @ S.H @ S.psi @ S.B(points)).apply(np.reshape(forces, -1))


@any_element
def tip_mobility(operators: SpatialOperators, points: Points) -> Array:
    """Return Omega(0) = J M^-1 J*, (6 tips, 6 tips): the inverse operational-space inertia, by a recursion outward.

        Omega(k)    = psi*(p, k) Omega(p) psi(p, k) + H*(k) D^-1(k) H(k)             (20)
        Omega(i, j) = psi*(c, i) Omega(c) psi(c, j), where the paths to i and j branch at c

    Args:
        operators: The robot's, at q. points: The tips, (link, position (3,) [m] in link axes); blocks in world axes.

    Source: Rodriguez, Jain, Kreutz-Delgado 1991, section 5.2; several tips of a tree after Kreutz-Delgado, Jain,
    Rodriguez, "Recursive formulation of operational space control", 1992.
    """
    S = operators
    B = S.B(points).matrix()
    bodies = [k for k, _ in on_bodies(S.robot, points)]
    at = {k: B[6 * k : 6 * k + 6] for k in bodies}
    A, Omega = _mobilities(S, bodies)
    blocks = [
        [
            at[i].T[6 * m : 6 * m + 6] @ _between(S, A, Omega, i, j) @ at[j][:, 6 * n : 6 * n + 6]
            for n, j in enumerate(bodies)
        ]
        for m, i in enumerate(bodies)
    ]
    return mirror(np.block(blocks)) if blocks else np.zeros((0, 0))


def _mobilities(S: SpatialOperators, ends: list[int]) -> tuple[dict[int, Array], dict[int, Array]]:
    """Return psi*(p, k), (6, 6), and Omega(k), (6, 6), of all bodies on the paths to the ends."""
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
    path_i, path_j = S.robot.ancestors(i), S.robot.ancestors(j)
    common = next(k for k in path_i if k in path_j)
    block = Omega[common]
    for k in reversed(path_i[: path_i.index(common)]):
        block = A[k] @ block
    for k in reversed(path_j[: path_j.index(common)]):
        block = block @ A[k].T
    return block


@any_element
def closed_chain(
    robot: Robot, q: Array, v: Array, tau: Array, first: tuple[str | int, Array], second: tuple[str | int, Array]
) -> tuple[Array, Array]:
    """Return (vdot (nv,), force (6,)) of a robot whose two tips are rigidly joined, by cutting the chain there.

        f   = Lambda_c (alpha_2f - alpha_1f)                        (26)
        qdd = qdd_f + M^-1 (J_1 - J_2)* f                           (21), (23), (24)

    Lambda_c is the inverse of Omega_11 + Omega_22 - Omega_12 - Omega_21; for two arms on a fixed base the last two
    terms vanish, as in the paper.

    Args:
        robot, q, v, tau: As in `legged.forward_dynamics`, of the spanning tree; the tips must coincide and have equal
            velocities.
        first, second: The tips, (link, position (3,) [m] in link axes).

    Returns:
        vdot, and the wrench on the first tip, [n; f], world axes; the second tip bears the opposite.

    Raises:
        SingularError: if Lambda_c does not exist. Others as in `filter_and_smoother`.

    Source: Rodriguez, Jain, Kreutz-Delgado 1991, section 5.3.
    """
    tips = [first, second]
    S, vdot_free, alpha, Omega = free_motion(robot, q, v, tau, tips)
    gap = np.array([np.eye(6), -np.eye(6)]).reshape(12, 6)
    f = _solve(gap.T @ Omega @ gap, -(gap.T @ alpha))
    vdot = vdot_free - tip_correction(S, tips, gap @ f)
    return finite(robot, "the closed chain", vdot), finite(robot, "the closed chain", f)


@any_element
def fixed_point_feet(robot: Robot, q: Array, v: Array, tau: Array, feet: Points) -> tuple[Array, Array]:
    """Return (vdot (nv,), forces (feet, 3) [N] world axes) of a robot whose point feet do not accelerate.

    The ground is a grasped body of infinite inertia, and a point foot transmits no moment:

        f = - Omega^-1 alpha_f, of the feet's three directions

    Args:
        robot, q, v, tau: As in `legged.forward_dynamics`. feet: (link, position (3,) [m] in link axes).

    Raises:
        SingularError: If the forces at the feet are not determined, as with stretched legs.
    """
    S, vdot_free, alpha, Omega = free_motion(robot, q, v, tau, feet)
    linear = [6 * k + i for k in range(len(feet)) for i in (3, 4, 5)]
    f = _solve(Omega[np.ix_(linear, linear)], -alpha[linear])
    wrenches = np.concatenate([join(np.zeros(3), part) for part in f.reshape(-1, 3)])
    vdot = finite(robot, "the robot on fixed feet", vdot_free - tip_correction(S, feet, wrenches))
    return vdot, f.reshape(-1, 3)


@any_element
def free_motion(
    robot: Robot, q: Array, v: Array, tau: Array, tips: Points
) -> tuple[SpatialOperators, Array, Array, Array]:
    """Return (operators, vdot without tip forces (nv,), tip accelerations (6 tips,), Omega (6 tips, 6 tips)).

    Args:
        robot, q, v, tau: As in `legged.forward_dynamics`. tips: (link, position (3,) [m] in link axes); twists and
            accelerations of tips are in world axes.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    S = SpatialOperators(robot, q)
    vdot_free = S.mass_inverse @ (tau - bias_forces(S, v))
    alpha = point_twist_rates(robot, q, v, vdot_free, list(tips)).reshape(-1)
    return S, vdot_free, alpha, tip_mobility(S, tips)


def _solve(A: Array, b: Array) -> Array:
    return solve_factored(factor_symmetric(mirror(A)), b)


# The diagonalized equations of motion, section 6 of Rodriguez, Jain and Kreutz-Delgado.


@any_element
def square_root(operators: SpatialOperators) -> LinearOperator:
    """Return the memoryless operator D^(1/2), with D^(1/2) D^(1/2)* = D, of a robot's operators."""
    S = operators
    blocks = {body.index: _cholesky(*S.joint_factors(body)) for body in S.robot.bodies}

    def apply(x: Array, transposed: bool) -> Array:
        parts = ((b.v, (blocks[b.index].T if transposed else blocks[b.index]) @ x[b.v]) for b in S.robot.bodies)
        return scatter(S.robot.nv, parts)

    return LinearOperator(S.robot.nv, S.robot.nv, lambda x: apply(x, False), lambda x: apply(x, True), "D^1/2")


def _cholesky(L: list, reciprocals: list) -> Array:
    """Return L diag(d)^(1/2) from the factors L diag(d) L^T."""
    n = len(reciprocals)
    unit = np.array([[1.0 if i == j else L[i][j] for j in range(n)] for i in range(n)]).reshape(n, n)
    return unit * np.sqrt(np.array([1.0 / r for r in reciprocals]))


@any_element
def residuals(operators: SpatialOperators, v: Array) -> Array:
    """Return nu = D^(1/2)* (I + H phi K)* v, (nv,), [sqrt(J)]: the kinetic energy is nu . nu / 2.

    Args:
        operators: The robot's, at q. v: Velocity, (nv,).
    """
    S = operators
    return square_root(S).T @ (S.innovations.T @ v)


@any_element
def innovations(operators: SpatialOperators, tau: Array) -> Array:
    """Return epsilon = D^(-1/2) (I - H psi K) tau, (nv,), [W / sqrt(J)]: nu . epsilon is the power of the forces.

    Args:
        operators: The robot's, at q. tau: Generalized forces, (nv,).

    Source: Rodriguez, Jain, Kreutz-Delgado 1991, section 6; they print phi for psi.
    """
    S = operators
    return square_root(S).T @ (S.D_inverse @ (S.whitening @ tau))


@any_element
def diagonal_bias(robot: Robot, q: Array, v: Array, wrenches: Wrenches = None) -> Array:
    """Return mu, (nv,), the bias of the diagonalized equations of motion nu_dot + mu = epsilon.

        mu = D^(-1/2) (I - H psi K) C - d/dt (D^(1/2)* (I + H phi K)*) v

    The time derivative is exact: the operators are evaluated on a Taylor series of the configuration in time. Without
    gravity and friction mu does no work, nu . mu = 0.

    Args:
        robot, q, v, wrenches: As in `legged.bias_forces`.
    """
    q, v = read(robot, q=q, v=v)
    S = SpatialOperators(robot, q)
    rate = configuration_rate(robot, q, v)
    moving = SpatialOperators(robot, taylor.moving(q, rate, 0.0 * rate))
    _, residual_rate, _ = taylor.derivatives(residuals(moving, v))
    return innovations(S, bias_forces(S, v, wrenches)) - residual_rate
