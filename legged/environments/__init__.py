"""Environments in which robots learn: tasks of traced functions, as environments of Gymnasium.

    task = legged.environments.velocity(robot)
    env = legged.environments.make("velocity", robot, num_envs=4096)

The import registers the tasks with Gymnasium, which has no entry points for this. See docs/howto/environments.md.
"""

from legged.environments import terms
from legged.environments.draws import Draws
from legged.environments.making import TASKS, make, registered
from legged.environments.state import Feet, State
from legged.environments.task import Command, Disturbance, Memory, Observation, Range, Reward, Task
from legged.environments.tasks import (
    Reference,
    TiledTerrain,
    acrobot,
    jumping,
    pendulum,
    rough,
    standing_up,
    tracking,
    velocity,
)

__all__ = [
    "TASKS",
    "Command",
    "Disturbance",
    "Draws",
    "Feet",
    "Memory",
    "Observation",
    "Range",
    "Reference",
    "Reward",
    "State",
    "Task",
    "TiledTerrain",
    "acrobot",
    "jumping",
    "make",
    "pendulum",
    "registered",
    "rough",
    "standing_up",
    "terms",
    "tracking",
    "velocity",
]
