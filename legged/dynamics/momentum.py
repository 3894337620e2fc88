"""What the world must do to a robot for it to move as it does: the rate of momentum, and the wrench behind it."""

from __future__ import annotations

import numpy as np

from legged.dynamics.arguments import read
from legged.dynamics.kinematics import center_of_mass, motion
from legged.dynamics.passive import rotor_forces
from legged.dynamics.sweeps import newton_euler, outward, twists_and_rates
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join


def required_wrench(robot: Robot, q: Array, v: Array, vdot: Array) -> Array:
    """Return the wrench [n; f] that must act on the robot besides gravity, about the world's origin, world axes, (6,).

        f = m (c_dd - g),      n = c x f + Ldot

    Without pushes it is the ground's, whatever the contacts; on a fixed base, that of the base on its mount.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
    """
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    at = motion(robot, q)
    t, td = twists_and_rates(robot, q, v, vdot)
    n, f = np.zeros(3), np.zeros(3)
    for body in outward(robot):
        k = body.index
        w = newton_euler(body, t[k], td[k])
        moment, _ = rotor_forces(body, v, vdot, t[k], td[k])
        f_k = at.rotation[k] @ w[3:]
        n = n + at.rotation[k] @ (w[:3] + moment) + cross(at.origin[k], f_k)
        f = f + f_k
    return join(n, f)


def momentum_rate(robot: Robot, q: Array, v: Array, vdot: Array) -> Array:
    """Return the rate of `momentum`, (6,): [of the angular about the center of mass; of the linear], [N m], [N], world.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
    """
    w = required_wrench(robot, q, v, vdot)
    return join(w[:3] - cross(center_of_mass(robot, q), w[3:]), w[3:] + robot.mass * robot.gravity)
