"""Terms of the feet; memories of the time that each foot has been in the air and on the terrain."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.environments.state import State
from legged.environments.terms.parts import foot_states, is_moving

Array = np.ndarray


def air_time(s: State) -> Array:
    """Return the time since each foot has left the terrain, (f,), [s]: the update of a `Memory`.

    Formula: 0 if touching, else t_air + period
    """
    return (1.0 - foot_states(s).touching) * (s.memory["air_time"] + s.task.period)


def contact_time(s: State) -> Array:
    """Return the time since each foot has touched down, (f,), [s]: the update of a `Memory`.

    Formula: t_contact + period if touching, else 0
    """
    return foot_states(s).touching * (s.memory["contact_time"] + s.task.period)


def feet_air_time(least: float = 0.1, most: float = 0.4) -> Callable[[State], Any]:
    """Return a reward: the sum of clip(air time - least, 0, most - least) / period over the feet that touch down.

    It is dimensionless, and zero for a command of rest. The task needs the memory `air_time` of the function of this
    name.

    Args:
        least: Time in the air that earns nothing, [s]. most: Time in the air beyond which nothing is added, [s].

    Formula: sum over touchdowns of clip(t_air - least, 0, most - least) / period
    Peers: `feet_air_time`, `feet_air_time`
    """

    def reward(s: State) -> Any:
        air = s.memory["air_time"]
        earned = np.minimum(np.maximum(air - least, 0.0), most - least) * (1.0 / s.task.period)
        return is_moving(s) * (foot_states(s).touching @ earned)

    return reward


def single_stance_time(most: float = 0.4) -> Callable[[State], Any]:
    """Return a reward for two feet: while one foot alone touches, the time of the present phase of the later foot, [s].

    It is zero for a command of rest. The task needs the memories `air_time` and `contact_time` of the functions of
    these names.

    Args:
        most: Time beyond which nothing is added, [s].

    Formula: min(most, min over feet of t_air or t_contact) if one foot touches, else 0
    Peers: `feet_air_time_positive_biped`, -
    """

    def reward(s: State) -> Any:
        touching = foot_states(s).touching
        times = touching * contact_time(s) + (1.0 - touching) * air_time(s)
        alone = where(np.abs(touching.sum() - 1.0) < 0.5, 1.0, 0.0)
        return is_moving(s) * alone * np.minimum(reduce(np.minimum, times), most)

    return reward


def flight(s: State) -> Any:
    """Return 1 if no foot touches the terrain, else 0.

    Formula: 1 if no foot touches, else 0
    Peers: `desired_contacts`, -
    """
    return where(foot_states(s).touching.sum() < 0.5, 1.0, 0.0)


def feet_slip(s: State) -> Any:
    """Return the sum of squares of the horizontal velocities of the feet that touch, [m^2/s^2].

    Formula: sum over touching feet of v_x^2 + v_y^2
    Peers: `feet_slide`, `feet_slide`
    """
    feet = foot_states(s)
    return feet.touching @ (feet.velocities * feet.velocities).sum(axis=1)


def feet_clearance(height: float) -> Callable[[State], Any]:
    """Return a penalty: errors of the heights of the feet over the terrain, weighted by their speeds, [m^3/s].

    Args:
        height: Desired height at full speed, [m].

    Formula: sum abs(v_xy) (h_foot - height)^2
    Peers: -, `foot_clearance_reward`
    """

    def penalty(s: State) -> Any:
        feet = foot_states(s)
        speeds = np.sqrt((feet.velocities * feet.velocities).sum(axis=1) + 1e-12)
        return speeds @ (feet.heights - height) ** 2

    return penalty


def touching(s: State) -> Any:
    """Return the fraction of the feet that touch the terrain, dimensionless.

    Formula: number of touching feet / number of feet
    """
    on = foot_states(s).touching
    return on.sum() * (1.0 / len(on))
