"""Registered environments of Gymnasium: `gymnasium.make("legged/velocity-v0", robot="go2.urdf")`."""

from __future__ import annotations

from typing import Any

from legged import environments
from legged.files import load
from legged.robot.robot import Robot


def register() -> None:
    """Register the tasks with Gymnasium, which calls this function when it is imported."""
    import gymnasium

    for name in environments.TASKS:
        gymnasium.register(
            f"legged/{name}-v0",
            entry_point=f"{__name__}:environment",
            vector_entry_point=f"{__name__}:environment",
            kwargs={"task": name},
            disable_env_checker=False,
        )


def environment(task: str, robot: Any, num_envs: int | None = None, **options: Any) -> Any:
    """Return an environment, see `legged.environments.make`.

    Args:
        task: Name of the task. robot: The robot, or the path of its file. num_envs, options: As in `make`.
    """
    return environments.make(task, robot if isinstance(robot, Robot) else load(robot), num_envs, **options)
