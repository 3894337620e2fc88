"""Wheels: round feet that a joint without limits turns about their own axis, so that a robot on them rolls away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.robot.joint import Revolute
from legged.robot.physics import JointPhysics
from legged.robot.robot import Robot
from legged.robot.shapes import outermost_points

Array = np.ndarray
_ROUND = 0.1
"""Largest deviation of the outline of a wheel from a circle, over its radius: treads, and meshes with few corners. A
regular octagon has 0.08, a hexagon 0.13."""
_DIRECTIONS = 64


def is_wheel(
    physics: JointPhysics,
    axis: Array,
    solids: Sequence[tuple[Array, float]],
    touching: Sequence[tuple[Array, float]],
) -> bool:
    """Return whether a revolute joint turns a foot as a wheel.

    It has no limits, or more than a full turn between them, and the outline of the foot across its axis is a circle
    about it through the contact points.

    Args:
        physics: Of the joint, with its limits.
        axis: Unit vector along the axis, (3,), dimensionless, link axes; the origin of the link is on it.
        solids: Shapes of the foot: points, (n, 3), [m], link axes, and the radius of spheres around them, [m].
        touching: Contact points of the foot, (n, 3), [m], link axes, and the radius of each, [m].
    """
    lower, upper = (np.ravel(end).tolist()[0] for end in (physics.lower, physics.upper))
    if not upper - lower > 2 * np.pi or not solids or not touching:
        return False
    across = np.linalg.svd(axis[None])[2][1:]  # two unit vectors perpendicular to the axis
    angles = 2 * np.pi * np.arange(_DIRECTIONS) / _DIRECTIONS
    directions = np.array([np.cos(angles), np.sin(angles)])
    radius = max(_reach(points @ across.T, r) for points, r in touching)
    extents = np.max([(points @ across.T @ directions).max(axis=0) + r for points, r in solids], axis=0)
    farthest = max(_reach(points @ across.T, r) for points, r in solids)
    return bool(extents.min() > (1.0 - _ROUND) * radius and farthest < (1.0 + _ROUND) * radius)


def _reach(points: Array, radius: float) -> float:
    """Return the largest distance of spheres around points, (n, 2), [m], from the origin, [m]."""
    return float(np.linalg.norm(points, axis=1).max()) + radius


def wheel_joint(robot: Robot, link: int) -> str:
    """Return the name of the joint that turns a foot as a wheel, see `is_wheel`; empty for other feet.

    The outline is that of spherical contact points and collision shapes. Feet of a robot as loaded from a file are
    those that its audit names.

    Args:
        robot: The robot. link: Index of the foot.
    """
    body = robot.links[link].body
    above = [joint for joint in robot.joints if robot.link(joint.child).body == body]
    if not above or not isinstance(above[0].definition, Revolute):
        return ""
    joint, child = above[0], robot.link(above[0].child)
    if robot.audit is not None and joint.name in {foot.wheel for foot in robot.audit.feet}:
        return joint.name
    own = [each for each in robot.links if each.body == body]
    solids = [(each, *outermost_points(shape)) for each in own for shape in each.shapes]
    touching = [
        (robot.links[point.link], np.array([point.position]), point.radius)
        for point in robot.contacts
        if robot.links[point.link].body == body
    ]
    solids += [contact for contact in touching if contact[-1]]
    placed, standing = (
        [(points @ each.rotation.T + each.position - child.position, radius) for each, points, radius in group]
        for group in (solids, touching)
    )
    axis = child.rotation @ joint.definition.stages[0].axis  # in axes of the body
    return joint.name if is_wheel(joint.definition.physics, axis, placed, standing) else ""
