"""Legs as tasks: from where a sole should accelerate to how the leg's joints do, whatever the base does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.gaits.leg import Leg
from legged.dynamics.kinematics import link_poses, point_jacobian, point_twist_rates
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.rotations import rotation_error
from legged.spatial import Array, factor_symmetric, solve_factored

_DAMPING = 1e-6  # of the least squares, for legs near a singularity


@dataclass(frozen=True, eq=False)
class Limb:
    """A leg and its sole.

    Attributes:
        leg: Its geometry. columns: Its entries of v.
        contacts: Its contact points, indices of `robot.contacts`. link: The link that carries them.
        sole: The middle of the contact points, (3,), [m], axes of that link.
    """

    leg: Leg
    columns: Array
    contacts: tuple[int, ...]
    link: int
    sole: Array


def limbs_of(robot: Robot, legs: tuple[Leg, ...]) -> tuple[Limb, ...]:
    """Return the legs with their contact points; raises DefinitionError for a leg without."""
    limbs = []
    for leg in legs:
        columns = np.array(leg.columns) + robot.base.nv
        held = {body.index for body in robot.bodies if set(columns) & set(range(body.v.start, body.v.stop))}
        contacts = tuple(i for i, point in enumerate(robot.contacts) if robot.links[point.link].body in held)
        if not contacts:
            raise DefinitionError(f"leg {leg.name!r} of robot {robot.name!r} has no contact points to stand on")
        sole = np.mean([robot.contacts[i].position for i in contacts], axis=0)
        limbs.append(Limb(leg, columns, contacts, robot.contacts[contacts[0]].link, sole))
    return tuple(limbs)


@dataclass(frozen=True, eq=False)
class LegTask:
    """Joint accelerations of a leg as an affine function of the base's: joints = given + follow @ vdot_0.

    Attributes:
        given: (k,). follow: (k, n0).
    """

    given: Array
    follow: Array


def leg_task(robot: Robot, limb: Limb, q: Array, v: Array, wanted: Array, attitude: tuple[float, float]) -> LegTask:
    """Return how the leg's joints accelerate so that the sole does as wanted, and a flat foot turns level.

        J_0 vdot_0 + J_leg joints + Jdot v = wanted      (least squares, damped)

    Args:
        robot: The robot. limb: The leg. q, v: The state.
        wanted: Acceleration of the sole, (3,), [m/s^2], world.
        attitude: Gains of a flat foot's attitude, [1/s^2], [1/s].
    """
    point = (limb.link, limb.sole)
    J = point_jacobian(robot, q, *point)
    bias = point_twist_rates(robot, q, v, np.zeros(robot.nv), [point])[0]
    rows, goal = J[3:], wanted - bias[3:]
    if limb.leg.flat_foot:
        rotation = link_poses(robot, q)[0][limb.link]
        level = -attitude[0] * rotation_error(rotation) - attitude[1] * (J[:3] @ v)
        rows, goal = np.concatenate([rows, J[:3]]), np.concatenate([goal, level - bias[:3]])
    J_leg, J_0 = rows[:, limb.columns], rows[:, : robot.base.nv]
    normal = factor_symmetric(J_leg.T @ J_leg + _DAMPING * np.eye(len(limb.columns)))
    follow = [solve_factored(normal, -(J_leg.T @ column)) for column in J_0.T]
    return LegTask(solve_factored(normal, J_leg.T @ goal), np.array(follow).T)


def swing_acceleration(
    foot: Array, velocity: Array, landing: Array, left: Any, lift: tuple[Any, Any, Any], gains: tuple[float, float]
) -> Array:
    """Return how a swinging sole should accelerate, (3,), [m/s^2], world.

    Horizontally along the cubic that arrives at the landing place at rest in the time left, replanned at every
    instant; vertically along the planned lift.

    Args:
        foot, velocity: Of the sole, (3,), [m], [m/s], height over the support.
        landing: (2,), [m], world.
        left: Time left, [s]; not zero.
        lift: Planned height, its rate and acceleration, [m], [m/s], [m/s^2].
        gains: Of the height, [1/s^2], [1/s].
    """
    across = 6.0 * (landing - foot[:2]) / (left * left) - 4.0 * velocity[:2] / left
    height, rate, acceleration = lift
    up = acceleration + gains[0] * (height - foot[2]) + gains[1] * (rate - velocity[2])
    return np.array([across[0], across[1], up])
