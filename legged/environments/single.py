"""`Environment`: one robot that performs a task, as an environment of Gymnasium."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.arguments import whole
from legged.environments.rendering import Recording
from legged.environments.task import Task, array_of
from legged.environments.vector import VectorEnvironment, gymnasium
from legged.errors import NotFiniteError, ShapeError


class Environment(gymnasium.Env):
    """One robot that performs a task, as a `gymnasium.Env`.

    Args:
        task: The task. groups: Whether observations are a dictionary of all groups; by default they are those of the
            group `actor`, (k,).
        dtype, first, render_mode: As in `VectorEnvironment`.

    Attributes:
        many: The `VectorEnvironment` of one robot that does the work.
    """

    def __init__(
        self, task: Task, *, groups: bool = False, dtype: Any = None, first: int = 0, render_mode: str | None = None
    ):
        options: dict[str, Any] = {"dtype": dtype, "first": first, "render_mode": render_mode}
        self.many = VectorEnvironment(task, 1, autoreset="disabled", groups=groups, threads=1, **options)
        self.render_mode = render_mode
        self.metadata = {name: value for name, value in self.many.metadata.items() if name != "autoreset_mode"}
        self.observation_space = self.many.single_observation_space
        self.action_space = self.many.single_action_space

    @property
    def task(self) -> Task:
        """The task."""
        return self.many.task

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode; return (observation, infos).

        Args:
            seed: Seed of the random numbers; None goes on with those of the last seed. options: Not used.
        """
        super().reset(seed=None if seed is None else whole("seed", seed, least=0))
        observed, infos = self.many.reset(seed=seed)
        return _first(observed), infos

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advance by a control step; return (observation, reward, terminated, truncated, infos).

        Args:
            action: (nj,), dimensionless; see `Task.targets`.

        Raises:
            ShapeError, NotFiniteError: The action has a wrong shape or is not finite; the robot does not change.
            ArgumentError: There was no `reset`, or the episode has ended.
        """
        given = array_of("action", action)
        if given.shape != self.action_space.shape:
            raise ShapeError(f"action must be {self.action_space.shape}, got shape {given.shape}")
        if not np.isfinite(given).all():
            raise NotFiniteError("action must be finite")
        observed, reward, terminated, truncated, infos = self.many.step(given[None])
        own = {name: _first(value) for name, value in infos.items() if not name.startswith("_")}
        return _first(observed), float(reward[0]), bool(terminated[0]), bool(truncated[0]), own

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """Return a picture of the robot, (384, 512, 3), uint8; None for the mode "human".

        Raises:
            ArgumentError: The environment has no render mode, or there was no `reset`.
        """
        pictures = self.many.render()
        return None if pictures is None else pictures[0]

    def record(self) -> Recording:
        """Return a recording of the motion from now on; see `VectorEnvironment.record`."""
        return self.many.record()

    def close(self) -> None:
        """Close the viewer."""
        self.many.close()


def _first(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: _first(value) for name, value in values.items()}
    return values[0]
