"""Names of environments in Gymnasium: `gymnasium.make("legged/velocity-v0", robot="go2.urdf")`.

Gymnasium imports this module whenever it is imported itself, so it imports nothing else.
"""

from __future__ import annotations

NAMES = ("velocity", "rough", "standing_up", "jumping", "tracking", "pendulum", "acrobot")
"""Names of the tasks that are registered, those of `legged.environments.TASKS`."""


def register() -> None:
    """Register the tasks with Gymnasium."""
    import gymnasium

    for name in NAMES:
        point = "legged.environments:registered"
        gymnasium.register(f"legged/{name}-v0", point, vector_entry_point=point, kwargs={"task": name})
