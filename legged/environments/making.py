"""Tasks by name, and environments from tasks."""

from __future__ import annotations

from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from legged.arguments import known_name
from legged.checked import checked
from legged.environments.task import Task
from legged.environments.tasks import acrobot, jumping, pendulum, rough, standing_up, tracking, velocity
from legged.errors import ArgumentError
from legged.files.load import load
from legged.robot.robot import Robot

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


@checked
def make(task: str | Task, robot: Robot | None = None, num_envs: int | None = None, **options: Any) -> Any:
    """Return an environment: a `gymnasium.vector.VectorEnv` of many robots, or a `gymnasium.Env` of one.

        env = legged.environments.make("velocity", robot, num_envs=4096)

    Args:
        task: Name of a task, a key of `TASKS`, or a task. robot: The robot, for a name; pendulum and acrobot have their
            own.
        num_envs: Number of robots; None for an environment of one robot without the leading axis.
        options: As in `VectorEnvironment`, or `Environment` for one robot; with a name, all others go to the function
            of the task, such as `episode=5.0` or `reference=run`.

    Raises:
        UnknownNameError: The task does not exist. ArgumentError: A robot is missing, or given twice.
        MissingError: gymnasium is not installed.
    """
    from legged.environments.single import Environment
    from legged.environments.vector import VectorEnvironment

    environment = Environment if num_envs is None else VectorEnvironment
    if isinstance(task, str):
        define = TASKS[known_name("task", task, TASKS)]
        if robot is None and signature(define).parameters["robot"].default is Parameter.empty:
            raise ArgumentError(f"make needs the robot for the task {task!r}")
        known = signature(environment).parameters
        task = define(robot, **{name: options.pop(name) for name in list(options) if name not in known})
    elif robot is not None:
        raise ArgumentError("make got a task, which has a robot, and another robot: leave it out, or name num_envs=")
    chosen: Any = task
    return Environment(chosen, **options) if num_envs is None else VectorEnvironment(chosen, num_envs, **options)


def registered(task: str, robot: Any = None, num_envs: int | None = None, **options: Any) -> Any:
    """Return an environment that Gymnasium makes by its name, `legged/velocity-v0`; see `make`.

    Args:
        task: Name of the task. robot: The robot, or the path of its file. num_envs, options: As in `make`.
    """
    options.pop("vectorization_mode", None)
    return make(task, load(robot) if isinstance(robot, str | Path) else robot, num_envs, **options)


def register() -> None:
    """Register the tasks with Gymnasium where it is installed, with `registered` as the function that makes them."""
    if find_spec("gymnasium") is not None:
        import gymnasium

        for name in TASKS:
            point = "legged.environments:registered"
            gymnasium.register(f"legged/{name}-v0", point, vector_entry_point=point, kwargs={"task": name})


register()  # an import of `legged.environments` imports this file
