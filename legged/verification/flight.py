"""Conservation laws in a short free motion: energy is constant, and momentum changes by gravity only."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from legged.compiler import compile as compile_function
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.kinematics import kinetic_energy, momentum, potential_energy
from legged.robot.configuration import configuration_rate
from legged.robot.robot import Robot
from legged.simulation.chart import normalized
from legged.spatial import Array

DURATION = 0.05  # [s]
_PRECISION = 1e-12  # of the solver, relative


class FlightDrift(NamedTuple):
    """Drift of energy relative to the largest kinetic energy, and of momentum relative to its largest value."""

    energy: float
    momentum: float


def without_friction(robot: Robot) -> Robot:
    """Return the robot without damping and dry friction, which dissipate energy."""
    still = {"damping": 0.0, "friction": 0.0}
    bodies = tuple(replace(body, physics=replace(body.physics, **still)) for body in robot.bodies)
    return replace(robot, bodies=bodies)


def flight_drift(robot: Robot, q: Array, v: Array) -> FlightDrift:
    """Return the drift of energy and momentum in a free motion of `DURATION`, without friction and joint forces.

    Only components of momentum along free directions of the base count; a fixed base has none.

    Args:
        robot: The robot.
        q: Initial configuration, (nq,).
        v: Initial velocity, (nv,).
    """
    from scipy.integrate import solve_ivp  # imported here, since its import is slow

    robot = without_friction(robot)

    def motion(robot: Robot, q: Array, v: Array) -> Array:
        q = normalized(robot, q)  # inside a step of the solver, quaternions do not have norm 1
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
    return FlightDrift(_drift(energy[:, None], kinetic.max()), _drift(each, np.abs(each).max(initial=0.0)))


def _free(robot: Robot) -> list[int]:
    """Return the components of momentum that only gravity changes."""
    return {"fixed": [], "planar": [1, 3, 5]}.get(robot.base.kind, list(range(6)))


def _drift(values: Array, size: float) -> float:
    return float(np.max(np.abs(values - values[0]), initial=0.0)) / size if size else 0.0
