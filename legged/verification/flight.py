"""A short flight of a robot that nothing drives: energy is kept, and momentum changes by gravity alone."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from legged.compiler import compile as compile_function
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.kinematics import kinetic_energy, momentum, potential_energy
from legged.robot.configuration import configuration_rate
from legged.robot.robot import Robot
from legged.spatial import Array

DURATION = 0.05  # [s]
_PRECISION = 1e-12  # of the solver, relative


class Flight(NamedTuple):
    """What a flight lost or found: energy in parts of the largest kinetic energy, momentum in parts of its largest."""

    energy: float
    momentum: float


def frictionless(robot: Robot) -> Robot:
    """Return the robot without damping and dry friction, which would take energy."""
    still = {"damping": 0.0, "friction": 0.0}
    bodies = tuple(replace(body, physics=replace(body.physics, **still)) for body in robot.bodies)
    return replace(robot, bodies=bodies)


def fly(robot: Robot, q: Array, v: Array) -> Flight:
    """Return how energy and momentum change in a flight of `DURATION` from (q, v), without friction and torques.

    Momentum is that along which the base moves freely; none on a fixed base.
    """
    from scipy.integrate import solve_ivp  # imported where it is used: it takes as long as all else

    robot = frictionless(robot)

    def motion(robot: Robot, q: Array, v: Array) -> Array:
        vdot = forward_dynamics(robot, q, v, np.zeros(robot.nv))
        return np.concatenate([configuration_rate(robot, q, v), vdot])

    rate, nq = compile_function(motion, robot), robot.nq
    path = solve_ivp(
        lambda _, y: rate(y[:nq], y[nq:]),
        (0.0, DURATION),
        np.concatenate([q, v]),
        method="DOP853",
        rtol=_PRECISION,
        atol=_PRECISION,
    )
    states = path.y.T[:: max(1, len(path.t) // 5)]
    times = path.t[:: max(1, len(path.t) // 5)]
    kinetic = np.array([kinetic_energy(robot, y[:nq], y[nq:]) for y in states])
    energy = kinetic + [potential_energy(robot, y[:nq]) for y in states]
    fallen = np.outer(times, np.concatenate([np.zeros(3), robot.mass * robot.gravity]))
    each = np.array([momentum(robot, y[:nq], y[nq:]) for y in states]) - fallen
    each = each[:, _free(robot)]
    return Flight(_drift(energy[:, None], kinetic.max()), _drift(each, np.abs(each).max(initial=0.0)))


def _free(robot: Robot) -> list[int]:
    """Return the entries of momentum that nothing but gravity changes."""
    return {"fixed": [], "planar": [1, 3, 5]}.get(robot.base.kind, list(range(6)))


def _drift(values: Array, size: float) -> float:
    return float(np.max(np.abs(values - values[0]), initial=0.0)) / size if size else 0.0
