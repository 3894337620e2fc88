"""Tasks for any loaded robot, by name in `TASKS`."""

from legged.environments.tasks.jumping import jumping
from legged.environments.tasks.reference import Reference
from legged.environments.tasks.standing_up import standing_up
from legged.environments.tasks.swing_up import acrobot, pendulum
from legged.environments.tasks.terrain import TiledTerrain
from legged.environments.tasks.tracking import tracking
from legged.environments.tasks.velocity import rough, velocity

TASKS = {
    "velocity": velocity,
    "rough": rough,
    "standing_up": standing_up,
    "jumping": jumping,
    "tracking": tracking,
    "pendulum": pendulum,
    "acrobot": acrobot,
}
"""Name -> function (robot, **changes) that returns a task."""

__all__ = [
    "TASKS",
    "Reference",
    "TiledTerrain",
    "acrobot",
    "jumping",
    "pendulum",
    "rough",
    "standing_up",
    "tracking",
    "velocity",
]
