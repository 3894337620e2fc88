"""Terms of gaits with a clock: which feet are to stand, and how high the others are to swing, at each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from legged.arguments import number
from legged.checked import checked
from legged.compiler.ir import where
from legged.environments.state import State
from legged.environments.terms.parts import heading_velocity, is_moving

Array = np.ndarray


@checked
@dataclass(frozen=True)
class Gait:
    """A gait with a constant period, whose cycle begins at the start of each episode.

    Attributes:
        period: [s].
        touchdowns: Parts of the period at which the feet touch down, from 0 to 1, one for each foot.
        contacts: Numbers of the contact points of each foot.
        duty: Part of the period in which a foot stands.

    Raises:
        ArgumentError: The period is not positive, or the duty is not between 0 and 1.
    """

    period: float
    touchdowns: Sequence[float]
    contacts: Sequence[Sequence[int]]
    duty: float = 0.6

    def __post_init__(self) -> None:
        number("period", self.period, "s", above=0.0)
        number("duty", self.duty, "", above=0.0, below=1.0)

    def phases(self, s: State) -> Array:
        """Return the part of the period that has passed since each foot was to touch down, (f,), from 0 to 1."""
        phase = s.time * (1.0 / self.period) - np.asarray(self.touchdowns, float)
        return phase - np.floor(phase)


def clock(period: float) -> Callable[[State], Array]:
    """Return an observation: cosine and sine of the phase of a gait with a constant period, (2,), dimensionless.

    Args:
        period: [s].

    Formula: (cos 2 pi t / T, sin 2 pi t / T)

    Raises:
        ArgumentError: The period is not positive.
    """
    rate = 2.0 * np.pi / number("period", period, "s", above=0.0)
    return lambda s: np.stack([np.cos(rate * s.time), np.sin(rate * s.time)])


def gait_contacts(gait: Gait) -> Callable[[State], Any]:
    """Return a reward: the fraction of the feet that touch where the gait has them stand, and do not where they swing.

    It is zero for a command of rest.

    Args:
        gait: The gait.

    Formula: number of feet whose contact is that of the gait / number of feet
    Peers: `GaitReward`, -
    """

    def reward(s: State) -> Any:
        stands = np.stack([where(phase < gait.duty, 1.0, 0.0) for phase in gait.phases(s)])
        touches = np.stack([reduce(np.maximum, [s.feet.touching[k] for k in foot]) for foot in gait.contacts])
        return is_moving(s) * (1.0 - np.abs(stands - touches)).sum() * (1.0 / len(gait.contacts))

    return reward


def swing_height(gait: Gait, height: float) -> Callable[[State], Any]:
    """Return a penalty: the sum of the squares by which swinging feet are lower than an arc over the terrain, [m^2].

    It is zero for a command of rest.

    Args:
        gait: The gait. height: Height of the middle of the arc, [m].

    Formula: sum over swinging feet of min(0, h_foot - 4 height x (1 - x))^2 with x, the part of the swing
    Peers: -, `feet_swing_height`
    """

    def penalty(s: State) -> Any:
        contacts, total = s.task.robot.contacts, 0.0
        for phase, foot in zip(gait.phases(s), gait.contacts, strict=True):
            points = [(s.feet.positions[k], contacts[k].radius) for k in foot]
            least = reduce(np.minimum, [p[2] - radius - s.terrain_height(p[0], p[1]) for p, radius in points])
            x = np.maximum(phase - gait.duty, 0.0) * (1.0 / (1.0 - gait.duty))
            total = total + np.minimum(least - 4.0 * height * x * (1.0 - x), 0.0) ** 2
        return is_moving(s) * total

    return penalty


def mean_velocity_error(duration: float) -> Callable[[State], Array]:
    """Return the mean error of the velocity, (3,), [m/s, m/s, rad/s], heading axes: the update of a `Memory`.

    The mean has weights that decay by a factor e in a duration, such as the period of a gait, within which the velocity
    of the base oscillates.

    Args:
        duration: [s].

    Formula: m + (e - m) period / duration with e = c - (v_x, v_y, omega_z)

    Raises:
        ArgumentError: The duration is not positive.
    """
    rate = 1.0 / number("duration", duration, "s", above=0.0)

    def update(s: State) -> Array:
        turned = s.rotation[2] @ s.angular_velocity
        error = s.command - np.concatenate([heading_velocity(s), np.stack([turned])])
        last = s.memory["mean_velocity_error"]
        return last + (error - last) * (s.task.period * rate)

    return update


def last_mean_velocity_error(s: State) -> Array:
    """Return the mean error of the velocity up to the last control step, (3,), [m/s, m/s, rad/s], heading axes.

    The task needs the memory `mean_velocity_error` of the function of this name.

    Formula: m
    """
    return s.memory["mean_velocity_error"]


def track_mean_velocity(deviation: float = 0.25) -> Callable[[State], Any]:
    """Return a reward: exp(-|m|^2 / deviation^2) with m, the mean error of the horizontal
    velocity up to the last control step, [m/s].

    The task needs the memory `mean_velocity_error` of the function of this name.

    Args:
        deviation: [m/s].

    Formula: exp(-|m_xy|^2 / s^2)
    """

    def reward(s: State) -> Any:
        m = s.memory["mean_velocity_error"][:2]
        return np.exp((m @ m) * (-1.0 / deviation**2))

    return reward


def track_mean_yaw_rate(deviation: float = 0.5) -> Callable[[State], Any]:
    """Return a reward: exp(-m^2 / deviation^2) with m, the mean error of the yaw rate up to the
    last control step, [rad/s].

    The task needs the memory `mean_velocity_error` of the function of this name.

    Args:
        deviation: [rad/s].

    Formula: exp(-m_w^2 / s^2)
    """
    return lambda s: np.exp(s.memory["mean_velocity_error"][2] ** 2 * (-1.0 / deviation**2))
