"""Models of sensors: inertial measurement unit, forces on feet and contact switches, and sensor noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.arguments import Numbers, array, rounded_array, whole
from legged.checked import checked
from legged.dynamics.arguments import Wrenches, body_wrenches, read
from legged.dynamics.frames import Frame, frame_acceleration, frame_pose, frame_twist, resolve_frame
from legged.dynamics.kinematics import motion
from legged.errors import DefinitionError, ShapeError
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join


@checked
def gyro(robot: Robot, q: Array, v: Array, frame: str | Frame) -> Array:
    """Return the angular velocity that a gyroscope measures, (3,), [rad/s], sensor axes.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        frame: Frame of the sensor: a link, a contact point or a `legged.Frame`.
    """
    return frame_twist(robot, q, v, frame, axes="local")[:3]


@checked
def specific_force(robot: Robot, q: Array, v: Array, vdot: Array, frame: str | Frame) -> Array:
    """Return the specific force a - g that an accelerometer measures, (3,), [m/s^2], sensor axes.

    At rest it is |g| upward, in free fall without rotation zero.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
        frame: Frame of the sensor: a link, a contact point or a `legged.Frame`.
    """
    (q,) = read(robot, q=q)
    R, _ = frame_pose(robot, q, frame)
    return R.T @ (frame_acceleration(robot, q, v, vdot, frame)[3:] - robot.gravity)


@checked
def contact_force(robot: Robot, q: Array, wrenches: Array, foot: str) -> Array:
    """Return the contact force on a foot, (3,), [N], world axes. The function can be traced.

    Args:
        robot: The robot. q: Configuration, (nq,).
        wrenches: Contact wrenches on all links, (n_links, 6), as controllers receive them.
        foot: Name of the foot's link or of a contact point on it; the force on the whole link is returned.
    """
    (q,) = read(robot, q=q)
    wrenches = array("wrenches", wrenches, (len(robot.links), 6), "one [n; f] per link")
    return frame_pose(robot, q, foot).rotation @ wrenches[resolve_frame(robot, foot).link, 3:]


@checked
def ground_wrench(robot: Robot, q: Array, wrenches: Wrenches) -> Array:
    """Return the sum of wrenches on links as one wrench [n; f] about the world origin, (6,), [N m] and [N], world axes.

    Args:
        robot: The robot. q: Configuration, (nq,).
        wrenches: Wrenches on links, by name or (n_links, 6), as in `inverse_dynamics`.
    """
    (q,) = read(robot, q=q)
    at, total = motion(robot, q), np.zeros(6)
    for body, w in body_wrenches(robot, wrenches).items():
        R, f = at.rotation[body], at.rotation[body] @ w[3:]
        total = total + join(R @ w[:3] + cross(at.origin[body], f), f)
    return total


@checked
def contact_switches(loads: Numbers, on: float, off: float | None = None) -> Array:
    """Return the states of contact switches with hysteresis, bool, in the shape of `loads`.

    Args:
        loads: Normal forces over time, (T,) or (T, n), [N].
        on: Force at which a switch closes, [N]. off: Force below which it opens, [N]; default on / 2.

    Raises:
        ShapeError: The thresholds violate 0 <= off <= on.
    """
    loads = rounded_array("loads", loads)
    if loads.ndim not in (1, 2):
        raise ShapeError(f"loads must be (T,) or (T, n), got shape {loads.shape}")
    off = on / 2 if off is None else off
    if not 0.0 <= off <= on:
        raise ShapeError(
            f"on and off, the threshold of a switch, must satisfy 0 <= off <= on, got on {on} N, off {off} N"
        )
    closed = np.zeros(loads.shape, bool)
    for k, load in enumerate(loads):
        before = closed[k - 1] if k else np.zeros(loads.shape[1:], bool)
        closed[k] = np.where(before, load >= off, load >= on)
    return closed


@checked
@dataclass(frozen=True)
class Noise:
    """Additive error of a sensor: white noise, constant bias and random walk, independent for each channel.

    Units are those of the reading.

    Attributes:
        density: Noise density as in data sheets, [unit / sqrt(Hz)]; the variance is f density^2 at sampling rate f.
        bias: Standard deviation of the constant offset, [unit].
        walk: Random walk of the offset, [unit / sqrt(s)]; its variance after a time t is t walk^2.
        seed: Seed of the random generator; the same seed gives the same error.
    """

    density: float = 0.0
    bias: float = 0.0
    walk: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        sizes = self.density, self.bias, self.walk
        if not (np.isfinite(sizes).all() and min(sizes) >= 0.0):
            raise DefinitionError(f"noise must be finite and not negative, got density, bias and walk {sizes}")
        whole("seed", self.seed, least=0)

    def on(self, times: Any, readings: Any) -> Array:
        """Return readings with the error added, (T, ...), in the unit of the readings.

        Args:
            times: Increasing sample times, (T,), [s]; at least two. readings: Readings, (T, ...), any unit.

        Raises:
            ShapeError: Times and readings do not match, or times do not increase.
        """
        times, readings = rounded_array("times", times), rounded_array("readings", readings)
        if times.ndim != 1 or times.shape != readings.shape[:1] or len(times) < 2 or not (np.diff(times) > 0.0).all():
            raise ShapeError(
                f"readings {readings.shape} need as many increasing times, at least two, got {times.shape}"
            )
        rng = np.random.default_rng(self.seed)
        steps = np.diff(times, append=2 * times[-1] - times[-2]).reshape(-1, *(1,) * (readings.ndim - 1))
        white = self.density / np.sqrt(steps) * rng.normal(size=readings.shape)
        increments = self.walk * np.sqrt(steps) * rng.normal(size=readings.shape)
        walk = np.cumsum(increments, axis=0) - increments  # zero at the first time
        return readings + white + self.bias * rng.normal(size=readings.shape[1:]) + walk
