"""The motion of a scene: poses of its parts, contacts, center of mass, capture point and support polygon over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import compile as compile_function
from legged.dynamics.kinematics import center_of_mass, link_poses, momentum
from legged.robot.robot import Robot
from legged.sensors.balance_points import capture_point_of_mass, support_polygon
from legged.simulation.results.records import GROUND
from legged.simulation.results.run import Run
from legged.viewer.meshes import rotation_to
from legged.viewer.scene import Scene

Array = np.ndarray
LOADED = 0.01
"""Normal force above which a contact belongs to the support polygon, relative to the weight of the robot."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Poses of the parts of a scene, contacts, forces and balance points at T times, in world axes.

    Attributes:
        times: (T,), [s].
        rotations: Unit quaternions of the parts, w first, (T, p, 4).
        positions: Positions of the parts, (T, p, 3), [m].
        base: Position of the base, (T, 3), [m], which a camera follows.
        points: Positions of the contacts, (T, c, 3), [m].
        forces: Forces on them, (T, c, 3), [N].
        center_of_mass: (T, 3), [m]; NaN without a model of the robot.
        capture_point: Instantaneous capture point, (T, 3), [m]; NaN without a model, and in flight.
        support: Indices of the contacts at the corners of the support polygon, (T, c); -1 after the last corner.
        footsteps: Planned landing places of the feet, (T, n, 3), [m]; NaN for feet that stand.
    """

    times: Array
    rotations: Array
    positions: Array
    base: Array
    points: Array
    forces: Array
    center_of_mass: Array
    capture_point: Array
    support: Array
    footsteps: Array

    def __len__(self) -> int:
        return len(self.times)

    def at(self, rows: Any) -> Motion:
        """Return the motion at some of its times.

        Args:
            rows: Indices or a slice.
        """
        return Motion(*(getattr(self, f.name)[rows] for f in fields(self)))


def motion_of_run(scene: Scene, run: Run, rows: Any = slice(None)) -> Motion:
    """Return the motion of a run.

    Args:
        scene: The geometry of the run. rows: Indices of the samples.
    """
    points, forces = run.contacts.points[rows], run.contacts.forces[rows]
    normal, own = run.ground.normal, [other == GROUND for other in run.contacts.against]
    if run.model is None:
        rotations, positions = _line_poses(run.figure.nodes[rows], run.figure.edges)
        center = capture = np.full((len(points), 3), np.nan)
        support = np.full(points.shape[:2], -1)
    else:
        robot = run.model.robot
        state = states(robot)(run.q[rows], run.v[rows])
        rotations, positions = _part_poses(scene, state)
        bodies = run.bodies.q[rows]
        rotations = np.concatenate([rotations, bodies[..., :4]], axis=1)
        positions = np.concatenate([positions, bodies[..., 4:]], axis=1)
        on_robot = np.array(
            [a and on not in run.bodies.names for a, on in zip(own, run.contacts.on, strict=True)], bool
        )
        center, support = state.center, support_of(points, forces @ normal, on_robot, scene.weight)
        capture = capture_of(robot, center, state.velocity, points, support, normal)
    return Motion(
        run.times[rows],
        rotations,
        positions,
        run.base.position[rows],
        points,
        forces,
        center,
        capture,
        support,
        run.footsteps[rows] if len(run.footsteps) else np.zeros((len(points), 0, 3)),
    )


def motion_of_states(scene: Scene, robot: Robot, times: Array, q: Array, v: Array | None = None) -> Motion:
    """Return the motion of a robot alone, without contacts.

    Args:
        scene: Geometry of the robot. robot: The robot. times: (T,), [s].
        q: Configurations, (T, nq). v: Velocities, (T, nv); zero by default.
    """
    state = states(robot)(q, np.zeros((len(q), robot.nv)) if v is None else v)
    rotations, positions = _part_poses(scene, state)
    none = np.zeros((len(q), 0, 3))
    base, lost = state.origins[:, 0], np.full((len(q), 3), np.nan)
    return Motion(times, rotations, positions, base, none, none, state.center, lost, np.zeros((len(q), 0), int), none)


class States(NamedTuple):
    """Poses of all links, and position and velocity of the center of mass, in world axes.

    Attributes:
        rotations: Rotation matrices of all links, (..., n, 3, 3).
        origins: Origins of all links, (..., n, 3), [m].
        center: Center of mass, (..., 3), [m].
        velocity: Its velocity, (..., 3), [m/s].
    """

    rotations: Array
    origins: Array
    center: Array
    velocity: Array


@lru_cache(maxsize=8)
def states(robot: Robot) -> Callable[[Array, Array], States]:
    """Return the compiled function (q, v) -> `States` of a robot, for one state or a batch.

    Args:
        robot: The robot.
    """
    return compile_function(_states, robot)


def _states(robot: Robot, q: Array, v: Array) -> States:
    rotations, origins = link_poses(robot, q)
    return States(rotations, origins, center_of_mass(robot, q), momentum(robot, q, v)[3:] / robot.mass)


def support_of(points: Array, loads: Array, own: Array, weight: float) -> Array:
    """Return the contacts at the corners of the support polygon; see `Motion.support`.

    Args:
        points: Positions of the contacts, (T, c, 3), [m], world axes.
        loads: Normal forces of the ground on them, (T, c), [N].
        own: Whether each is a contact of the robot with the ground, (c,). weight: Weight of the robot, [N].
    """
    loaded, hull = (loads > LOADED * weight) & own, np.full(points.shape[:2], -1)
    for k in np.flatnonzero(loaded.any(axis=1)):
        on = np.flatnonzero(loaded[k])
        if len(on) > 2:
            xy = points[k, on, :2]
            corners = support_polygon(xy)
            distance = np.abs(xy[None] - corners[:, None]).sum(axis=2)
            on = on[distance.argmin(axis=1)]
        hull[k, : len(on)] = on
    return hull


def capture_of(robot: Robot, center: Array, velocity: Array, points: Array, support: Array, normal: Array) -> Array:
    """Return the instantaneous capture points, (T, 3), [m], world axes; NaN in flight.

    Args:
        robot: The robot. center: Center of mass, (T, 3), [m], world axes.
        velocity: Its velocity, (T, 3), [m/s], world axes.
        points: Positions of the contacts, (T, c, 3), [m], world axes.
        support: See `Motion.support`. normal: Normal of the ground, a unit vector (3,), world axes.
    """
    count = (support >= 0).sum(axis=1)
    chosen = np.take_along_axis(points, np.maximum(support, 0)[..., None], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        origin = np.where((support >= 0)[..., None], chosen, 0.0).sum(axis=1) / count[:, None]
        return capture_point_of_mass(robot, center.T, velocity.T, origin.T, normal).T


def _part_poses(scene: Scene, state: States) -> tuple[Array, Array]:
    """Return the unit quaternions (T, p, 4) and positions (T, p, 3), [m], of the parts of the robot."""
    return quaternions(state.rotations[:, scene.links]), state.origins[:, scene.links]


def quaternions(rotations: Array) -> Array:
    """Return the unit quaternions of rotation matrices, (..., 4), w first.

    Each row of 4 p p^T follows from R; the row of the largest diagonal entry gives p with the least cancellation.

    Args:
        rotations: Rotation matrices, (..., 3, 3), dimensionless.
    """
    R = np.asarray(rotations)
    x, y, z = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    K = np.empty((*R.shape[:-2], 4, 4))  # 4 p p^T for the quaternion p
    K[..., 0, 0], K[..., 1, 1], K[..., 2, 2], K[..., 3, 3] = 1 + x + y + z, 1 + x - y - z, 1 - x + y - z, 1 - x - y + z
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        K[..., 0, i + 1] = K[..., i + 1, 0] = R[..., k, j] - R[..., j, k]
        K[..., i + 1, j + 1] = K[..., j + 1, i + 1] = R[..., j, i] + R[..., i, j]
    largest = np.diagonal(K, axis1=-2, axis2=-1).argmax(axis=-1)
    chosen = np.take_along_axis(K, largest[..., None, None], axis=-2)[..., 0, :]
    return chosen / np.linalg.norm(chosen, axis=-1, keepdims=True)


def _line_poses(nodes: Array, edges: Array) -> tuple[Array, Array]:
    """Return the poses of the lines of stick figures, whose z axes point along them: as `_part_poses`.

    Args:
        nodes: (T, k, 3), [m]. edges: Pairs of nodes, (e, 2).
    """
    a, b = nodes[:, edges[:, 0]], nodes[:, edges[:, 1]]
    rotations = np.array([[rotation_to(d) for d in row] for row in b - a]).reshape(*a.shape, 3)
    return quaternions(rotations), (a + b) / 2.0
