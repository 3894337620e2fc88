"""Terms that tasks are made of, under the names of the field; each is a function of the `State` of one member."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from legged.algorithms.levenberg_marquardt import joint_limits
from legged.compiler.ir import where
from legged.environments.state import State
from legged.ground.height_map import HeightMap
from legged.robot.robot import Robot

Array = np.ndarray

# Observations


def base_linear_velocity(s: State) -> Array:
    """Return the velocity of the base, (3,), [m/s], base axes."""
    return s.linear_velocity


def base_angular_velocity(s: State) -> Array:
    """Return the angular velocity of the base, (3,), [rad/s], base axes."""
    return s.angular_velocity


def projected_gravity(s: State) -> Array:
    """Return the direction of gravity, (3,), dimensionless, base axes."""
    return s.projected_gravity


def command(s: State) -> Array:
    """Return the command, (nc,), in its units."""
    return s.command


def joint_positions(s: State) -> Array:
    """Return the joint positions relative to the posture of a zero action, (nj,), [rad] or [m]."""
    return s.joint_positions - s.task.posture


def joint_velocities(s: State) -> Array:
    """Return the joint velocities, (nj,), [rad/s] or [m/s]."""
    return s.joint_velocities


def last_action(s: State) -> Array:
    """Return the action of the control step that has ended, (nj,), dimensionless."""
    return s.action


def foot_forces(s: State) -> Array:
    """Return the mean forces of the terrain on the contact points, (3 m,), [N], world axes."""
    return s.feet.forces.reshape(-1)


def heights_around(length: float = 1.6, width: float = 1.0, spacing: float = 0.1) -> Callable[[State], Array]:
    """Return an observation: heights of the base over the terrain at a grid of points around it, (n,), [m].

    On a height map they are those of the nearest entries of the map.

    Args:
        length, width: Size of the grid along the axes x and y of the base, turned by its heading, [m].
        spacing: Distance of neighbors, [m].
    """
    rows = np.linspace(-0.5 * length, 0.5 * length, round(length / spacing) + 1)
    columns = np.linspace(-0.5 * width, 0.5 * width, round(width / spacing) + 1)

    def heights(s: State) -> Array:
        c, d = heading(s)
        x, y = s.q[4], s.q[5]
        terrain = s.task.ground.terrain
        height = terrain.nearest if isinstance(terrain, HeightMap) else terrain.height
        points = [(x + c * a - d * b, y + d * a + c * b) for a in rows for b in columns]
        return np.stack([s.q[6] - height(*point) for point in points])

    return heights


# Rewards


def track_linear_velocity(deviation: float = 0.5) -> Callable[[State], Any]:
    """Return a reward: exp(-|e|^2 / deviation^2) with e, the error of the horizontal velocity in heading axes, [m/s].

    Args:
        deviation: [m/s].
    """

    def reward(s: State) -> Any:
        e = s.command[:2] - heading_velocity(s)
        return np.exp((e @ e) * (-1.0 / deviation**2))

    return reward


def track_yaw_rate(deviation: float = 0.5) -> Callable[[State], Any]:
    """Return a reward: exp(-e^2 / deviation^2) with e, the error of the angular velocity about the vertical, [rad/s].

    Args:
        deviation: [rad/s].
    """

    def reward(s: State) -> Any:
        e = s.command[2] - s.rotation[2] @ s.angular_velocity
        return np.exp(e * e * (-1.0 / deviation**2))

    return reward


def vertical_velocity(s: State) -> Any:
    """Return the square of the vertical velocity of the base, [m^2/s^2], base axes."""
    return s.linear_velocity[2] ** 2


def roll_and_pitch_rates(s: State) -> Any:
    """Return the sum of squares of the angular velocities about the axes x and y of the base, [rad^2/s^2]."""
    return s.angular_velocity[:2] @ s.angular_velocity[:2]


def tilt(s: State) -> Any:
    """Return the squared sine of the angle between the axis z of the base and the vertical, dimensionless."""
    return s.projected_gravity[:2] @ s.projected_gravity[:2]


def height_error(height: float) -> Callable[[State], Any]:
    """Return a penalty: the square of the error of the height of the base over the terrain, [m^2].

    Args:
        height: [m].
    """
    return lambda s: (s.height - height) ** 2


def torques(s: State) -> Any:
    """Return the sum of squares of the torques, [N^2 m^2]."""
    return s.torques @ s.torques


def power(s: State) -> Any:
    """Return the sum of the magnitudes of the mechanical powers of the joints, [W]."""
    return np.abs(s.torques * s.joint_velocities).sum()


def joint_accelerations(s: State) -> Any:
    """Return the sum of squares of the joint accelerations, [rad^2/s^4]."""
    return s.joint_accelerations @ s.joint_accelerations


def action_rate(s: State) -> Any:
    """Return the sum of squares of the change of the action since the last control step, dimensionless."""
    change = s.action - s.last_action
    return change @ change


def posture_error(s: State) -> Any:
    """Return the sum of squares of the joint positions relative to the posture, [rad^2]."""
    e = joint_positions(s)
    return e @ e


def joint_range(robot: Robot, part: float = 0.9) -> Callable[[State], Any]:
    """Return a penalty: the sum of the distances by which joints leave the middle part of their ranges, [rad].

    Args:
        robot: The robot. part: Fraction of each range without penalty.
    """
    first = robot.base.nq
    bounds = []
    for limit in joint_limits(robot):
        lower, upper = limit.lower, limit.upper
        middle, half = 0.5 * (lower + upper), 0.5 * part * (upper - lower)
        if np.isfinite(middle) and np.isfinite(half):
            bounds.append((limit.q - first, middle - half, middle + half))

    def penalty(s: State) -> Any:
        q = s.joint_positions
        beyond = [np.maximum(low - q[i], 0.0) + np.maximum(q[i] - high, 0.0) for i, low, high in bounds]
        return sum(beyond, 0.0)

    return penalty


def feet_air_time(least: float = 0.1, most: float = 0.4) -> Callable[[State], Any]:
    """Return a reward: the sum of clip(air time - least, 0, most - least) / period over the feet that touch down.

    It is dimensionless, and zero for a command of rest. The task needs the memory `air_time` of the function of this
    name.

    Args:
        least: Time in the air that earns nothing, [s]. most: Time in the air beyond which nothing is added, [s].
    """

    def reward(s: State) -> Any:
        air = s.memory["air_time"]
        earned = np.minimum(np.maximum(air - least, 0.0), most - least) * (1.0 / s.task.period)
        return _is_moving(s) * (s.feet.touching @ earned)

    return reward


def air_time(s: State) -> Array:
    """Return the time since each contact point has left the terrain, (m,), [s]: the update of a `Memory`."""
    return (1.0 - s.feet.touching) * (s.memory["air_time"] + s.task.period)


def feet_slip(s: State) -> Any:
    """Return the sum of squares of the horizontal velocities of the contact points that touch, [m^2/s^2]."""
    velocities = s.feet.velocities[:, :2]
    return s.feet.touching @ (velocities * velocities).sum(axis=1)


# Terminations


def fallen(largest_tilt: float = 1.2, least_height: float = 0.0) -> Callable[[State], Any]:
    """Return a termination: the base tilts too far, or is too low over the terrain.

    Args:
        largest_tilt: Angle between the axis z of the base and the vertical, [rad]. least_height: [m].
    """
    cosine = np.cos(largest_tilt)

    def termination(s: State) -> Any:
        return where(-s.projected_gravity[2] < cosine, 1.0, where(s.height < least_height, 1.0, 0.0))

    return termination


# Parts of terms


def _is_moving(s: State) -> Any:
    """Return 1.0 for a commanded velocity of more than 0.1 m/s, else 0.0."""
    return where(s.command[:2] @ s.command[:2] > 0.01, 1.0, 0.0)


def heading(s: State) -> tuple[Any, Any]:
    """Return (cosine, sine) of the heading: the angle of the horizontal part of the base's axis x, dimensionless."""
    x, y = s.rotation[0, 0], s.rotation[1, 0]
    scale = 1.0 / np.sqrt(x * x + y * y + 1e-12)
    return x * scale, y * scale


def heading_velocity(s: State) -> Array:
    """Return the horizontal velocity of the base, (2,), [m/s]: along the heading, and to its left."""
    c, d = heading(s)
    x, y, _ = s.rotation @ s.linear_velocity
    return np.stack([c * x + d * y, c * y - d * x])
