"""Velocities and poses in parallel: each body's way to the base, doubled in every round."""

from __future__ import annotations

import numpy as np

from legged.algorithms.links import Links
from legged.dynamics.kinematics import Motion
from legged.spatial import Array, Rotation, Transform, Translation


def motions(links: Links, q: Array, v: Array) -> Motion:
    """Return pose and spatial velocity of each body by recursive doubling: equation (3) in O(log n) depth.

    Each body knows its twist relative to a body inward of it, and the transform from there: its parent at first. In
    every round it takes over what that body knows, so that its knowledge reaches twice as far. O(n log n) operations.

    Args:
        links: In link coordinates. q: Configuration, (nq,). v: Velocity, (nv,).

    Source: parallel prefix; Featherstone 1999 has the velocities computed so before the dynamics.
    """
    bodies = links.robot.bodies
    up = [body.parent for body in bodies]
    X = list(links.X)
    t = [links.h[b.index] @ v[b.v] if b.nv else np.zeros(6) for b in bodies]
    while max(up) >= 0:
        t = [t[k] if up[k] < 0 else X[k] @ t[up[k]] + t[k] for k in range(len(t))]
        X = [X[k] if up[k] < 0 else _one(X[up[k]], X[k]) for k in range(len(t))]
        up = [-1 if up[k] < 0 else up[up[k]] for k in range(len(t))]
    poses = [way.child_pose(*links.robot.base.pose(q)) for way in X]
    return Motion([R for R, _ in poses], [o for _, o in poses], t)


def _one(inner: Transform, outer: Transform) -> Transform:
    """Return two transforms as one of two steps."""
    R, r = outer.child_pose(*inner.child_pose(np.eye(3), np.zeros(3)))
    return Transform((Translation(r), Rotation(R)))
