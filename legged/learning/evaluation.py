"""Evaluation of policies: errors of commanded velocities and survival of pushes, as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from legged.environments.making import make
from legged.environments.snapshots import restore, snapshot
from legged.environments.task import Task
from legged.errors import ArgumentError
from legged.rotations import heading, quaternion_matrix
from legged.table import Table

Array = np.ndarray
Act = Callable[[Array], Array]
COMMANDS = tuple(
    [(x, 0.0, 0.0) for x in (-0.5, 0.0, 0.5, 1.0)]
    + [(0.0, y, 0.0) for y in (-0.4, 0.4)]
    + [(0.0, 0.0, w) for w in (-1.0, 1.0)]
    + [(0.5, 0.0, 0.5), (0.5, 0.2, 0.0)]
)
"""Commands of the table, ([m/s], [m/s], [rad/s])."""


@dataclass(frozen=True)
class Tracking:
    """How robots follow commands.

    Attributes:
        commands: (c, 3), [m/s] forward, [m/s] to the left, [rad/s].
        velocities: Means over time and robots of the velocities in heading axes and of the yaw rate, (c, 3), likewise.
        errors: Means over robots of the magnitude of the error of their mean velocity, (c, 2), [m/s] and [rad/s].
        fallen: Fraction of the robots that have fallen, (c,).
    """

    commands: Array
    velocities: Array
    errors: Array
    fallen: Array

    def table(self, title: str = "Commanded velocities") -> Table:
        """Return a table with a row for each command."""
        header = ("command", "forward [m/s]", "left [m/s]", "yaw rate [rad/s]", "error [m/s]", "[rad/s]", "fallen")
        rows = [
            (" ".join(f"{x:g}" for x in c), *(f"{x:.2f}" for x in v), *(f"{x:.3f}" for x in e), f"{100.0 * f:.0f} %")
            for c, v, e, f in zip(self.commands, self.velocities, self.errors, self.fallen, strict=True)
        ]
        worst = self.errors.max(axis=0)
        return Table(title, header, tuple(rows), (f"largest errors: {worst[0]:.3f} m/s, {worst[1]:.3f} rad/s",))


def heading_velocities(q: Array, v: Array) -> Array:
    """Return (forward, left, yaw rate) of floating bases, (N, 3), [m/s, m/s, rad/s], heading axes.

    Args:
        q: Configurations, (N, nq), mixed units. v: Velocities, (N, nv), mixed units.
    """
    result = np.empty((len(q), 3))
    for k, (configuration, velocity) in enumerate(zip(q, v, strict=True)):
        R = quaternion_matrix(configuration[:4])
        forward = heading(R)
        x, y, _ = R @ velocity[3:6]
        result[k] = forward[0] * x + forward[1] * y, forward[0] * y - forward[1] * x, R[2] @ velocity[:3]
    return result


def tracking(
    task: Task,
    act: Act,
    commands: Sequence[Sequence[float]] = COMMANDS,
    *,
    robots: int = 16,
    duration: float = 6.0,
    seed: int = 7,
    threads: int | None = None,
) -> Tracking:
    """Return how well a policy follows commands without pushes, with the variations and the noise of its task.

    Args:
        task: A task whose command is a velocity, such as `velocity`.
        act: Function from observations of the group `actor`, (N, k), to actions, (N, nj), dimensionless.
        commands: (c, 3), [m/s] forward, [m/s] to the left, [rad/s].
        robots: Number of robots for each command. duration: [s]; means are those after the first 2 s.
        seed, threads: Of the environment.

    Raises:
        ArgumentError: The command of the task is no velocity.
    """
    if task.command is None or task.command.size != 3:
        raise ArgumentError("the table of velocities needs a task whose command is a velocity, such as `velocity`")
    given = np.repeat(np.asarray(commands, float), robots, axis=0)
    env = _undisturbed(task, len(given), threads)
    observed, _ = env.reset(seed=seed)
    env.commands = given
    fallen, total, count = np.zeros(len(given), bool), np.zeros((len(given), 3)), 0
    for step in range(round(duration / task.period)):
        observed, _, terminated, _, _ = env.step(act(observed))
        env.commands = given  # also of robots that have started anew
        fallen |= terminated
        if step * task.period >= 2.0:
            total, count = total + heading_velocities(env.q, env.v), count + 1
    errors = total / count - given
    size = np.stack([np.hypot(errors[:, 0], errors[:, 1]), np.abs(errors[:, 2])], axis=1)

    def mean(x: Array) -> Array:
        return x.reshape(len(commands), robots, *x.shape[1:]).mean(axis=1)

    return Tracking(np.asarray(commands, float), mean(total / count), mean(size), mean(fallen.astype(float)))


def survival(
    task: Task, act: Act, push: float = 0.5, *, robots: int = 256, seed: int = 11, threads: int | None = None
) -> float:
    """Return the fraction of robots that do not fall within 3 s after a push while they follow random commands.

    Args:
        task, act, threads: As in `tracking`. push: Change of the velocity of the base in a random horizontal direction,
            [m/s]. robots: Number of robots. seed: Of the environment and the directions.
    """
    random, env = np.random.default_rng(seed), _undisturbed(task, robots, threads)
    observed, _ = env.reset(seed=seed)
    angles, velocity = random.uniform(-np.pi, np.pi, robots), task.robot.nq + 3
    steady, lasting = round(3.0 / task.period), np.ones(robots, bool)
    for step in range(2 * steady):
        if step == steady:  # robots that have fallen before have started anew and are pushed too
            values = snapshot(env)
            for k, q in enumerate(env.q):
                change = push * np.array([np.cos(angles[k]), np.sin(angles[k]), 0.0])
                values["state"][k, velocity : velocity + 3] += quaternion_matrix(q[:4]).T @ change
            observed = restore(env, values)
        observed, _, terminated, _, _ = env.step(act(observed))
        if step >= steady:
            lasting &= ~terminated
    return float(lasting.mean())


def _undisturbed(task: Task, robots: int, threads: int | None) -> Any:
    """Return an environment of a task without pushes, in which commands and episodes last."""
    command = None if task.command is None else replace(task.command, interval=(1e6, 1e6))
    return make(replace(task, disturbance=None, command=command, episode=1e4), num_envs=robots, threads=threads)
