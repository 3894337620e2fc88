"""Training of a policy with checkpoints, a log, TensorBoard and progress in the terminal."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from legged.arguments import whole
from legged.environments.making import make
from legged.environments.task import Task
from legged.errors import ArgumentError, NotFiniteError
from legged.learning.checkpoint import check_task, read_checkpoint, write_checkpoint
from legged.learning.ppo import PPO, Settings, torch

CHECKPOINT = "checkpoint.pt"
_BETWEEN = 30.0  # [s] between two checkpoints
_BLOCKS = " ▁▂▃▄▅▆▇█"
SHOWN = ("return", "length", "falls", "deviation", "rate")
"""Figures that the terminal shows beside the rewards."""


class Training:
    """A policy that learns a task.

        training = Training(legged.environments.velocity(robot), num_envs=16)
        training.run(steps=1000)
        law = controllers.Policy(training.learner.network(), training.task)

    The folder gets `checkpoint.pt` every half minute and at the end, and the log of TensorBoard, if it is
    installed. Results are bit for bit the same with and without interruptions, for the same number of threads.

    Args:
        task: The task. folder: For checkpoint and log; None writes nothing.
        num_envs: Number of robots. settings: Numbers of the learner. seed: Of all random numbers.
        threads: Of environment and learner; by default the number of processors for the environment, and at most two
            for the learner.
        dtype: Type of the numbers of the time steps, "float32" or "float64"; see `VectorEnvironment`.
        resume: Checkpoint to go on from; its values replace `num_envs`, `settings`, `seed` and `dtype`.

    Attributes:
        task: The task. learner: The learner. curve: Figures of each iteration, see `PPO.iterate`.

    Raises:
        FileError: The checkpoint cannot be read. ArgumentError: It is one of another task or robot.
    """

    def __init__(
        self,
        task: Task,
        folder: str | Path | None = None,
        *,
        num_envs: int = 2048,
        settings: Settings | None = None,
        seed: int = 1,
        threads: int | None = None,
        dtype: str = "float32",
        resume: str | Path | None = None,
    ):
        self.task, self.folder = task, None if folder is None else Path(folder)
        self.num_envs, self.seed, self.settings = num_envs, seed, settings or Settings()
        self.threads, self.dtype = threads, dtype
        self.curve: list[dict[str, float]] = []
        content = None
        if resume is not None:
            content = read_checkpoint(resume)
            check_task(resume, content, task)
            self.num_envs, self.seed, self.settings = content["num_envs"], content["seed"], content["settings"]
            self.dtype = content["dtype"]
        env = make(task, num_envs=self.num_envs, groups=True, threads=threads, dtype=self.dtype)
        self.learner = PPO(env, self.settings, self.seed)
        if content is not None:
            self.learner.restore(content["learner"])
            self.curve = content["curve"]

    def run(
        self,
        minutes: float | None = None,
        steps: int | None = None,
        report: Callable[[dict[str, float]], None] | None = None,
    ) -> None:
        """Train until a duration or a number of transitions is reached.

        Args:
            minutes: Duration, [min]. steps: Number of transitions, with those before a checkpoint.
            report: Function that is called with the figures of each iteration.

        Raises:
            ArgumentError: Neither is given. NotFiniteError: the learner has diverged; the last checkpoint stays.
        """
        if minutes is None and steps is None:
            raise ArgumentError("a training needs an end: give minutes= or steps=")
        begin = saved = time.monotonic()
        with self._log() as log, _torch_threads(self.threads):
            while not self._is_over(begin, minutes, steps):
                figures = self.learner.iterate()
                if bad := [name for name, x in figures.items() if not np.isfinite(x)]:
                    raise NotFiniteError(f"the learner has diverged: {', '.join(bad)}; lower the first rate")
                self.curve.append(figures)
                log(figures)
                if report is not None:
                    report(figures)
                if time.monotonic() - saved > _BETWEEN:
                    self.save()
                    saved = time.monotonic()
            self.save()

    def _is_over(self, begin: float, minutes: float | None, steps: int | None) -> bool:
        late = minutes is not None and time.monotonic() - begin >= 60.0 * minutes
        return late or (steps is not None and self.learner.transitions >= whole("steps", steps, 1))

    def save(self) -> Path | None:
        """Write the checkpoint into the folder, if there is one, and return its path."""
        if self.folder is None:
            return None
        content: dict[str, Any] = {"num_envs": self.num_envs, "seed": self.seed, "dtype": self.dtype}
        content |= {"learner": self.learner.state(), "curve": self.curve}
        return write_checkpoint(self.folder / CHECKPOINT, self.task, self.settings, content)

    @contextlib.contextmanager
    def _log(self) -> Iterator[Callable[[dict[str, float]], None]]:
        """Context manager: yield a function that adds figures to the log of TensorBoard."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            SummaryWriter = None
        if self.folder is None or SummaryWriter is None:
            yield lambda figures: None
            return
        with SummaryWriter(str(self.folder), purge_step=self.learner.transitions) as writer:

            def log(figures: dict[str, float]) -> None:
                for name, value in figures.items():
                    writer.add_scalar(name.replace(".", "/"), value, int(figures["transitions"]))

            yield log


@contextlib.contextmanager
def _torch_threads(threads: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, 2) if threads is None else threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def progress(training: Training, minutes: float | None, steps: int | None) -> Iterator[Callable[[Any], None]]:
    """Context manager: yield a `report` for `Training.run` that shows curves and figures in the terminal."""
    from rich.live import Live
    from rich.table import Table

    begin = time.monotonic()

    def table() -> Table:
        curve, seconds = training.curve, training.learner.seconds
        now, last = time.monotonic() - begin, curve[-1]
        ends = [] if minutes is None else [f"{minutes:g} min"]
        ends += [] if steps is None else [f"{steps:.3g} transitions"]
        shown = Table(title=f"{last['transitions']:.3g} transitions, {now:.0f} s, until {' or '.join(ends)}")
        shown.add_column()
        shown.add_column("now", justify="right")
        shown.add_column("curve")
        names = [*SHOWN, *(name for name in last if name.startswith("reward."))]
        for name in names:
            values = [figures[name] for figures in curve if name in figures]
            if values:
                shown.add_row(name, f"{values[-1]:.3g}", sparkline(values))
        total = max(sum(seconds.values()), 1e-9)
        shown.caption = ", ".join(f"{name} {100.0 * x / total:.0f} %" for name, x in seconds.items())
        return shown

    with Live(refresh_per_second=2) as live:
        yield lambda figures: live.update(table())


def sparkline(values: list[float], width: int = 40) -> str:
    """Return a curve as blocks of text: means of equal parts of the values, between their smallest and largest."""
    parts = np.array([part.mean() for part in np.array_split(np.asarray(values, float), min(width, len(values)))])
    low, high = parts.min(), parts.max()
    levels = np.rint((parts - low) / max(high - low, 1e-12) * (len(_BLOCKS) - 2)).astype(int) + 1
    return "".join(_BLOCKS[k] for k in levels)
