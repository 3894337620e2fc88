"""Torques for desired accelerations of base and feet: inverse kinematics of legs, minimum-norm force distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.gaits.leg import Leg
from legged.dynamics.kinematics import link_poses, point_jacobian, point_twist_rates
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.rotations import rotation_error
from legged.spatial import Array, factor_symmetric, mirror, solve_factored, solve_symmetric

_DAMPING = 1e-6  # of the least squares, for legs near a singularity
_HORIZONTAL_COMPLIANCE = 1e-3  # weight of changes of the base's horizontal acceleration against forces
_COMPLIANCE = 1e-7  # weight of changes of its angular and vertical acceleration


@dataclass(frozen=True, eq=False)
class LegContact:
    """A leg, its entries of v and its sole.

    Attributes:
        leg: Geometry of the leg.
        columns: Indices of its entries of v, (k,).
        contacts: Indices of its contact points in `robot.contacts`.
        link: Index of the link that carries them.
        sole: Mean of the contact points, (3,), [m], axes of that link.
    """

    leg: Leg
    columns: Array
    contacts: tuple[int, ...]
    link: int
    sole: Array


def leg_contacts(robot: Robot, legs: tuple[Leg, ...]) -> tuple[LegContact, ...]:
    """Return the legs with their contact points.

    Raises:
        DefinitionError: A leg has no contact points.
    """
    standing = []
    for leg in legs:
        columns = np.array(leg.columns) + robot.base.nv
        bodies = {body.index for body in robot.bodies if set(columns) & set(range(body.v.start, body.v.stop))}
        contacts = tuple(i for i, point in enumerate(robot.contacts) if robot.links[point.link].body in bodies)
        if not contacts:
            raise DefinitionError(f"leg {leg.name!r} of robot {robot.name!r} has no contact points to stand on")
        sole = np.mean([robot.contacts[i].position for i in contacts], axis=0)
        standing.append(LegContact(leg, columns, contacts, robot.contacts[contacts[0]].link, sole))
    return tuple(standing)


@dataclass(frozen=True, eq=False)
class LegAcceleration:
    """Joint accelerations of a leg as an affine function of the base's: qdd = constant + slope @ vdot_0.

    Attributes:
        constant: (k,), [rad/s^2], joint coordinates.
        slope: (k, n0), mixed units.
    """

    constant: Array
    slope: Array


def leg_acceleration(
    robot: Robot, leg: LegContact, q: Array, v: Array, sole: Array, attitude: tuple[float, float]
) -> LegAcceleration:
    """Return the joint accelerations that accelerate the sole as desired, and keep a flat foot level.

        J_0 vdot_0 + J_leg qdd + Jdot v = desired acceleration      (damped least squares)

    Args:
        robot: The robot.
        leg: The leg.
        q: Configuration, (nq,).
        v: Velocity, (nv,).
        sole: Desired acceleration of the sole, (3,), [m/s^2], world axes.
        attitude: Gains of the orientation of a flat foot, [1/s^2], [1/s].
    """
    point = (leg.link, leg.sole)
    J, bias = _sole_jacobian(robot, leg, q), point_twist_rates(robot, q, v, np.zeros(robot.nv), [point])[0]
    desired = sole - bias[3:]
    if leg.leg.flat_foot:
        rotation = link_poses(robot, q)[0][leg.link]
        level = -attitude[0] * rotation_error(rotation) - attitude[1] * (J[3:] @ v)
        desired = np.concatenate([desired, level - bias[:3]])
    J_leg, normal, slope = _solved(robot, leg, J)
    return LegAcceleration(solve_factored(normal, J_leg.T @ desired), slope)


def leg_slope(robot: Robot, leg: LegContact, q: Array) -> Array:
    """Return the `slope` of `leg_acceleration`, (k, n0), mixed units, which is also that of velocities.

    Args:
        robot: The robot. leg: The leg. q: Configuration, (nq,).
    """
    return _solved(robot, leg, _sole_jacobian(robot, leg, q))[2]


def _sole_jacobian(robot: Robot, leg: LegContact, q: Array) -> Array:
    """Return the Jacobian of the sole's position, (3, nv), and below it that of a flat foot's rotation, world axes."""
    J = point_jacobian(robot, q, leg.link, leg.sole)
    return np.concatenate([J[3:], J[:3]]) if leg.leg.flat_foot else J[3:]


def _solved(robot: Robot, leg: LegContact, J: Array) -> tuple[Array, Any, Array]:
    """Return (columns of the leg, factors of its damped normal equations, slope) of a Jacobian of the sole."""
    J_leg, J_0 = J[:, leg.columns], J[:, : robot.base.nv]
    normal = factor_symmetric(J_leg.T @ J_leg + _DAMPING * np.eye(len(leg.columns)))
    slope = [solve_factored(normal, -(J_leg.T @ column)) for column in J_0.T]
    return J_leg, normal, np.array(slope).T


def swing_acceleration(
    foot: Array,
    velocity: Array,
    landing: Array,
    time_left: Any,
    lift: tuple[Any, Any, Any],
    gains: tuple[float, float],
) -> Array:
    """Return the desired acceleration of a swinging sole, (3,), [m/s^2], world axes.

    The horizontal motion is the cubic polynomial that ends at rest at the landing position after the time left,
    recomputed at every evaluation. The vertical motion follows the planned height.

    Args:
        foot: Position of the sole, (3,), [m], world axes, with z over the support.
        velocity: Velocity of the sole, (3,), [m/s], world axes.
        landing: Landing position, (2,), [m], world axes.
        time_left: Time until landing, [s], positive.
        lift: Planned height, [m], its rate, [m/s], and its acceleration, [m/s^2].
        gains: Gains of the height, [1/s^2], [1/s].
    """
    horizontal = 6.0 * (landing - foot[:2]) / (time_left * time_left) - 4.0 * velocity[:2] / time_left
    height, rate, acceleration = lift
    vertical = acceleration + gains[0] * (height - foot[2]) + gains[1] * (rate - velocity[2])
    return np.array([horizontal[0], horizontal[1], vertical])


def distribute_forces(
    robot: Robot, q: Array, inertia: Array, tau: Array, slope: Array, weights: list[Any]
) -> tuple[Array, Array]:
    """Return (generalized forces (nv,), ground forces (n, 3), [N], world axes) of a motion, with none on the base.

    The desired motion needs the generalized forces `tau`, including those on the base, which has no motors. The ground
    forces f apply them,

        G f = tau_0 + W d,

    where d is a change of the base's acceleration, needed where no f exists for d = 0: two point feet bear no moment
    about the line between them, so the base must accelerate sideways. W is the inertia of the base with legs that
    follow it. f and d minimize the sum of |f|^2 over the supporting points and of d^2 over the base's compliances.

    Args:
        robot: The robot.
        q: Configuration, (nq,).
        inertia: Generalized inertia matrix, (nv, nv), mixed units.
        tau: I vdot + h of the desired motion without ground forces, (nv,).
        slope: d vdot / d vdot_0, (nv, n0), mixed units: identity for the base, `LegAcceleration.slope` for joints.
        weights: 1 for each supporting contact point, 0 for each other one, (n,).

    Source:
        The minimum-norm distribution is that of Wendlandt 1997, algorithm 5; the exact inertia and the change of the
        base's acceleration are ours.
    """
    n0 = robot.base.nv
    J = [point_jacobian(robot, q, point.link, point.position)[3:] for point in robot.contacts]
    G = np.concatenate([row[:, :n0].T for row in J], axis=1)
    supporting = np.array([k for k in weights for _ in range(3)])
    composite = inertia @ slope
    W, Q = composite[:n0], _base_compliance(robot, q)
    multipliers = solve_symmetric(mirror((G * supporting) @ G.T + W @ Q @ W.T), tau[:n0])
    forces = (supporting * (G.T @ multipliers)).reshape(-1, 3)
    unilateral = np.array([[f[0], f[1], np.maximum(f[2], 0.0)] for f in forces])
    total = tau - composite @ (Q @ (W.T @ multipliers))
    for row, f in zip(J, unilateral, strict=True):
        total = total - row.T @ f
    return np.concatenate([np.zeros(n0), total[n0:]]), unilateral


def _base_compliance(robot: Robot, q: Array) -> Array:
    """Return the weights of changes of the base's acceleration, (n0, n0), per squared mass."""
    R, _ = robot.base.pose(q)
    P = robot.base.motion_matrix(q)
    to_base = np.block([[R.T, np.zeros((3, 3))], [np.zeros((3, 3)), R.T]])
    to_v = np.array([solve_symmetric(P.T @ P, column) for column in (P.T @ to_base).T]).T
    compliance = np.array([*[_COMPLIANCE] * 3, *[_HORIZONTAL_COMPLIANCE] * 2, _COMPLIANCE]) / robot.mass**2
    return (to_v * compliance) @ to_v.T
