"""Walks whose truth is known exactly: feet in stance rest on the ground, joints follow by inverse kinematics."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import controllers
import legged
from legged.rotations import (
    euler_quaternion,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_matrix,
    quaternion_product,
)
from legged.spatial import Array

RATE = 500.0
_PERIOD, _DUTY, _SWAY = 0.5, 0.6, 0.02


class Walk(NamedTuple):
    """A motion: times (T,), q (T, nq), v (T, nv), and forces on the feet in world axes (T, n, 3)."""

    times: Array
    q: Array
    v: Array
    forces: Array

    @property
    def distance(self) -> float:
        """Length of the path of the base, [m]."""
        return float(np.linalg.norm(np.diff(self.q[:, 4:6], axis=0), axis=1).sum())


def walk(
    robot: legged.Robot,
    seconds: float,
    speed: float,
    yaw_rate: float = 0.0,
    ground: Callable[[float, float], float] = lambda x, y: 0.0,
    slip: float = 0.0,
) -> Walk:
    """Return a walk of a robot with four feet.

    Args:
        robot: The robot. seconds: Duration, [s]. speed: Of the base, [m/s]. yaw_rate: [rad/s].
        ground: Height of the ground, [m], at x and y.
        slip: Velocity of the second foot in stance along x, [m/s].
    """
    home = controllers.home_of(robot)
    legs = controllers.FootKinematics(robot, [point.name for point in robot.contacts])
    stances = legs.positions(home.angles)
    height, weight = -stances[:, 2].mean(), robot.mass * 9.81
    times = np.arange(round(seconds * RATE) + 1) / RATE
    phases = np.array([0.0, 0.5, 0.5, 0.0])

    def base(t: float) -> tuple[Array, Array]:
        heading = yaw_rate * t
        s, half = speed * t, 0.5 * heading
        along = s * np.sinc(half / np.pi) * np.array([np.cos(half), np.sin(half)])
        wave = 2.0 * np.pi * t / _PERIOD
        turn = euler_quaternion("zyx", np.array([heading, 0.02 * np.sin(wave), 0.03 * np.cos(wave)]))
        place = [*along, height + ground(*along) + 0.01 * np.sin(2.0 * wave)]
        return np.array(turn), np.array(place)

    def landing(i: int, start: float) -> Array:
        turn, place = base(start + 0.5 * _DUTY * _PERIOD)
        x, y = (place + quaternion_matrix(turn) @ stances[i])[:2]
        return np.array([x, y, ground(x, y)])

    q, forces, angles = [], [], home.angles
    for t in times:
        turn, place = base(t)
        feet, loads = [], []
        for i in range(4):
            cycle = t / _PERIOD + phases[i]
            start, share = (np.floor(cycle) - phases[i]) * _PERIOD, cycle % 1.0
            at = landing(i, start)
            stands = share < _DUTY
            if stands:
                at = at + np.array([slip * (i == 1) * (t - start), 0.0, 0.0])
            else:
                s = (share - _DUTY) / (1.0 - _DUTY)
                left = at + np.array([slip * (i == 1) * _DUTY * _PERIOD, 0.0, 0.0])
                at = left + (landing(i, start + _PERIOD) - left) * (s - np.sin(2.0 * np.pi * s) / (2.0 * np.pi))
                at[2] += 0.06 * np.sin(np.pi * s) ** 2
            feet.append(quaternion_matrix(turn).T @ (at - place))
            loads.append(1.0 if stands and share * _PERIOD > 1.5 / RATE else 0.0)  # it moved in the last interval
        angles = legs.solve(np.array(feet), angles)
        q.append(np.concatenate([turn, place, angles]))
        forces.append(np.outer(np.array(loads) / max(sum(loads), 1.0), [0.0, 0.0, weight]))
    q = np.array(q)
    return Walk(times, q, _velocities(q), np.array(forces))


def _velocities(q: Array) -> Array:
    """Return the velocities of a motion, (T, nv), by central differences of the fourth order, of the second at ends."""
    rates = np.gradient(q, 1.0 / RATE, axis=0)
    rates[2:-2] = (8.0 * (q[3:-1] - q[1:-3]) - (q[4:] - q[:-4])) * (RATE / 12.0)
    twists = []
    for p, dp in zip(q[:, :4], rates[:, :7], strict=True):
        omega = 2.0 * quaternion_product(quaternion_conjugate(p), dp[:4])[1:]
        twists.append(np.concatenate([omega, quaternion_matrix(p).T @ dp[4:]]))
    return np.concatenate([twists, rates[:, 7:]], axis=1)


def guess(robot: legged.Robot, motion: Walk, axis: float, tilt: float, speed: float) -> tuple[Array, Array]:
    """Return a first guess (q, v) tilted about a horizontal axis, [rad], with an error of the velocity, [m/s]."""
    turn = quaternion_exp(tilt * np.array([np.cos(axis), np.sin(axis), 0.0]))
    q, v = motion.q[0].copy(), motion.v[0].copy()
    q[:4] = quaternion_product(turn, q[:4])
    v[3:5] += speed * np.array([np.cos(3.0 * axis), np.sin(3.0 * axis)])
    return q, v


def tilts(q: Array, other: Array) -> Array:
    """Return the angles between the verticals of two series of configurations, (...), [rad]."""

    def vertical(p: Array) -> Array:
        w, x, y, z = np.moveaxis(p[..., :4], -1, 0)
        return np.stack([2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)], axis=-1)

    return np.linalg.norm(np.cross(vertical(q), vertical(other)), axis=-1)
