"""Tasks for any loaded robot."""

from legged.environments.tasks.jumping import jumping
from legged.environments.tasks.reference import Reference
from legged.environments.tasks.standing_up import standing_up
from legged.environments.tasks.swing_up import acrobot, pendulum
from legged.environments.tasks.terrain import TiledTerrain
from legged.environments.tasks.tracking import tracking
from legged.environments.tasks.velocity import rough, velocity

__all__ = [
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
