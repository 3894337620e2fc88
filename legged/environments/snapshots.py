"""Snapshots of vector environments: all arrays on which their further control steps depend besides the task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from legged.environments.vector import VectorEnvironment

Array = np.ndarray


def snapshot(env: VectorEnvironment) -> dict[str, Array]:
    """Return copies of the arrays of an environment: name -> array; see `restore`.

    `state` begins with q and v of each robot, (N, nq + nv) and more columns.

    Raises:
        ArgumentError: There was no `reset`.
    """
    if not env._begun:
        raise ArgumentError("call reset before snapshot")
    return {name: values.copy() for name, values in _arrays(env).items()}


def restore(env: VectorEnvironment, values: Mapping[str, Array]) -> Any:
    """Return the observations after an environment has gone back to a snapshot.

    Args:
        env: An environment with the same task and number of robots. values: A result of `snapshot`.

    Raises:
        ShapeError: The snapshot is one of another task or number of robots; nothing changes.
    """
    for name, own in _arrays(env).items():
        if name not in values or np.shape(values[name]) != own.shape:
            raise ShapeError(f"the snapshot is one of another task or number of robots: {name!r} must be {own.shape}")
    for name, own in _arrays(env).items():
        own[...] = values[name]
    env._begun = True
    return env._observations()


def episode_steps(env: VectorEnvironment) -> Array:
    """Return the numbers of control steps since the start of each episode, (N,): memory of the environment."""
    return env._part("steps")[:, 0]


def _arrays(env: VectorEnvironment) -> dict[str, Array]:
    """Return the arrays of the last control step by name; they are memory of the environment."""
    now = env._result
    arrays = {"state": now.state, "record": now.record, "outcome": env._outcome, "seed": env._seed, "over": env._over}
    return arrays | {f"observed.{group}": values for group, values in env._observed[env._now].items()}
