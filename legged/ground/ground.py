"""Ground: a terrain, a normal law and a friction law, applied to the contact points of a robot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from legged.compiler.ir import ExpressionArray
from legged.errors import ShapeError
from legged.ground.friction import FrictionLaw
from legged.ground.normal import NormalLaw
from legged.ground.terrain import Flat, Terrain

Array = np.ndarray


@dataclass(frozen=True)
class Ground:
    """Compliant ground: forces on points from where they are and how they move.

    Since forces follow from positions and velocities alone, one set of equations of motion serves flight, single and
    double support (Shah, Saha, Dutt 2012, section 1: the configuration-independent approach).

    Attributes:
        normal: Normal law.
        friction: Friction law.
        terrain: Where the surface is.
        note: How the constants were chosen; part of `str(ground)`.
    """

    normal: NormalLaw
    friction: FrictionLaw
    terrain: Terrain = field(default_factory=Flat)
    note: str = ""

    def memory(self, n_points: int) -> Array:
        """Return the memory of `n_points` points that touch nothing, (n_points * friction.memory,)."""
        return np.zeros(n_points * self.friction.memory)

    def forces(self, points: Array, velocities: Array, memory: Array | None = None) -> tuple[Array, Array]:
        """Return (forces of the ground on the points, rate of the memory).

        Args:
            points: Contact points, (..., n, 3), [m], world.
            velocities: Their velocities, (..., n, 3), [m/s], world.
            memory: State of the friction, (..., n * friction.memory); without it, a fresh one.

        Returns:
            Forces (..., n, 3), [N], world, and the memory's rate, shaped as the memory.
        """
        points, velocities = _array(points), _array(velocities)
        lead, n, m = points.shape[:-2], points.shape[-2], self.friction.memory
        memory = np.zeros((*lead, n * m)) if memory is None else _array(memory)
        _check("points", points, (*lead, n, 3))
        _check("velocities", velocities, (*lead, n, 3))
        _check("memory", memory, (*lead, n * m))
        normal = self.terrain.normal(points[..., 0], points[..., 1])
        t_1, t_2 = tangents(normal)
        f_n = self.normal.force(self.penetration(points), -_dot(normal, velocities))
        sliding = np.stack([_dot(t_1, velocities), _dot(t_2, velocities)], axis=-1)
        f_t, rate = self.friction.force(f_n, sliding, memory.reshape(*lead, n, m))
        forces = f_n[..., None] * normal + f_t[..., :1] * t_1 + f_t[..., 1:] * t_2
        return forces, rate.reshape(*lead, n * m)

    def penetration(self, points: Array) -> Any:
        """Return how deep points (..., 3) lie inside the ground, (...), [m], along the surface's normal above them.

        Exact on flat and sloped terrain, to first order elsewhere.
        """
        x, y, z = points[..., 0], points[..., 1], points[..., 2]
        return (self.terrain.height(x, y) - z) * self.terrain.normal(x, y)[..., 2]

    def __str__(self) -> str:
        lines = [f"ground: {self.terrain}", f"  normal: {self.normal}", f"  friction: {self.friction}"]
        return "\n".join([*lines, *(f"  {line}" for line in self.note.splitlines())])

    def describe(self) -> str:
        """Return the terrain, the laws and how their constants were chosen, in a few lines."""
        return str(self)


def _array(values: Array) -> Array:
    """Return an array that can be compared entry by entry, also if it holds traced values."""
    made = np.asanyarray(values)
    return made.view(ExpressionArray) if made.dtype == object else made


def _check(what: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ShapeError(f"{what} must be {shape}, got shape {array.shape}")


def tangents(n: Array) -> tuple[Array, Array]:
    """Return two unit tangents, (..., 3), of a surface with unit normal n (..., 3): the first in the world's x-z plane.

    On level ground they are +x and +y. The normal must not be along y.
    """
    n_x, n_y, n_z = n[..., 0], n[..., 1], n[..., 2]
    run = np.sqrt(n_x * n_x + n_z * n_z)
    c, s = n_z / run, n_x / run
    return np.stack([c, 0.0 * c, -s], axis=-1), np.stack([-n_y * s, run, -n_y * c], axis=-1)


def _dot(a: Array, b: Array) -> Any:
    return (a * b).sum(axis=-1)


def center_of_pressure(points: Array, forces: Array, normal: Any = (0.0, 0.0, 1.0)) -> Array:
    """Return the mean of the contact points, weighted by their normal forces; NaN where none bears load.

        c = sum_i F_n,i r_i / sum_i F_n,i

    Args:
        points: Contact points, (..., n, 3), [m], world.
        forces: Forces of the ground on them, (..., n, 3), [N], world.
        normal: Unit normal of the surface, (3,), world.

    Returns:
        The center of pressure, (..., 3), [m], world.
    """
    loads = np.asarray(forces, dtype=float) @ np.asarray(normal, dtype=float)
    total = loads.sum(axis=-1)
    weighted = np.einsum("...i,...ij->...j", loads, np.asarray(points, dtype=float))
    return weighted / np.where(total > 0.0, total, np.nan)[..., None]
