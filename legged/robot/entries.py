"""Vectors over q and v from the parts that belong to joints, over any element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from legged.robot.robot import Robot
from legged.spatial import Array


def scatter(size: int, parts: Iterable[tuple[slice, Array]]) -> Array:
    """Return the vector, (size,), with each part in its place."""
    entries: list[Any] = [0.0] * size
    for where, part in parts:
        entries[where] = list(part)
    return as_vector(entries)


def scatter_add(robot: Robot, parts: Sequence[Array]) -> Array:
    """Return the vector, (nv,), of each body's share: those of bodies that share a joint's entries add up.

    Args:
        robot: The robot. parts: For each body, (nv of its joint,).
    """
    entries: list[Any] = [0.0] * robot.nv
    for body, part in zip(robot.bodies, parts, strict=True):
        for i, share in zip(range(body.v.start, body.v.stop), part, strict=True):
            entries[i] = entries[i] + share
    return as_vector(entries)


def as_vector(entries: list[Any]) -> Array:
    """Return a list of numbers or expressions as an array."""
    plain = np.array(entries)
    return plain if plain.dtype != object else np.stack(entries)
