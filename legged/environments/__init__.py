"""Environments in which robots learn: tasks of traced functions, as environments of Gymnasium.

    task = legged.environments.velocity(robot)
    env = legged.environments.make("velocity", robot, num_envs=4096)

See docs/howto/environments.md.
"""

from legged.environments import terms
from legged.environments.draws import Draws
from legged.environments.making import TASKS, make, registered
from legged.environments.state import Feet, State
from legged.environments.task import Command, Disturbance, Memory, Observation, Range, Reward, Task
from legged.environments.terrain import TiledTerrain
from legged.environments.velocity import rough, velocity

__all__ = [
    "TASKS",
    "Command",
    "Disturbance",
    "Draws",
    "Feet",
    "Memory",
    "Observation",
    "Range",
    "Reward",
    "State",
    "Task",
    "TiledTerrain",
    "make",
    "registered",
    "rough",
    "terms",
    "velocity",
]
