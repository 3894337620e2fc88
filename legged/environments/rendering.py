"""Pictures of robots of an environment, and recordings of their motions as runs, which pages replay.

`VectorEnvironment.render` uses `Pictures`, `VectorEnvironment.record` returns a `Recording`. What draws robots and runs
lies in packages above this one, of which `from_above` returns the functions.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.errors import ArgumentError
from legged.output import from_above
from legged.robot.configuration import normalized
from legged.simulation.results.run import Run

if TYPE_CHECKING:
    from legged.environments.task import Task
    from legged.environments.vector import VectorEnvironment

Array = np.ndarray
RENDER_MODES = ("rgb_array", "human")
"""Values of `render_mode` besides None, as in `gymnasium.Env.render`."""


class Pictures:
    """Pictures of single configurations: stick figures as arrays, and robots in the viewer.

    Args:
        task: The task, with robot and ground.
    """

    def __init__(self, task: Task):
        self._task = task
        self._due = 0.0  # earliest time of the next configuration in the viewer, by `time.perf_counter`, [s]

    def picture(self, t: float, q: Array) -> Array:
        """Return a picture of the stick figure on its ground, (384, 512, 3), uint8.

        Args:
            t: Time, [s]. q: Configuration, (nq,), mixed units.
        """
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        robot = self._task.robot
        run = Run.from_motion(robot, [t], normalized(robot, q.astype(float))[None], ground=self._task.ground)
        canvas = FigureCanvasAgg(from_above("snapshot")(run, t))
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()

    def show(self, q: Array) -> None:
        """Show a configuration in the viewer, which the first call starts, not before the control period has passed.

        Args:
            q: Configuration, (nq,), mixed units.

        Raises:
            MissingError: viser is not installed.
        """
        self._view.show(q)
        now = time.perf_counter()
        time.sleep(max(self._due - now, 0.0))
        self._due = max(self._due, now) + self._task.period

    @cached_property
    def _view(self) -> Any:
        return from_above("RobotView")(self._task.robot, self._task.ground)

    def close(self) -> None:
        """Stop the viewer."""
        if "_view" in vars(self):
            self._view.stop()
            del self._view


class Recording:
    """Motions of some robots of an environment; each episode, or the part of it that is recorded, is a run.

    Args:
        env: The environment. robots: Numbers of the robots. recordings: The active ones, to which it belongs.

    Attributes:
        robots: Numbers of the robots.
    """

    def __init__(self, env: VectorEnvironment, robots: Sequence[int], recordings: list[Recording]):
        self.robots, self._env, self._recordings = tuple(robots), env, recordings
        self._episodes: list[tuple[int, list[tuple[Array, Array]]]] = []  # robot, and (q, v) at successive times
        self._present: dict[int, list[tuple[Array, Array]]] = {}  # robot -> (q, v) of its present episode
        recordings.append(self)

    def begin(self, robots: Array) -> None:
        """Begin a run of each recorded robot among some that start an episode.

        Args:
            robots: Their numbers, (k,), dimensionless.
        """
        recorded = set(self.robots).intersection(robots.tolist())
        for i in recorded:
            self._present[i] = []
            self._episodes.append((i, self._present[i]))
        self._append(recorded)

    def add(self, moved: Array) -> None:
        """Add the present states of the recorded robots among those that have moved.

        Args:
            moved: Whether each robot has moved, (N,), bool, dimensionless.
        """
        self._append(i for i in self.robots if moved[i])

    def _append(self, robots: Iterable[int]) -> None:
        """Add the present states of robots to their episodes."""
        q, v = self._env.q, self._env.v
        for i in robots:
            self._present[i].append((q[i].astype(float), v[i].astype(float)))

    @property
    def runs(self) -> list[Run]:
        """A run for each episode, in the order of their starts; times begin at zero."""
        task, runs = self._env.task, []
        for _, samples in self._episodes:
            q, v = (np.stack(x) for x in zip(*samples, strict=True))
            q = np.stack([normalized(task.robot, row) for row in q])
            runs.append(Run.from_motion(task.robot, task.period * np.arange(len(q)), q, v, ground=task.ground))
        return runs

    @property
    def names(self) -> list[str]:
        """Robot and number of its episode in the recording, for each of `runs`."""
        episodes = [i for i, _ in self._episodes]
        return [f"robot {i}, episode {episodes[:k].count(i) + 1}" for k, i in enumerate(episodes)]

    def save_html(self, path: str | Path, **options: Any) -> Path:
        """Write a page that replays all runs in any browser, and return its path.

        Args:
            path: The file; the suffix .html is appended where it is missing. options: As in `legged.save_html`.
        """
        return from_above("save_html")(self.runs, path, **{"names": self.names, **options})

    def stop(self) -> None:
        """End the recording, and keep the motions that it has recorded."""
        if self not in self._recordings:
            raise ArgumentError("the recording has ended before")
        self._recordings.remove(self)

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *error: object) -> None:
        if self in self._recordings:
            self.stop()
