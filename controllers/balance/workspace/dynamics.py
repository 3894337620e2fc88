"""Workspace dynamics: the articulated inertia and bias of the trunk over standing feet, algorithms 1 to 3 of Wendlandt.

`WorkspaceController` computes with them the wrench that gives the trunk a desired acceleration. Algorithms 1 and 2 are
the outward pass (`outward_pass`): positions, velocities and bias forces of all bodies. Algorithm 3 is the inward pass
(`inward_pass`), with feet fixed by bodies of large mass (`add_big_bases`), or exactly (`constrain_feet`).

"The paper" is Wendlandt 1997.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from controllers.balance.workspace.feet import StanceFoot
from legged.compiler.ir import stage
from legged.dynamics.inertia import JointFactors, eliminate
from legged.dynamics.modules import base_rate, inward, joint_rate, newton_euler, outward, transforms
from legged.dynamics.passive import rotor_forces, spring_forces, velocity_forces
from legged.robot.body import Body
from legged.robot.inertia import Inertia
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, cross, factor_symmetric, join, mirror, solve_factored

STAGE_1 = "1 initialization"
STAGE_2 = "2 velocities"
STAGE_3 = "3 workspace dynamics"
_COMPLIANCE = 1e-13  # of feet, over the robot's mass at 1 m; keeps the constraint matrix regular at singular legs

JointTorque = Callable[[Body, Array, Array], Array]
"""Torque of a joint that leads to no standing foot, (nv of the joint,), as a function of the joint's body, the inertia
D at the joint, and the torque for zero acceleration relative to the parent."""


class OutwardPass(NamedTuple):
    """Results of the outward pass, one entry per body.

    Attributes:
        X: Transform from the parent, A of the paper.
        R: Rotation from body axes to base axes, (3, 3).
        o: Position of the body's origin, (3,), [m], base axes.
        t: Twist, V of the paper, (6,), body axes.
        td: Time derivative of the twist at vdot = 0 with gravity as an upward acceleration, (6,), body axes: the sum
            of the paper's a over the joints from the base to the body.
        gravity: Gravitational acceleration as a rate of twist, (6,), body axes.
        z: Bias force b + M td of the paper, (6,), body axes.
        f: Friction, spring and rotor forces at the joint, (nv of the joint,).
    """

    X: list[Transform]
    R: list[Array]
    o: list[Array]
    t: list[Array]
    td: list[Array]
    gravity: list[Array]
    z: list[Array]
    f: list[Array]

    def bias_acceleration(self, body: int, r: Array) -> Array:
        """Return [omega dot; c] of a body at vdot = 0, (6,), [rad/s^2, m/s^2], body axes.

        The acceleration of the point at r, without gravity, is c + omega dot x r; c includes the centripetal term.

        Args:
            body: Index of the body.
            r: Position of the point, (3,), [m], body axes.
        """
        omega = self.t[body][:3]
        return self.td[body] + self.gravity[body] + join(np.zeros(3), cross(omega, cross(omega, r)))


def outward_pass(robot: Robot, q: Array, v: Array) -> OutwardPass:
    """Return positions, twists and bias forces of all bodies: algorithms 1 and 2.

        V_k = A V + H qd,      a_k = Ad V + Hd qd,      b_k = Omega M V - F^e

    The paper adds P a in the inward pass. Here a and gravity are summed in the outward pass, td_k = A td + a_k, so that
    z_k = b_k + M_k td_k is one Newton-Euler step. Both forms give the same workspace dynamics.

    Args:
        robot: The robot.
        q: Configuration, (nq,).
        v: Velocity, (nv,).

    Source:
        Wendlandt 1997, algorithms 1 and 2.
    """
    with stage(STAGE_1):
        X = transforms(robot, q)
        R_0, _ = robot.base.pose(q)
        gravity = R_0.T @ robot.gravity
        start = base_rate(robot, q, v)
    motion = OutwardPass(X, [np.eye(3)], [np.zeros(3)], [start[0]], [start[1]], [], [], [])
    for body in outward(robot):
        with stage(STAGE_1 if body.is_base else STAGE_2):
            if not body.is_base:
                _append_motion(motion, body, q, v)
            k = body.index
            motion.gravity.append(join(np.zeros(3), motion.R[k].T @ gravity))
            moment, force = rotor_forces(body, v, None, motion.t[k], motion.td[k])
            motion.z.append(newton_euler(body.regrouped, motion.t[k], motion.td[k]) + join(moment, np.zeros(3)))
            motion.f.append(force + velocity_forces(body, v) + spring_forces(body, q))
    return motion


def _append_motion(motion: OutwardPass, body: Body, q: Array, v: Array) -> None:
    t, td = joint_rate(body, q, v, None, motion.t[body.parent], motion.td[body.parent])
    R, o = motion.X[body.index].child_pose(motion.R[body.parent], motion.o[body.parent])
    for values, value in zip((motion.R, motion.o, motion.t, motion.td), (R, o, t, td), strict=True):
        values.append(value)


class WorkspaceDynamics(NamedTuple):
    """Results of the inward pass.

    Attributes:
        P: Workspace inertia of the central body, (6, 6), about its origin in its axes.
        z: Workspace bias force, (6,), about its origin in its axes. A wrench F on the central body gives it the
            acceleration td = [omega dot; acceleration of the origin] with F = P td + z.
        factors: Factors of each joint, as in forward dynamics.
        phi: Acceleration of each joint for a parent without acceleration, D^-1 (tau - f - H^T z).
        tau: Torque of each joint from `joint_torque`.
    """

    P: Array
    z: Array
    factors: dict[int, JointFactors]
    phi: dict[int, Array]
    tau: dict[int, Array]


def add_big_bases(
    out: OutwardPass, robot: Robot, feet: Sequence[StanceFoot], loads: Sequence[Any], central: Inertia, big: float
) -> tuple[list[Array], list[Array]]:
    """Return (P, z) of each single body, with a large mass at each standing foot: initialization of algorithm 3.

        P_k = M_k + c M_1,      z_k = c M_1 a_k

    The paper replaces the mass of a foot by c M_1. Adding it is equivalent for large c, and also valid for contact
    points on a shank and for feet in the air. The large mass has no weight and no Coriolis forces, as in the paper.

    Args:
        out: The outward pass.
        robot: The robot.
        feet: The feet that may stand.
        loads: 1 for each standing foot, 0 for each foot in the air.
        central: M_1, inertia of the central body.
        big: c, 10^6 in the paper.
    """
    P, z = [body.regrouped.M for body in robot.bodies], list(out.z)
    with stage(STAGE_3):
        for foot, load in zip(feet, loads, strict=True):
            k, base = foot.body, (big * load) * foot.big_base(central)
            P[k] = P[k] + base
            z[k] = z[k] + base @ out.bias_acceleration(k, foot.body_position)
    return P, z


def inward_pass(
    robot: Robot, out: OutwardPass, P: list[Array], z: list[Array], joint_torque: JointTorque
) -> WorkspaceDynamics:
    """Return the articulated inertia and bias force of the central body: algorithm 3.

        D = H^T P H,   L = 1 - H D^-1 H^T P,   P_i += A^T L^T P L A,   z_i += A^T L^T z

    for each joint between an outer link k.o and an inner link k.i. Torques of joints that lead to no standing foot,
    joint friction, springs and rotors are added to the paper's terms.

    Args:
        robot: The robot.
        out: The outward pass.
        P: Inertia of each single body, (6, 6), mixed units, about its origin in body axes.
        z: Bias force of each single body, (6,), [N m, N], about its origin in body axes.
        joint_torque: Torque of joints that lead to no standing foot.

    Source:
        Wendlandt 1997, algorithm 3.
    """
    P, z = list(P), list(z)
    dynamics = WorkspaceDynamics(np.zeros((6, 6)), np.zeros(6), {}, {}, {})
    with stage(STAGE_3):
        for body in inward(robot):
            k = body.index
            if body.is_base:
                continue
            H, X = body.P, out.X[k]
            factors, remaining = eliminate(body, P[k], body.rotor_inertia)
            D = H.T @ (P[k] @ H + body.rotor_momentum) + body.rotor_inertia
            hold = out.f[k] + H.T @ z[k]
            dynamics.tau[k] = joint_torque(body, D, hold)
            phi_hat = dynamics.tau[k] - hold
            dynamics.factors[k], dynamics.phi[k] = factors, solve_factored(factors.I_hat, phi_hat)
            P[body.parent] = P[body.parent] + X.transform_inertia(remaining)
            z[body.parent] = z[body.parent] + X.T @ (z[k] + factors.Psi @ phi_hat)
        central = robot.bodies[0]
        if central.has_turning_armature or central.has_friction:  # a floating base, whose armature has no weight
            P[0], z[0] = P[0] + central.reflected_inertia, z[0] + out.f[0]
        return dynamics._replace(P=mirror(P[0]), z=z[0] - P[0] @ (out.td[0] + out.gravity[0]))


def constrain_feet(
    robot: Robot, out: OutwardPass, free: WorkspaceDynamics, feet: Sequence[StanceFoot], loads: Sequence[Any]
) -> WorkspaceDynamics:
    """Return the workspace dynamics of feet that do not accelerate, from those of feet in the air.

    A unit force on foot i has the effect chi_i on the central body, and accelerates foot j by Omega_ij while the
    central body is fixed. The forces lambda of feet without acceleration satisfy chi^T td + Omega lambda + beta = 0, so

        P = P_free + chi Omega^-1 chi^T,      z = z_free + chi Omega^-1 beta

    Omega has one block per limb. It is singular where a leg cannot move its foot in all directions. A compliance of the
    feet limits P there.

    Args:
        robot: The robot.
        out: The outward pass.
        free: The inward pass without large masses at the feet.
        feet: The feet that may stand.
        loads: 1 for each standing foot, 0 for each foot in the air.

    Source:
        The operational-space recursion of Kreutz-Delgado, Jain, Rodriguez 1992, for several feet.
    """
    with stage(STAGE_3):
        chi, Omega, beta = _foot_space_terms(robot, out, free, feet)
        standing = np.array([load for foot, load in zip(feet, loads, strict=True) for _ in foot.rows])
        matrix = mirror(np.outer(standing, standing) * Omega) + np.diag(1.0 - standing + _COMPLIANCE / robot.mass)
        factors = factor_symmetric(matrix)
        columns = np.array([standing * solve_factored(factors, standing * row) for row in chi]).T
        P = mirror(free.P + chi @ columns)
        return free._replace(P=P, z=free.z + columns.T @ (beta - chi.T @ (out.td[0] + out.gravity[0])))


def _foot_space_terms(
    robot: Robot, out: OutwardPass, free: WorkspaceDynamics, feet: Sequence[StanceFoot]
) -> tuple[Array, Array, Array]:
    """Return (chi, Omega, beta) of all feet, (6, rows), (rows, rows) and (rows,)."""
    bounds = np.cumsum([0, *(len(foot.rows) for foot in feet)])
    size = int(bounds[-1])
    pending: dict[int, list[tuple[slice, Array]]] = {body.index: [] for body in robot.bodies}
    beta: list[Any] = []
    for foot, start, stop in zip(feet, bounds, bounds[1:], strict=False):
        pending[foot.body].append((slice(int(start), int(stop)), foot.wrench_basis))
        beta += list(foot.wrench_basis.T @ out.bias_acceleration(foot.body, foot.body_position))
    Omega = np.zeros((size, size), dtype=object)
    for body in inward(robot):
        if not body.is_base:
            _propagate(body, out, free, pending, Omega, beta)
    chi = np.zeros((6, size), dtype=object)
    for rows, columns in pending[0]:
        chi[:, rows] = columns
    return _as_floats(chi), _as_floats(Omega), _as_floats(np.array(beta))


def _propagate(
    body: Body, out: OutwardPass, free: WorkspaceDynamics, pending: dict, Omega: Array, beta: list[Any]
) -> None:
    """Propagate forces of feet across a joint to its parent, and add their effect at the joint to Omega and beta."""
    k, parts = body.index, []
    for rows, columns in pending[k]:
        y = body.P.T @ columns  # (nv of the joint, rows)
        accelerations = np.array([solve_factored(free.factors[k].I_hat, column) for column in y.T]).T
        parts.append((rows, y, accelerations))
        for i in range(rows.start, rows.stop):
            beta[i] = beta[i] + y[:, i - rows.start] @ free.phi[k]
        remaining = columns - free.factors[k].Psi @ y
        pending[body.parent].append((rows, np.array([out.X[k].T @ column for column in remaining.T]).T))
    for rows, y, _ in parts:
        for others, _, accelerations in parts:
            Omega[rows, others] = Omega[rows, others] + y.T @ accelerations


def _as_floats(array: Array) -> Array:
    """Return an object array that holds only numbers as an array of floats."""
    return array.astype(float) if all(isinstance(x, (int, float)) for x in array.flat) else array
