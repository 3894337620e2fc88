"""Terms of observations; each is a function of the `State` of one member, or returns one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from legged.compiler import LookupTable
from legged.environments.state import State
from legged.environments.terms.parts import heading
from legged.ground.height_map import HeightMap

Array = np.ndarray


def base_linear_velocity(s: State) -> Array:
    """Return the velocity of the base, (3,), [m/s], base axes.

    Formula: R^T v
    Peers: `base_lin_vel`, `base_lin_vel`
    """
    return s.linear_velocity


def base_angular_velocity(s: State) -> Array:
    """Return the angular velocity of the base, (3,), [rad/s], base axes.

    Formula: omega
    Peers: `base_ang_vel`, `base_ang_vel`
    """
    return s.angular_velocity


def projected_gravity(s: State) -> Array:
    """Return the direction of gravity, (3,), dimensionless, base axes.

    Formula: R^T (0, 0, -1)
    Peers: `projected_gravity`, `projected_gravity`
    """
    return s.projected_gravity


def command(s: State) -> Array:
    """Return the command, (nc,), in its units.

    Formula: c
    Peers: `generated_commands`, `generated_commands`
    """
    return s.command


def joint_positions(s: State) -> Array:
    """Return the joint positions relative to the posture of a zero action, (nj,), [rad] or [m].

    Formula: q - q_0
    Peers: `joint_pos_rel`, `joint_pos_rel`
    """
    return s.joint_positions - s.task.posture


def joint_velocities(s: State) -> Array:
    """Return the joint velocities, (nj,), [rad/s] or [m/s].

    Formula: qd
    Peers: `joint_vel_rel`, `joint_vel_rel`
    """
    return s.joint_velocities


def last_action(s: State) -> Array:
    """Return the action of the control step that has ended, (nj,), dimensionless.

    Formula: a
    Peers: `last_action`, `last_action`
    """
    return s.action


def foot_forces(s: State) -> Array:
    """Return the mean forces of the terrain on the contact points, (3 m,), [N], world axes.

    Formula: f
    """
    return s.feet.forces.reshape(-1)


def episode_time(s: State) -> Any:
    """Return the part of the longest episode that has passed, dimensionless.

    Formula: t / T
    """
    return s.time * (1.0 / s.task.episode)


def heights_around(length: float = 1.6, width: float = 1.0, spacing: float = 0.1) -> Callable[[State], Array]:
    """Return an observation: heights of the base over the terrain at a grid of points around it, (n,), [m].

    On a height map they are those of the nearest entries of the map; a base beyond its edge reads them from the edge.

    Args:
        length, width: Size of the grid along the axes x and y of the base, turned by its heading, [m].
        spacing: Distance of neighbors, [m].

    Formula: z - h(x + R (a, b)) for a, b in a grid
    Peers: `height_scan`, -
    """
    rows = np.linspace(-0.5 * length, 0.5 * length, round(length / spacing) + 1)
    columns = np.linspace(-0.5 * width, 0.5 * width, round(width / spacing) + 1)

    def heights(s: State) -> Array:
        c, d = heading(s)
        terrain = s.task.ground.terrain
        if isinstance(terrain, HeightMap):
            return s.q[6] - _scanned(terrain, s.q[4], s.q[5], (c, d), rows, columns)
        points = [(s.q[4] + c * a - d * b, s.q[5] + d * a + c * b) for a in rows for b in columns]
        return np.stack([s.q[6] - terrain.height(*point) for point in points])

    return heights


def _scanned(terrain: HeightMap, x: Any, y: Any, heading: tuple[Any, Any], rows: Array, columns: Array) -> Array:
    """Return the entries of a height map that are nearest to the points of a grid, (n,), [m].

    A point costs three operations beside the reading: the middle of the grid is clipped to the map instead of each
    point, and the map is padded by half a diagonal.
    """
    (c, d), scale = heading, 1.0 / terrain.spacing
    pad = int(np.hypot(rows[-1], columns[-1]) * scale) + 2
    size = terrain.heights.shape
    table = LookupTable(np.pad(terrain.heights, pad, mode="edge").ravel())
    x, y = (
        np.minimum(np.maximum((z - start) * scale, 0.0), n - 1.0) + (pad + 0.5)
        for z, start, n in zip((x, y), terrain.origin, size, strict=True)
    )
    a, b = rows * scale, columns * scale
    row = np.floor(np.add.outer(x + c * a, -d * b))
    column = np.add.outer(y + d * a, c * b)  # the reading drops its fraction
    return table((row * float(size[1] + 2 * pad) + column).ravel())
