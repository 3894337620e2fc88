"""Terms of standing up, jumping and classical control; each is a function of the `State`, or returns one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.environments.state import State

Array = np.ndarray

# Standing up


def upright(s: State) -> Any:
    """Return a reward from 0 for a base upside down to 1 for a level one, dimensionless.

    Formula: ((1 - g_z) / 2)^2
    """
    return (0.5 - 0.5 * s.projected_gravity[2]) ** 2


def height_reached(height: float) -> Callable[[State], Any]:
    """Return a reward: the height of the base over the terrain as a part of the desired one, from 0 to 1.

    Args:
        height: [m].

    Formula: clip((z - h) / height, 0, 1)
    """
    return lambda s: np.minimum(np.maximum(s.height * (1.0 / height), 0.0), 1.0)


def standing_posture(deviation: float = 0.5) -> Callable[[State], Any]:
    """Return a reward: how near the joints are to the posture of a zero action while the base is upright.

    Args:
        deviation: Root mean square of the errors of the joints at which it has fallen to 1 / e, [rad].

    Formula: ((1 - g_z) / 2)^2 exp(-mean (q - q_0)^2 / s^2)
    """

    def reward(s: State) -> Any:
        e = s.joint_positions - s.task.posture
        return upright(s) * np.exp((e @ e) * (-1.0 / (len(e) * deviation**2)))

    return reward


# Jumping: command (rise of the base [m], distance forward [m]); memories `origin` (x [m], y [m], heading [rad] at the
# start of the episode), `flew`, `peak` and `landed`


def flew(s: State) -> Any:
    """Return 1 once all contact points have left the terrain in an episode, else 0: the update of a `Memory`.

    The first 0.1 s do not count, in which a robot settles.

    Formula: max(flew, 1 if no contact point touches and t > 0.1 s, else 0)
    """
    off = where(s.feet.touching.sum() < 0.5, 1.0, 0.0) * where(s.time > 0.1, 1.0, 0.0)
    return np.maximum(s.memory["flew"], off)


def peak(s: State) -> Any:
    """Return the largest height of the base since the robot has left the terrain, [m]: the update of a `Memory`.

    Formula: max(peak, flew (z - h))
    """
    return np.maximum(s.memory["peak"], flew(s) * s.height)


def landed(s: State) -> Any:
    """Return 1 once a contact point has touched the terrain after the flight, else 0: the update of a `Memory`.

    Formula: max(landed, flew in the step before and a contact point touches)
    """
    on = where(s.feet.touching.sum() > 0.5, 1.0, 0.0)
    return np.maximum(s.memory["landed"], s.memory["flew"] * on)


def jump_height(deviation: float) -> Callable[[State], Any]:
    """Return a reward after take-off: exp(-e^2 / deviation^2) with the error e of the largest height of the base, [m].

    Args:
        deviation: [m].

    Formula: flew exp(-(peak - height - c_z)^2 / s^2)
    """

    def reward(s: State) -> Any:
        e = peak(s) - s.task.height - s.command[0]
        return flew(s) * np.exp(e * e * (-1.0 / deviation**2))

    return reward


def jump_distance(deviation: float) -> Callable[[State], Any]:
    """Return a reward after landing: exp(-|e|^2 / deviation^2) with the error e of the place of the base, [m].

    The target lies at the commanded distance ahead of the place and heading at the start of the episode.

    Args:
        deviation: [m].

    Formula: landed exp(-|p_xy - p_0 - c_x (cos, sin)|^2 / s^2)
    """

    def reward(s: State) -> Any:
        origin = s.memory["origin"]
        e = s.position[:2] - origin[:2] - s.command[1] * np.stack([np.cos(origin[2]), np.sin(origin[2])])
        return landed(s) * np.exp((e @ e) * (-1.0 / deviation**2))

    return reward


def in_flight(s: State) -> Any:
    """Return 1 while no contact point touches before the first landing, else 0.

    Formula: flew (1 - landed)
    """
    return flew(s) * (1.0 - landed(s))


# Classical control


def angle_vector(upright: Array) -> Callable[[State], Array]:
    """Return an observation: cosines and sines of the joint positions from a posture, (2 nj,), dimensionless.

    Args:
        upright: The posture, (nj,), [rad], joint axes.

    Formula: (cos(q - q_up), sin(q - q_up)) of each joint
    """

    def vector(s: State) -> Array:
        angles = s.joint_positions - upright
        return np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(-1)

    return vector


def pendulum_cost(upright: float) -> Callable[[State], Any]:
    """Return a penalty: the cost of a pendulum before the control step, and of the torque of this step.

    The task needs the memory `before` of (q, v). The angle is from -pi to pi.

    Args:
        upright: Joint position of the upright pendulum, [rad].

    Formula: wrap(q - q_up)^2 + 0.1 qd^2 + 0.001 tau^2
    """

    def penalty(s: State) -> Any:
        angle, rate = s.memory["before"]
        away = angle - upright
        away = away - 2.0 * np.pi * np.floor(away * (0.5 / np.pi) + 0.5)
        torque = s.task.targets(s.action)[0]
        return away**2 + 0.1 * rate**2 + 0.001 * torque**2

    return penalty


def below(height: Callable[[State], Any], threshold: float) -> Callable[[State], Any]:
    """Return a penalty: 1 as long as a height is not above a threshold, else 0.

    Args:
        height: Function that returns the height, [m]. threshold: [m].

    Formula: 1 if height <= threshold, else 0
    """
    return lambda s: where(height(s) > threshold, 0.0, 1.0)


def above(height: Callable[[State], Any], threshold: float) -> Callable[[State], Any]:
    """Return a termination: a height is above a threshold.

    Args:
        height: Function that returns the height, [m]. threshold: [m].

    Formula: height > threshold
    """
    return lambda s: where(height(s) > threshold, 1.0, 0.0)
