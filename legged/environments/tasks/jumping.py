"""The task of jumping to a commanded height and distance."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.environments import terms
from legged.environments.state import State
from legged.environments.task import Command, Memory, Observation, Reward, Task
from legged.environments.tasks.common import Stance, on_terrain, proprioception
from legged.robot.robot import Robot
from legged.rotations import axis_quaternion

Array = np.ndarray
_NEVER = (1e6, 1e6)  # [s]


@checked
def jumping(
    robot: Robot,
    ground: Rigid | None = None,
    rise: tuple[float, float] = (0.2, 0.6),
    distance: tuple[float, float] = (0.0, 2.0),
    **changes: Any,
) -> Task:
    """Return the task of one jump: a command (rise of the base over its standing height [m], distance forward [m]).

    Args:
        robot: The robot, with a floating base. ground: By default flat, with friction 0.8.
        rise, distance: Bounds of the command, in units of the height of the base.
        changes: Other fields of the task, as in `Task.changed`.

    Raises:
        DefinitionError: The robot has no legs. ReachError: It has no standing posture.
    """
    stance = Stance.of(robot)
    h = stance.height
    low, high = h * np.array([rise[0], distance[0]]), h * np.array([rise[1], distance[1]])
    fallen = terms.fallen(1.0, 0.3 * h)
    seen = {
        **proprioception(),
        "command": Observation(terms.command, scale=1.0 / h),
        "time": Observation(terms.episode_time),
    }
    task = stance.task(
        ground,
        seen,
        stance.privileged(),
        rewards={
            "jump_height": Reward(terms.jump_height(0.15 * h), 2.0),
            "jump_distance": Reward(terms.jump_distance(0.3 * h), 2.0),
            "in_flight": Reward(terms.in_flight, 1.0),
            "alive": Reward(terms.alive(fallen), 0.5),
            "tilt": Reward(terms.tilt, -1.0),
            "roll_and_pitch_rates": Reward(terms.roll_and_pitch_rates, -0.02),
            "torques": Reward(terms.torques, -0.02 / stance.torque**2),
            "joint_accelerations": Reward(terms.joint_accelerations, -5e-8),
            "action_rate": Reward(terms.action_rate, -5e-3),
            "posture_error": Reward(terms.posture_error, -0.1),
        },
        terminations={"fallen": fallen},
        start=_at_origin(h, stance.posture),
        command=Command(lambda s: s.random.uniform(low, high, 2), _NEVER, 2),
        memory={
            "origin": Memory(_new_origin, lambda s: s.memory["origin"], np.zeros(3)),
            "flew": Memory(lambda s: 0.0, terms.flew),
            "peak": Memory(lambda s: 0.0, terms.peak),
            "landed": Memory(lambda s: 0.0, terms.landed),
        },
        action_scale=0.5,
        episode=2.5,
        variations=stance.variations(),
    )
    return task.changed(**changes) if changes else task


def _new_origin(s: State) -> Array:
    """Return the place [m] and the heading [rad] at which the next episode starts, (3,)."""
    return s.random.uniform(np.array([-0.5, -0.5, -np.pi]), np.array([0.5, 0.5, np.pi]), 3)


def _at_origin(height: float, posture: Array) -> Any:
    """Return the start of an episode at the place and heading of the memory `origin`."""

    def start(s: State) -> tuple[Array, Array]:
        x, y, yaw = s.memory["origin"]
        joints = posture + s.random.uniform(-0.05, 0.05, len(posture))
        q = np.concatenate([axis_quaternion("z", yaw), np.stack([x, y, 0.0 * x + height]), joints])
        return on_terrain(s, q), np.zeros(6 + len(posture))

    return start
