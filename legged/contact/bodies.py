"""The bodies of a scene in parts in one step: motion without impulses, and velocities of contacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.runtime.batch_kernel import BatchKernel
from legged.contact.impulses.blocks import BlockJacobian
from legged.contact.impulses.contact_pattern import BodyLayout, ContactPattern
from legged.contact.pair_tables import WORLD, Detected, Poses
from legged.spatial import Array, skew

SLACK = 0.1
"""Speed with which contacts may close in addition to twice the speeds of their bodies, [m/s]."""
_IDENTITY = np.eye(6)  # twists of a free body per generalized velocity


class Bodies(NamedTuple):
    """The bodies of a scene in one step, in the order of `Poses`.

    Attributes:
        poses: Their poses. layout: Their generalized velocities.
        jacobians: Twists per generalized velocity of their robot, (6, nv), body axes, of the bodies of articulated
            robots that move and have shapes or contact points.
        inertia: Inertia matrix of each robot, (nv, nv).
        v_free: Velocities of all robots without impulses, (N,), mixed units.
    """

    poses: Poses
    layout: BodyLayout
    jacobians: Mapping[int, Array]
    inertia: Sequence[Array]
    v_free: Array

    def reach(self, h: float, v: Array | None = None) -> Array:
        """Return the distance that a point of each body may move in a step, with a margin, (B,), [m].

        Args:
            h: The step, [s]. v: Generalized velocities of all robots, (N,), mixed units; those without impulses by
                default.
        """
        v, layout = self.v_free if v is None else v, self.layout
        speed, is_free, extent = np.full(len(layout.first), SLACK), layout.is_free, layout.extent
        speed[is_free] += _largest_speed(v[layout.free_columns], extent[is_free])
        for k, J in self.jacobians.items():
            own = v[layout.first[k] : layout.first[k] + J.shape[1]]
            speed[k] += _largest_speed(J @ own, extent[k])
        speed[WORLD] = 0.0
        return 2.0 * h * speed


def _largest_speed(twist: Array, extent: Any) -> Any:
    """Return an upper bound of the speed of points at a distance from the origin, (...), [m/s]."""
    squares = twist * twist
    return np.sqrt(squares[..., 3:].sum(axis=-1)) + np.sqrt(squares[..., :3].sum(axis=-1)) * extent


def contact_velocities(bodies: Bodies, detected: Detected, v: Array) -> Array:
    """Return the velocities of contacts, (k, 3), [m/s], contact frames.

    Args:
        bodies: All bodies. detected: The contacts. v: Generalized velocities of all robots, (N,), mixed units.
    """
    pattern = ContactPattern(detected.first, detected.second, bodies.layout)
    return contact_jacobian(bodies, detected, pattern).velocities(v[pattern.velocities])


def contact_jacobian(bodies: Bodies, detected: Detected, pattern: ContactPattern) -> BlockJacobian:
    """Return the Jacobian of contact velocities with respect to the generalized velocities in the contacts.

    Args:
        bodies: All bodies. detected: The contacts. pattern: Where the blocks are.
    """
    at = np.concatenate([detected.first, detected.second])
    both = [np.concatenate([part, part]) for part in (detected.frame, detected.point)]
    twists = _point_rows()(bodies.poses.rotation[at], bodies.poses.origin[at], *both).reshape(2, -1, 3, 6)
    np.negative(twists[1], out=twists[1])
    found = []
    for group in pattern.groups:
        parts = []
        for side, body, is_free in group.sides:
            J = twists[side][group.own]
            if not is_free:
                J = J @ np.array([bodies.jacobians.get(k, _IDENTITY) for k in body.tolist()])
            parts.append(J)
        found.append(parts[0] + parts[1] if group.same else np.concatenate(parts, axis=2))
    return BlockJacobian(pattern, found)


def _rows_of_point(R: Array, o: Array, frame: Array, point: Array) -> Array:
    """Return the velocity of a point of a body per twist of the body, (3, 6), contact frame."""
    return frame @ np.concatenate([-skew(point - o) @ R, R], axis=1)


@cache
def _point_rows() -> BatchKernel:
    return BatchKernel(_rows_of_point, {"R": (3, 3), "o": (3,), "frame": (3, 3), "point": (3,)})
